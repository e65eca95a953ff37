#include "host/train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "host/core/error.h"
#include "host/io/atomic_file.h"
#include "host/io/content_hash.h"
#include "host/io/json_file.h"
#include "host/io/safetensors.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string stem_of(int64_t step) {
  return fmt::format("step-{:08}", step);
}

fs::path with_suffix(fs::path stem, const char* suffix) {
  stem += suffix;
  return stem;
}

json to_json(const TrainState& state) {
  return {{"step", state.step},
          {"best", state.best},
          {"best_step", state.best_step},
          {"waited", state.waited},
          {"finished", state.finished}};
}

TrainState state_from(const json& fields) {
  return {fields.at("step"), fields.at("best"), fields.at("best_step"), fields.at("waited"),
          fields.at("finished")};
}

// One file of arrays and, with its size and hash, a manifest beside it: a checkpoint, or the best.
class ArraysFile {
 public:
  // Gives the arrays' bytes to the system; without `moments`, those of the weights alone.
  template <class T>
  ArraysFile(Context& context, const fs::path& stem, Parameters<T>& parameters, bool moments);
  ArraysFile(const ArraysFile&) = delete;
  ArraysFile& operator=(const ArraysFile&) = delete;

  // Waits for the disk, puts the file in its place, then the manifest: `fields` and the hash.
  void commit(json fields);

  // The manifest of `stem`.json; Error where the file beside it is damaged.
  static json check(const fs::path& stem);

 private:
  fs::path stem_;
  AtomicFile file_;
  std::size_t bytes_ = 0;
  std::string hash_;
};

template <class T>
ArraysFile::ArraysFile(Context& context, const fs::path& stem, Parameters<T>& parameters,
                       bool moments)
    : stem_(stem), file_(with_suffix(stem, ".safetensors").string()) {
  ContentHash hash;
  const auto write = [&](const void* bytes, std::size_t count) {
    hash.add(bytes, count);
    file_.write(bytes, count);
    bytes_ += count;
  };
  const auto for_each = [&](const std::function<void(const std::string&, MatrixView<T>)>& visit) {
    parameters.for_each([&](const std::string& name, MatrixView<T> array) {
      if (moments || !name.starts_with("adam.")) visit(name, array);
    });
  };
  SafetensorsWriter writer;
  for_each([&](const std::string& name, MatrixView<T> array) {
    writer.add(name, {array.rows(), array.cols()}, static_cast<const T*>(nullptr));
  });
  const std::string header = writer.header();
  write(header.data(), header.size());
  constexpr int64_t kPiece = 1 << 18;  // elements: a megabyte or two
  for_each([&](const std::string&, MatrixView<T> array) {
    for (int64_t first = 0; first < array.size(); first += kPiece) {
      const int64_t count = std::min(kPiece, array.size() - first);
      const std::vector<T> piece = to_host(context, VectorView<T>{array.data + first, {count}});
      write(piece.data(), piece.size() * sizeof(T));
    }
  });
  hash_ = hash.text();
}

void ArraysFile::commit(json fields) {
  file_.commit();
  fields["bytes"] = bytes_;
  fields["xxh3_128"] = hash_;
  write_file(with_suffix(stem_, ".json").string(), fields.dump(2) + "\n");
}

json ArraysFile::check(const fs::path& stem) {
  const std::string manifest_path = with_suffix(stem, ".json").string();
  const json manifest = read_json(manifest_path);
  if (!manifest.is_object() || !manifest.contains("xxh3_128") || !manifest.contains("bytes")) {
    throw Error(manifest_path + ": is not a manifest of this program");
  }
  const std::string path = with_suffix(stem, ".safetensors").string();
  const MappedFile file(path);
  if (file.bytes().size() != manifest["bytes"].get<std::size_t>() ||
      content_hash(file) != manifest["xxh3_128"].get<std::string>()) {
    throw Error(path + ": is damaged (its bytes are not those of the manifest)");
  }
  return manifest;
}

}  // namespace

template <class T>
void restore_parameters(Context& context, const std::string& path, Parameters<T>& parameters,
                        bool moments) {
  const SafetensorsFile file(path);
  parameters.for_each([&](const std::string& name, MatrixView<T> array) {
    if (!moments && name.starts_with("adam.")) return;
    const SafetensorsEntry& entry = file.entry(name);
    if (entry.shape != std::vector<int64_t>{array.rows(), array.cols()}) {
      throw Error(
          fmt::format("{}: '{}' has the shape ({}) where this model has ({}, {}); it "
                      "belongs to another configuration or dataset",
                      path, name, fmt::join(entry.shape, ", "), array.rows(), array.cols()));
    }
    const std::vector<T> values = file.read<T>(name);
    context.runtime().copy_from_host(array.data, values.data(), values.size() * sizeof(T));
    context.runtime().synchronize();
  });
}

