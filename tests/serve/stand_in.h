#pragma once

// What a server is asked for without a run behind it: two users, two items, lists that say what was
// asked.

#include <string>

#include "host/serve/served.h"

namespace cfaa::test {

class StandIn final : public Served {
 public:
  int workers() const override { return 1; }
  std::vector<ServedRun> runs() const override { return {{"run", {{"target", 2, 2, true}}}}; }

  Recommendation recommend(int, const Place& place, const std::string& user, int64_t top,
                           bool reasons) override {
    check(place);
    if (user == "broken") throw std::runtime_error("/secret/path does not read");
    if (user != "ann" && user != "bob") throw NotFound("there is no such user");
    return list(user, top, reasons);
  }
  NewcomerList recommend(int, const Place& place, const std::vector<WrittenReview>& reviews,
                         int64_t top, bool reasons) override {
    check(place);
    last = reviews;
    NewcomerList made{list("", top, reasons), {}};
    for (const WrittenReview& review : reviews) {
      if (review.item != "i1" && review.item != "i2") made.unknown_items.push_back(review.item);
    }
    return made;
  }
  std::vector<SimilarItem> similar(const Place& place, const std::string& item, int64_t) override {
    check(place);
    if (item != "i1") throw NotFound("there is no such item");
    return {{"i2", "Two", 0.5}};
  }
  std::vector<HistoryItem> history(const Place& place, const std::string&) override {
    check(place);
    return {{"i1", "<script>alert(1)</script>", "\"fine\""}};
  }
  std::vector<NamedId> find(const Place& place, bool, const std::string& text, int64_t) override {
    check(place);
    return {{text, ""}};
  }

  std::vector<WrittenReview> last;  // that were posted

 private:
  static void check(const Place& place) {
    if (!place.run.empty() && place.run != "run") throw NotFound("there is no such run");
    if (place.domain == "source") throw NotFound("the source domain is not served");
  }
  static Recommendation list(const std::string& user, int64_t top, bool reasons) {
    Recommendation made{user, 1, {}};
    for (int64_t i = 0; i < top && i < 2; ++i) {
      made.items.push_back({"i" + std::to_string(i + 1),
                            "",
                            1.0 / static_cast<double>(i + 1),
                            reasons ? "popularity" : "",
                            "",
                            {},
                            {}});
    }
    return made;
  }
};

}  // namespace cfaa::test
