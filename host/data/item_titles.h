#pragma once

// What items are called, for those who read recommendations: `item_titles.tsv` of a prepared
// domain, written where the raw data have titles. Nothing is trained on them.
//
//   const ItemTitles titles(data.target);
//   titles[item]   // "Kind of Blue"; "" where it has none

#include <string>
#include <string_view>
#include <vector>

#include "host/data/dataset.h"
#include "host/data/prepare_options.h"
#include "host/data/readers/read_reviews.h"
#include "host/io/output_file.h"

namespace cfaa {

constexpr const char* kItemTitlesName = "item_titles.tsv";

class ItemTitles {
 public:
  // Without the file no item has a title. Error, with the line, where it does not read; items that
  // the domain does not have are passed over.
  explicit ItemTitles(const Domain& domain);

  std::string_view operator[](int64_t item) const {
    return titles_[static_cast<std::size_t>(item)];
  }
  int64_t count() const { return count_; }  // items with a title

 private:
  std::vector<std::string> titles_;  // (items)
  int64_t count_ = 0;
};

// A title as it is kept: one line without control characters, of 500 bytes at most.
std::string clean_title(std::string_view title);

// Reads files about items (JSON lines, Python literals, CSV, TSV, RecBole's .item: Amazon's
// metadata, MovieLens' movies.csv) and gives the domain's items the titles that stand there, before
// those that came with the reviews. Of several for an item the first in byte order counts. Bad
// lines are treated as in read_reviews().
void read_item_titles(const std::vector<std::string>& paths, const PrepareOptions& options,
                      int64_t tolerated, Interactions& domain, ReadReport& report);

// Writes the whole of a new file but for closing it. `titles` are those of `ids`, "" for none.
void write_item_titles(OutputFile& file, const IdList& ids, const std::vector<std::string>& titles);

}  // namespace cfaa
