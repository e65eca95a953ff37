#include "host/train/trace.h"

#include <fmt/format.h>

#include <deque>
#include <nlohmann/json.hpp>

#include "host/core/columns.h"
#include "host/core/error.h"
#include "host/io/safetensors.h"

namespace cfaa {
namespace {

// Collects copies, which the writer needs alive until it writes.
template <class T>
class Collector {
 public:
  explicit Collector(Context& context) : context_(context) {}

  void add(const std::string& name, MatrixView<const T> array) {
    std::vector<T>& copy = floats_.emplace_back(static_cast<std::size_t>(array.size()));
    for (int64_t r = 0; r < array.rows(); ++r) {
      context_.runtime().copy_to_host(copy.data() + r * array.cols(),
                                      array.data + r * array.stride[0],
                                      static_cast<std::size_t>(array.cols()) * sizeof(T));
    }
    context_.runtime().synchronize();
    writer_.add(name, {array.rows(), array.cols()}, copy.data());
  }
  void add_host(const std::string& name, VectorView<T> values) {
    writer_.add(name, {values.size()}, values.data);
  }
  void add_host(const std::string& name, VectorView<int32_t> values) {
    writer_.add(name, {values.size()}, values.data);
  }
  void add_metadata(const std::string& key, const std::string& value) {
    writer_.add_metadata(key, value);
  }
  void write(const std::string& path) { writer_.write(path); }

 private:
  Context& context_;
  SafetensorsWriter writer_;
  std::deque<std::vector<T>> floats_;
};

template <class T>
void add_lists(Collector<T>& collector, const std::string& name, const EdgeLists<T>& lists) {
  if (lists.offset.data == nullptr) return;
  const int64_t entries = lists.offset.data[lists.offset.size() - 1];
  collector.add_host(name + ".offset", lists.offset);
  collector.add_host(name + ".index", VectorView<int32_t>(lists.index.data, {entries}));
  collector.add_host(name + ".weight", VectorView<T>(lists.weight.data, {entries}));
  collector.add_host(name + ".touched",
                     VectorView<int32_t>(lists.touched_row.data, {lists.touched_count.data[0]}));
}

}  // namespace

template <class T>
void write_trace(Context& context, const std::filesystem::path& directory, int64_t step,
                 StepRunner<T>& runner, Cfaa<T>& model, const RunConfig& config) {
  std::filesystem::create_directories(directory);
  Collector<T> collector(context);
  model.parameters().for_each([&](const std::string& name, MatrixView<T> array) {
    collector.add("before." + name, array);
  });
  // A tower's input ends with them, as they were made on the device.
  const int64_t reviews = runner.shape().review_dim > 0 ? runner.shape().review_dim + 1 : 0;
  NamedArrays<T> arrays(model.parameters(), [&](const std::string& name, MatrixView<const T> array,
                                                VectorView<const int32_t>) {
    collector.add(name, array);
    if (reviews > 0 && name.starts_with("x.")) {
      collector.add("batch." + name.substr(2) + ".review",
                    columns(array, array.cols() - reviews, reviews));
    }
  });
  runner.run_observed(step, arrays);
  model.parameters().for_each(
      [&](const std::string& name, MatrixView<T> array) { collector.add("after." + name, array); });

  const Batch<T>& batch = runner.host_batch();
  for (std::size_t d = 0; d < 2; ++d) {
    if (!config.train.uses(d)) continue;
    const std::string domain = d == kSource ? "batch.source" : "batch.target";
    collector.add_host(domain + ".label", batch.domain[d].label);
    collector.add_host(domain + ".weight", batch.domain[d].weight);
    if (batch.domain[d].offset.data != nullptr) {
      collector.add_host(domain + ".offset", batch.domain[d].offset);
    }
    for (std::size_t s = 0; s < 2; ++s) {
      const std::string name = "batch." + tower_name(d, s);
      const SideBatch<T>& side = batch.domain[d].side[s];
      add_lists(collector, name + ".id", side.id);
      add_lists(collector, name + ".history", side.history);
      add_lists(collector, name + ".reviews", side.text.reviews);
      add_lists(collector, name + ".counterpart", side.text.counterpart);
      add_lists(collector, name + ".key", side.text.words);
      if (side.text.offset.data != nullptr) {
        const int64_t words = side.text.offset.data[side.text.offset.size() - 1];
        collector.add_host(name + ".text.offset", side.text.offset);
        collector.add_host(name + ".text.word", VectorView<int32_t>(side.text.word.data, {words}));
      }
    }
  }
  RunConfig copy = config;
  collector.add_metadata("config", copy.to_json().dump());
  collector.add_metadata("step", std::to_string(step));
  const std::vector<LossTerm> losses = config.model.losses.used();
  for (std::size_t i = 0; i < losses.size(); ++i) {
    collector.add_metadata("weight." + losses[i].name,
                           fmt::format("{}", batch.loss_weight.data[i]));
  }
  collector.write((directory / fmt::format("step-{:08}.safetensors", step)).string());
}

#define CFAA_INSTANTIATE(T)                                                                     \
  template void write_trace<T>(Context&, const std::filesystem::path&, int64_t, StepRunner<T>&, \
                               Cfaa<T>&, const RunConfig&);
CFAA_INSTANTIATE(float)
CFAA_INSTANTIATE(double)
#undef CFAA_INSTANTIATE

}  // namespace cfaa
