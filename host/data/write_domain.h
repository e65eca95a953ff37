#pragma once

// Writes a prepared domain into its folder: users.tsv, items.tsv, NAME.{train,valid,test}.inter,
// NAME.train.text, item_titles.tsv where items have titles, with `heldout_text` also
// NAME.{valid,test}.text, and the derived index.bin.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "host/core/parallel.h"
#include "host/data/interactions.h"

namespace cfaa {

struct PreparedDomain {
  std::string name;
  Interactions interactions;
  std::vector<Split> splits;   // of each row
  std::vector<char> labelled;  // of each row: 0 where its label was dropped; empty: all have theirs
  bool keep_reviews = false;   // the texts of training rows without a label
  double positive = 4;         // the lowest rating with label 1
};

void write_domains(const std::filesystem::path& directory,
                   const std::vector<const PreparedDomain*>& domains, bool heldout_text,
                   ThreadPool& pool);

}  // namespace cfaa
