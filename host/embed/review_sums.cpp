#include "host/embed/review_sums.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/data/review_text.h"
#include "host/embed/resumable_files.h"
#include "host/io/json_file.h"
#include "host/io/npy.h"

namespace cfaa {
namespace {

using nlohmann::json;

std::string place(const Domain& domain, const char* name) {
  return (domain.path / name).string();
}

[[noreturn]] void stale(const Domain& domain, const std::string& why) {
  throw Error(fmt::format("{}: {}; run 'cfaa_gpu embed {} --fresh' with the model of your choice",
                          place(domain, "embed.json"), why, domain.path.parent_path().string()));
}

NpyFile open_matrix(const Domain& domain, const char* name, const std::vector<int64_t>& shape) {
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

json review_identity(const Domain& domain) {
  const ReviewTextFile text(domain.text_path(Split::train));
  return {{"dataset", fmt::format("{:016x}", domain.hash)},
          {"text", fmt::format("{:016x}", text.checksum())}};
}

json read_embed_json(const Domain& domain) {
  const std::string path = place(domain, "embed.json");
  if (!std::filesystem::exists(path)) {
    throw Error(
        fmt::format("{}: there are no review embeddings; run 'cfaa_gpu embed {} --model "
                    "DIR' first",
                    domain.path.string(), domain.path.parent_path().string()));
  }
  json description;
  try {
    description = read_json(path);
  } catch (const Error&) {
    stale(domain, "is not what embed writes");
  }
  if (!description.is_object() || description.value("format", json()) != 1 ||
      !description.value("settings", json()).is_object() ||
      !description.value("counts", json()).is_object() ||
      !description.value("width", json()).is_number_integer()) {
    stale(domain, "is not what embed writes");
  }
  return description;
}

ReviewSums load_review_sums(const Domain& domain) {
  const json description = read_embed_json(domain);
  const json identity = review_identity(domain);
  for (const auto& [key, value] : identity.items()) {
    if (description["settings"].value(key, json()) == value) continue;
    stale(domain, key == "text" ? "was made from other review texts than there are now"
                                : "was made from other users, items or splits than there are now");
  }
  struct Files {
    NpyFile sums, counts;
  };
  const int64_t rows = domain.train.size(), width = description["width"];
  const auto files =
      std::make_shared<const Files>(Files{open_matrix(domain, "review_sums.npy", {rows, width}),
                                          open_matrix(domain, "review_counts.npy", {rows})});
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
  json a = read_embed_json(data.source)["settings"], b = read_embed_json(data.target)["settings"];
  // What is each domain's own, and the type, which is converted.
  for (const char* key : {"dataset", "text", "dtype"}) a.erase(key), b.erase(key);
  if (const std::string what = setting_difference(a, b); !what.empty()) {
    stale(data.target, fmt::format("the source was embedded with {}", what));
  }
  return sums;
}

}  // namespace cfaa
