#include "host/run/baseline/kept_baseline.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/io/atomic_file.h"
#include "host/io/json_file.h"
#include "host/io/safetensors.h"
#include "host/run/run.h"

namespace cfaa {
namespace {

using nlohmann::json;

constexpr PerSide<const char*> kArrays = {"users", "items"};

BaselineDescription read_baseline(const RunDirectory& place) {
  const std::filesystem::path path = place.baseline();
  const json fields = read_json_object(path);
  BaselineDescription description;
  description.name = field<std::string>(fields, "baseline", "", path);
  description.domain = field<std::string>(fields, "domain", "", path);
  description.data = field<std::string>(fields, "data", "", path);
  description.dataset = field<std::string>(fields, "dataset", "", path);
  if (description.name.empty() || description.data.empty() || !fields.contains("options")) {
    throw Error(path.string() + ": is not the description of a baseline");
  }
  domain_index(description.domain);
  baseline_option_set(description.options).read(fields["options"], path.string());
  return description;
}

Dataset dataset_of(const RunDirectory& place, const BaselineDescription& description,
                   const std::string& data) {
  const std::string at = data.empty() ? description.data : data;
  if (!std::filesystem::exists(at)) {
    throw Error(
        fmt::format("{}: its data is no longer at {}; say where with --data", place.name(), at));
  }
  Dataset dataset = load_dataset(at);
  if (dataset.hash != description.dataset) {
    throw Error(fmt::format("{}: is not the data that {} was made from", at, place.name()));
  }
  return dataset;
}

}  // namespace

void keep_baseline(const RunDirectory& place, BaselineDescription description,
                   const DomainEmbeddings& embeddings) {
  if (embeddings.dim > 0) {
    SafetensorsWriter writer;
    for (const std::size_t side : {kUser, kItem}) {
      writer.add(kArrays[side], {embeddings.count[side], embeddings.dim},
                 embeddings.z[side].data());
    }
    writer.write(place.baseline_arrays().string());
  }
  const json fields = {{"baseline", description.name},
                       {"domain", description.domain},
                       {"options", baseline_option_set(description.options).current()},
                       {"data", description.data},
                       {"dataset", description.dataset}};
  write_file(place.baseline().string(), fields.dump(2) + "\n");
}

KeptBaseline::KeptBaseline(Context& context, const RunDirectory& place, const std::string& data)
    : context_(context),
      place_(place),
      description_(read_baseline(place)),
      dataset_(dataset_of(place, description_, data)),
      signals_(context, description_.domain == "source" ? dataset_.source : dataset_.target) {}

std::vector<std::size_t> KeptBaseline::domains() const {
  return {domain_index(description_.domain)};
}

const Domain& KeptBaseline::domain(std::size_t which) const {
  if (which != domains()[0]) {
    throw Error(fmt::format("{}: is a baseline of the {} domain; give --domain {}", place_.name(),
                            description_.domain, description_.domain));
  }
  return which == kSource ? dataset_.source : dataset_.target;
}

DomainEmbeddings KeptBaseline::embed(std::size_t which) {
  const Domain& of = domain(which);
  DomainEmbeddings embeddings;
  embeddings.count = {of.users.size(), of.items.size()};
  if (description_.name != "mf") return embeddings;
  const SafetensorsFile file(place_.baseline_arrays().string());
  for (const std::size_t side : {kUser, kItem}) {
    const std::vector<int64_t> shape = file.entry(kArrays[side]).shape;
    if (shape.size() != 2 || shape[0] != embeddings.count[side] ||
        (side == kItem && shape[1] != embeddings.dim)) {
      throw Error(place_.baseline_arrays().string() + ": does not fit the baseline's data");
    }
    embeddings.dim = shape[1];
    embeddings.z[side] = file.read<float>(kArrays[side]);
  }
  return embeddings;
}

const Scorer& KeptBaseline::ranking(std::size_t which) {
  if (scorer_ == nullptr) {
    embeddings_ = embed(which);
    scorer_ = embeddings_.dim > 0 ? make_scorer(context_, embeddings_, {})
                                  : signals_.scorer(description_.name, description_.options);
  }
  domain(which);  // an Error for the other one
  return *scorer_;
}

}  // namespace cfaa
