#pragma once

// Prepared data small enough to train on in a second, and a run on it.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "host/data/review_text.h"
#include "host/embed/review_sums.h"
#include "host/io/json_file.h"
#include "host/io/npy.h"
#include "tests/program.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {

// 24 users in two groups, each of which likes half of the 16 items of a domain and writes in words
// of its own about it.
inline void write_domain(const TemporaryFolder& folder, const std::string& domain) {
  const std::string at = "data/" + domain + "/";
  std::filesystem::create_directories(folder.path(at));
  const std::string header =
      "user_id:token\titem_id:token\trating:float\tlabel:float\ttimestamp:float\n";
  std::string train = header, valid = header, test = header;
  std::vector<std::string> texts;
  std::string users = "index\tuser_id\ttraining_interactions\n";
  std::string items = "index\titem_id\ttraining_interactions\n";
  for (int i = 0; i < 16; ++i) {
    items += std::to_string(i) + "\ti" + std::to_string(100 + i) + "\t9\n";
  }
  for (int u = 0; u < 24; ++u) {
    const std::string user = "u" + std::to_string(100 + u);
    users += std::to_string(u) + "\t" + user + "\t6\n";
    for (int i = 0; i < 8; ++i) {
      std::string& rows = i == u / 2 % 8 ? test : i == (u / 2 + 3) % 8 ? valid : train;
      rows += user + "\ti" + std::to_string(100 + u % 2 * 8 + i) + "\t5\t1\t0\n";
      if (&rows != &train) continue;
      texts.push_back(std::string(u % 2 == 0 ? "strings" : "drums") + " maker" +
                      std::to_string(i % 3));
    }
  }
  write_text(folder.path(at + "users.tsv"), users);
  write_text(folder.path(at + "items.tsv"), items);
  write_text(folder.path(at + domain + ".train.inter"), train);
  write_text(folder.path(at + domain + ".valid.inter"), valid);
  write_text(folder.path(at + domain + ".test.inter"), test);
  OutputFile text(folder.path(at + domain + ".train.text"));
  write_review_text(text, texts.size(), [&](std::size_t i) { return std::string_view(texts[i]); });
  text.close();
}

// What embed would leave: vectors of 3, all of which are `value`.
inline void write_embeddings(const TemporaryFolder& folder, int layer, float value) {
  for (const std::string name : {"source", "target"}) {
    const Domain domain = load_domain(folder.path("data"), name);
    nlohmann::json settings = to_json(review_identity(domain));
    settings["layer"] = layer;
    const int64_t rows = domain.train.size();
    const std::vector<float> sums(static_cast<std::size_t>(3 * rows), value);
    const std::vector<int32_t> counts(static_cast<std::size_t>(rows), 1);
    write_npy<float>((domain.path / "review_sums.npy").string(), {rows, 3}, sums.data());
    write_npy<int32_t>((domain.path / "review_counts.npy").string(), {rows}, counts.data());
    const nlohmann::json description = {
        {"format", 1}, {"settings", settings}, {"counts", nlohmann::json::object()}, {"width", 3}};
    write_text((domain.path / "embed.json").string(), description.dump());
  }
}

// What `export` wrote of a run of signals to `folder`: the first user's score of an item of the
// target, by its sparse matrices alone.
inline double exported_score(const std::string& folder, int64_t item) {
  const auto file = [&](const std::string& name) {
    return NpyFile(folder + "/target_" + name + ".npy");
  };
  const auto left_offset = file("left_offset").read<int64_t>(),
             right_offset = file("right_offset").read<int64_t>();
  const auto left_column = file("left_column").read<int32_t>(),
             right_column = file("right_column").read<int32_t>();
  const auto left = file("left_value").read<float>(), right = file("right_value").read<float>();
  double score = 0;
  for (auto e = static_cast<std::size_t>(left_offset[0]);
       e < static_cast<std::size_t>(left_offset[1]); ++e) {
    const auto k = static_cast<std::size_t>(left_column[e]);
    for (auto f = static_cast<std::size_t>(right_offset[k]);
         f < static_cast<std::size_t>(right_offset[k + 1]); ++f) {
      if (right_column[f] == item) score += double{left[e]} * right[f];
    }
  }
  return score;
}

class SmallRuns : public testing::Test {
 protected:
  SmallRuns() {
    write_domain(folder_, "source");
    write_domain(folder_, "target");
  }
  std::string path(const std::string& name) const { return folder_.path(name); }
  // As typed; `more` comes last.
  std::string command(const std::string& out, const std::string& more = "",
                      const std::string& inputs = "[\"id\",\"history\"]") const {
    return "train " + path("data") + " --out " + path(out) + " --set 'model.inputs=" + inputs +
           "' --set model.dim=6 --set 'model.layers=[8]' --set train.epochs=2"
           " --set train.batch_size=32 " +
           more;
  }
  Outcome train(const std::string& out, const std::string& more = "") const {
    return run_program(command(out, more));
  }

  TemporaryFolder folder_;
};

}  // namespace cfaa::test
