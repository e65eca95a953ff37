#pragma once

// What a server answers from, as host/serve/answers.h sees it: the runs of
// host/serve/served_runs.h, or a stand-in of a test.

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "host/run/recommend.h"

namespace cfaa {

// A run, a user or an item that is not there; the sentence is shown to whoever asked.
class NotFound : public std::runtime_error {
  using std::runtime_error::runtime_error;
};
// A question that cannot be answered, whoever asks; likewise.
class BadRequest : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Which lists: "" is the first run that is served, and its first domain.
struct Place {
  std::string run, domain;
};

struct WrittenReview {
  std::string item;
  std::optional<double> rating;  // on the scale of the data; none: the item was liked
  std::string text;
};

struct NewcomerList {
  Recommendation list;
  std::vector<std::string> unknown_items;  // that the reviews name and the run does not have
};

struct NamedId {
  std::string id, title;  // a user has no title
};

struct HistoryItem {
  std::string item, title, words;  // the first sentence of the user's review
};

struct ServedDomain {
  std::string name;
  int64_t users = 0, items = 0;
  bool newcomers = false;  // whether it has lists for people from their reviews
};
struct ServedRun {
  std::string name;
  std::vector<ServedDomain> domains;
};

// Called by several workers at a time, each with a number of its own below workers().
class Served {
 public:
  virtual ~Served() = default;

  virtual int workers() const = 0;
  virtual std::vector<ServedRun> runs() const = 0;
  virtual Recommendation recommend(int worker, const Place& place, const std::string& user,
                                   int64_t top, bool reasons) = 0;
  virtual NewcomerList recommend(int worker, const Place& place,
                                 const std::vector<WrittenReview>& reviews, int64_t top,
                                 bool reasons) = 0;
  virtual std::vector<SimilarItem> similar(const Place& place, const std::string& item,
                                           int64_t top) = 0;
  // What the user liked in training.
  virtual std::vector<HistoryItem> history(const Place& place, const std::string& user) = 0;
  // Users or items whose id begins with the text or whose title has it, letters of either case.
  virtual std::vector<NamedId> find(const Place& place, bool items, const std::string& text,
                                    int64_t top) = 0;
};

}  // namespace cfaa
