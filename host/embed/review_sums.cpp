#include "host/embed/review_sums.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/data/review_text.h"
#include "host/io/json_file.h"
#include "host/io/npy.h"

namespace cfaa {
namespace {

using nlohmann::json;

std::string place(const Domain& domain, const std::string& name) {
  return (domain.path / name).string();
}

[[noreturn]] void stale(const Domain& domain, const std::string& why) {
  throw Error(fmt::format("{}: {}; run 'cfaa_gpu embed {} --fresh' with the model of your choice",
                          place(domain, "embed.json"), why, domain.path.parent_path().string()));
}

NpyFile open_matrix(const Domain& domain, const std::string& name,
                    const std::vector<int64_t>& shape) {
  NpyFile file(place(domain, name));
  const bool counts = shape.size() == 1;
  const bool type = counts ? file.dtype() == DType::i32
                           : file.dtype() == DType::f32 || file.dtype() == DType::f16;
  if (file.shape() != shape || !type) {
    stale(domain, fmt::format("{} is not the array of shape ({}) that belongs to it", name,
                              fmt::join(shape, ", ")));
  }
  return file;
}

}  // namespace

Fields review_identity(const Domain& domain) {
  const ReviewTextFile text(domain.text_path(Split::train));
  return {{"dataset", fmt::format("{:016x}", domain.hash)},
          {"text", fmt::format("{:016x}", text.checksum())}};
}

EmbedDescription read_embed_description(const Domain& domain) {
  const std::string path = place(domain, "embed.json");
  if (!std::filesystem::exists(path)) {
    throw Error(
        fmt::format("{}: there are no review embeddings; run 'cfaa_gpu embed {} --model "
                    "DIR' first",
                    domain.path.string(), domain.path.parent_path().string()));
  }
  json object;
  try {
    object = read_json_object(path);
  } catch (const Error&) {
    stale(domain, "is not what embed writes");
  }
  const std::optional<Fields> settings = fields_of(object.value("settings", json())),
                              counts = fields_of(object.value("counts", json()));
  const json width = object.value("width", json());
  if (object.value("format", json()) != 1 || !settings || !counts || !width.is_number_integer()) {
    stale(domain, "is not what embed writes");
  }
  return {*settings, *counts, width, object.value("summaries", json()) == true};
}

ReviewSums load_review_sums(const Domain& domain, SummedSentences which) {
  const EmbedDescription description = read_embed_description(domain);
  for (const auto& [key, value] : review_identity(domain)) {
    const auto found = description.settings.find(key);
    if (found != description.settings.end() && found->second == value) continue;
    stale(domain, key == "text" ? "was made from other review texts than there are now"
                                : "was made from other users, items or splits than there are now");
  }
  if (which != SummedSentences::all && !description.summaries) {
    throw Error(
        fmt::format("{}: has no summaries; run 'cfaa_gpu embed {} --fresh --set embed.summaries="
                    "true' with the model of your choice",
                    place(domain, "embed.json"), domain.path.parent_path().string()));
  }
  const std::string name = which == SummedSentences::all            ? "review"
                           : which == SummedSentences::user_summary ? "user_summary"
                                                                    : "item_summary";
  struct Files {
    NpyFile sums, counts;
  };
  const int64_t rows = domain.train.size(), width = description.width;
  const auto files =
      std::make_shared<const Files>(Files{open_matrix(domain, name + "_sums.npy", {rows, width}),
                                          open_matrix(domain, name + "_counts.npy", {rows})});
  return {files->sums.dtype(),
          files->sums.bytes().data(),
          files->counts.mapped<int32_t>(),
          width,
          files,
          [files] { files->sums.forget_pages(); },
          files->sums.path()};
}

std::pair<ReviewSums, ReviewSums> load_review_sums(const Dataset& data) {
  std::pair sums = {load_review_sums(data.source), load_review_sums(data.target)};
  Fields a = read_embed_description(data.source).settings,
         b = read_embed_description(data.target).settings;
  // What is each domain's own, and the type, which is converted.
  for (const char* key : {"dataset", "text", "dtype"}) a.erase(key), b.erase(key);
  if (const std::string what = setting_difference(a, b); !what.empty()) {
    stale(data.target, fmt::format("the source was embedded with {}", what));
  }
  return sums;
}

}  // namespace cfaa