template <class T>
void write_best(Context& context, const fs::path& stem, Parameters<T>& parameters,
                const BestParameters& best) {
  ArraysFile(context, stem, parameters, false)
      .commit({{"step", best.step}, {"metric", best.metric}, {"value", best.value}});
}

template <class T>
void restore_best(Context& context, const fs::path& stem, Parameters<T>& parameters) {
  if (!fs::exists(with_suffix(stem, ".json"))) {
    throw Error(stem.parent_path().string() +
                ": has no best parameters yet; let 'cfaa_gpu train' reach its first validation");
  }
  ArraysFile::check(stem);
  restore_parameters<T>(context, with_suffix(stem, ".safetensors").string(), parameters, false);
}

Checkpoints::Checkpoints(fs::path directory, int64_t keep)
    : directory_(std::move(directory)), keep_(keep) {
  std::error_code ignored;
  fs::create_directories(directory_, ignored);
}

Checkpoints::~Checkpoints() {
  if (writer_.joinable()) writer_.join();
}

std::vector<int64_t> Checkpoints::steps() const {
  std::vector<int64_t> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory_, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("step-") || entry.path().extension() != ".json") continue;
    found.push_back(std::strtoll(name.c_str() + 5, nullptr, 10));
  }
  std::sort(found.begin(), found.end());
  return found;
}

void Checkpoints::remove_oldest() const {
  std::vector<int64_t> known = steps();
  while (static_cast<int64_t>(known.size()) > keep_) {
    // The manifest goes first: without it the arrays are nobody's.
    const fs::path stem = directory_ / stem_of(known.front());
    fs::remove(with_suffix(stem, ".json"));
    fs::remove(with_suffix(stem, ".safetensors"));
    known.erase(known.begin());
  }
}

template <class T>
void Checkpoints::write(Context& context, Parameters<T>& parameters, const TrainState& state) {
  finish();
  const auto file =
      std::make_shared<ArraysFile>(context, directory_ / stem_of(state.step), parameters, true);
  writer_ = std::thread([this, file, state] {
    try {
      file->commit({{"state", to_json(state)}});
      remove_oldest();
    } catch (...) {
      failure_ = std::current_exception();
    }
  });
}

void Checkpoints::finish() {
  if (writer_.joinable()) writer_.join();
  if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
}

std::optional<Checkpoints::Found> Checkpoints::newest(int64_t step) const {
  const std::vector<int64_t> known = steps();
  if (known.empty()) return std::nullopt;
  auto chosen = known.end() - 1;
  if (step >= 0) {
    chosen = std::find(known.begin(), known.end(), step);
    if (chosen == known.end()) {
      throw Error(fmt::format("{}: has no checkpoint of step {}; there are those of {}",
                              directory_.string(), step, fmt::join(known, ", ")));
    }
  }
  const fs::path stem = directory_ / stem_of(*chosen);
  try {
    const json manifest = ArraysFile::check(stem);
    return Found{*chosen, with_suffix(stem, ".safetensors").string(),
                 state_from(manifest.at("state"))};
  } catch (const std::exception& damage) {
    const std::string before =
        chosen == known.begin()
            ? "there is none before it: start over with --fresh"
            : fmt::format("resume from the one before it with --from {}", *(chosen - 1));
    throw Error(fmt::format("{}; {}", damage.what(), before));
  }
}

void Checkpoints::clear() {
  finish();
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
  fs::create_directories(directory_, ignored);
}

#define CFAA_INSTANTIATE(T)                                                                      \
  template void restore_parameters<T>(Context&, const std::string&, Parameters<T>&, bool);       \
  template void write_best<T>(Context&, const fs::path&, Parameters<T>&, const BestParameters&); \
  template void restore_best<T>(Context&, const fs::path&, Parameters<T>&);                      \
  template void Checkpoints::write<T>(Context&, Parameters<T>&, const TrainState&);
CFAA_INSTANTIATE(float)
CFAA_INSTANTIATE(double)
#undef CFAA_INSTANTIATE

}  // namespace cfaa
