#include "host/train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
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

fs::path with_suffix(fs::path stem, const std::string& suffix) {
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

TrainState state_from(const json& manifest, const fs::path& path) {
  const auto state = manifest.find("state");
  if (state == manifest.end() || !state->is_object()) {
    throw Error(path.string() + ": is damaged (it has no 'state' of a training)");
  }
  const json all = to_json(TrainState{});
  for (const auto& [name, value] : all.items()) {
    if (!state->contains(name)) {
      throw Error(fmt::format("{}: is damaged (its state has no '{}')", path.string(), name));
    }
  }
  TrainState read;
  read.step = field<int64_t>(*state, "step", 0, path);
  read.best = field<double>(*state, "best", 0, path);
  read.best_step = field<int64_t>(*state, "best_step", 0, path);
  read.waited = field<int64_t>(*state, "waited", 0, path);
  read.finished = field<bool>(*state, "finished", false, path);
  if (read.step < 0 || read.best_step > read.step || read.waited < 0) {
    throw Error(path.string() + ": is damaged (its steps do not go together)");
  }
  return read;
}

// One file of arrays and a manifest beside it with its name, size and hash: a checkpoint, or best.
class ArraysFile {
 public:
  // Gives the arrays' bytes to the system; without `moments`, those of the weights alone.
  template <class T>
  ArraysFile(Context& context, const fs::path& path, Parameters<T>& parameters, bool moments);
  ArraysFile(const ArraysFile&) = delete;
  ArraysFile& operator=(const ArraysFile&) = delete;

  // Waits for the disk, puts the file in its place, then the manifest: `fields` and the hash.
  void commit(const fs::path& manifest, json fields);

 private:
  fs::path path_;
  AtomicFile file_;
  std::size_t bytes_ = 0;
  std::string hash_;
};

// The arrays that a manifest names, which are there and whole.
struct CheckedArrays {
  json manifest;
  fs::path arrays;
};

// Manifests of version 0.1.0 do not name the file: it is beside, of the same name.
fs::path arrays_of(const json& manifest, const fs::path& path) {
  fs::path beside = path;
  beside.replace_extension(".safetensors");
  const std::string name = field<std::string>(manifest, "file", beside.filename().string(), path);
  return path.parent_path() / fs::path(name).filename();
}

CheckedArrays check_arrays(const fs::path& path) {
  const json manifest = read_json(path);
  if (!manifest.is_object() || !manifest.contains("xxh3_128") || !manifest.contains("bytes")) {
    throw Error(path.string() + ": is not a manifest of this program");
  }
  const fs::path arrays = arrays_of(manifest, path);
  const MappedFile file(arrays.string());
  if (file.bytes().size() != field<std::size_t>(manifest, "bytes", 0, path) ||
      content_hash(file) != field<std::string>(manifest, "xxh3_128", "", path)) {
    throw Error(arrays.string() + ": is damaged (its bytes are not those of the manifest)");
  }
  return {manifest, arrays};
}

template <class T>
ArraysFile::ArraysFile(Context& context, const fs::path& path, Parameters<T>& parameters,
                       bool moments)
    : path_(path), file_(path.string()) {
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

void ArraysFile::commit(const fs::path& manifest, json fields) {
  file_.commit();
  fields["file"] = path_.filename().string();
  fields["bytes"] = bytes_;
  fields["xxh3_128"] = hash_;
  write_file(manifest.string(), fields.dump(2) + "\n");
}

// Removes the best arrays of other steps than the manifest names.
void sweep_best(const fs::path& stem) {
  const fs::path manifest = with_suffix(stem, ".json");
  std::error_code ignored;
  const fs::path kept =
      fs::exists(manifest) ? arrays_of(read_json_object(manifest), manifest) : fs::path();
  const std::string name = stem.filename().string();
  for (const auto& entry : fs::directory_iterator(stem.parent_path(), ignored)) {
    const std::string file = entry.path().filename().string();
    if ((file.starts_with(name + "-") || file.starts_with(name + ".")) &&
        file.ends_with(".safetensors") && file != kept.filename()) {
      fs::remove(entry.path(), ignored);
    }
  }
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
  const fs::path arrays = with_suffix(stem, fmt::format("-{:08}.safetensors", best.step));
  ArraysFile(context, arrays, parameters, false)
      .commit(with_suffix(stem, ".json"),
              {{"step", best.step}, {"metric", best.metric}, {"value", best.value}});
  sweep_best(stem);
}

template <class T>
BestParameters restore_best(Context& context, const fs::path& stem, Parameters<T>& parameters) {
  const fs::path manifest = with_suffix(stem, ".json");
  if (!fs::exists(manifest)) {
    throw Error(stem.parent_path().string() +
                ": has no best parameters yet; let 'cfaa_gpu train' reach its first validation");
  }
  const CheckedArrays checked = check_arrays(manifest);
  restore_parameters<T>(context, checked.arrays.string(), parameters, false);
  return {field<int64_t>(checked.manifest, "step", 0, manifest),
          field<std::string>(checked.manifest, "metric", "", manifest),
          field<double>(checked.manifest, "value", 0, manifest)};
}

void sweep_arrays(const fs::path& best, const fs::path& checkpoints) {
  sweep_best(best);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(checkpoints, ignored)) {
    fs::path manifest = entry.path();
    manifest.replace_extension(".json");
    if (entry.path().extension() == ".safetensors" && !fs::exists(manifest)) {
      fs::remove(entry.path(), ignored);
    }
  }
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
    if (entry.path().extension() != ".json") continue;
    const std::string stem = entry.path().stem().string();
    int64_t step = -1;
    if (stem.starts_with("step-")) std::from_chars(&stem[5], stem.data() + stem.size(), step);
    if (step >= 0 && stem == stem_of(step)) found.push_back(step);
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
  const fs::path stem = directory_ / stem_of(state.step);
  const auto file =
      std::make_shared<ArraysFile>(context, with_suffix(stem, ".safetensors"), parameters, true);
  writer_ = std::thread([this, file, state, manifest = with_suffix(stem, ".json")] {
    try {
      file->commit(manifest, {{"state", to_json(state)}});
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
    const fs::path manifest = with_suffix(stem, ".json");
    const CheckedArrays checked = check_arrays(manifest);
    const TrainState state = state_from(checked.manifest, manifest);
    if (state.step != *chosen) {
      throw Error(fmt::format("{}: is damaged (it is of step {})", manifest.string(), state.step));
    }
    return Found{*chosen, checked.arrays.string(), state};
  } catch (const Error& damage) {
    const std::string before =
        chosen == known.begin()
            ? "there is none before it: start over with --fresh"
            : fmt::format("resume from the one before it with --from {}", *(chosen - 1));
    throw Error(fmt::format("{}; {}", damage.what(), before));
  }
}

#define CFAA_INSTANTIATE(T)                                                                      \
  template void restore_parameters<T>(Context&, const std::string&, Parameters<T>&, bool);       \
  template void write_best<T>(Context&, const fs::path&, Parameters<T>&, const BestParameters&); \
  template BestParameters restore_best<T>(Context&, const fs::path&, Parameters<T>&);            \
  template void Checkpoints::write<T>(Context&, Parameters<T>&, const TrainState&);
CFAA_INSTANTIATE(float)
CFAA_INSTANTIATE(double)
#undef CFAA_INSTANTIATE

}  // namespace cfaa
