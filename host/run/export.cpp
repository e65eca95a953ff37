#include "host/run/export.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <variant>

#include "host/core/error.h"
#include "host/io/atomic_file.h"
#include "host/io/npy.h"
#include "host/io/owned_output.h"
#include "host/io/parquet.h"
#include "host/io/safetensors.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Array {
  std::string name;
  std::vector<int64_t> shape;
  std::variant<std::vector<float>, std::vector<int32_t>, std::vector<int64_t>> values;
};

struct Ids {
  std::string name;
  const IdList* ids;
};

void write_ids(const fs::path& path, const IdList& ids) {
  AtomicFile file(path.string());
  file.write("index\tid\n");
  for (int64_t i = 0; i < ids.size(); ++i) file.write(fmt::format("{}\t{}\n", i, ids[i]));
  file.commit();
}

void write_table(const fs::path& path, const Array& array, const IdList& ids) {
  const auto& values = std::get<std::vector<float>>(array.values);
  write_parquet(path.string(), ids.size(),
                {{"id", [&](int64_t row) { return ids[row]; }},
                 {"vector", {}, values.data(), array.shape.back()}});
}

const char* score_text(const ScorerArrays& scorer) {
  if (scorer.layers.empty()) return "score(u, i) = <users[u], items[i]>";
  return scorer.dot ? "score(u, i) = <users[u], items[i]> + mlp([users[u], items[i]])"
                    : "score(u, i) = mlp([users[u], items[i]])";
}

void check_request(const RankingModel& model, const ScorerArrays& scorer,
                   const ExportRequest& request) {
  if (RunDirectory(request.out).is_run()) {
    throw Error(
        fmt::format("--out {}: is a run, whose files an export would replace; give a "
                    "directory of its own",
                    request.out.string()));
  }
  if (request.vectors == ExportVectors::inner_product && !scorer.layers.empty()) {
    throw Error(
        fmt::format("{}: its scorer has an MLP (model.scorer), so "
                    "that no inner product of vectors ranks as it does; export without --as faiss, "
                    "or train with model.scorer=dot",
                    model.directory().name()));
  }
}

std::vector<Array> scorer_layers(const ScorerArrays& scorer) {
  std::vector<Array> arrays;
  for (std::size_t l = 0; l < scorer.layers.size(); ++l) {
    const ScorerLayer& layer = scorer.layers[l];
    arrays.push_back({fmt::format("scorer_{}_weight", l), {layer.out, layer.in}, layer.weight});
    arrays.push_back({fmt::format("scorer_{}_bias", l), {layer.out}, layer.bias});
  }
  return arrays;
}

template <class T>
Array flat(const std::string& name, const std::vector<T>& values) {
  return {name, {static_cast<int64_t>(values.size())}, values};
}

void add_sparse(const std::string& name, const SparseRows& rows, std::vector<Array>& arrays) {
  arrays.push_back(flat(name + "_offset", rows.offset));
  arrays.push_back(flat(name + "_column", rows.column));
  arrays.push_back(flat(name + "_value", rows.value));
}

// What is written, and what is said of it.
struct Contents {
  std::vector<Array> arrays;
  std::vector<Ids> ids;
  std::string score;
  std::size_t mlp_layers = 0;
};

// Of a run of signals, to which a residual's embeddings are added.
void add_signals(RankingModel& model, Contents& all) {
  for (const std::size_t d : model.domains()) {
    const SignalScores& scores = model.signals(d)->scores();
    const Domain& domain = model.domain(d);
    add_sparse(domain.name + "_left", scores.left(), all.arrays);
    add_sparse(domain.name + "_right", scores.right(), all.arrays);
    if (scores.dim() > 0) {
      all.arrays.push_back(
          {domain.name + "_user_factors", {scores.users(), scores.dim()}, scores.user_factors()});
      all.arrays.push_back(
          {domain.name + "_item_factors", {scores.items(), scores.dim()}, scores.item_factors()});
    }
  }
}

Contents signal_contents(RankingModel& model) {
  Contents all;
  all.score = "score(u, i) = <left[u], right[:, i]> + <user_factors[u], item_factors[i]>";
  add_signals(model, all);
  for (const std::size_t d : model.domains()) {
    const Domain& domain = model.domain(d);
    all.ids.push_back({domain.name + "_users", &domain.users});
    all.ids.push_back({domain.name + "_items", &domain.items});
  }
  return all;
}

Contents embedding_contents(RankingModel& model, const ScorerArrays& scorer) {
  Contents all{scorer_layers(scorer), {}, score_text(scorer), scorer.layers.size()};
  for (const std::size_t d : model.domains()) {
    DomainEmbeddings vectors = model.embed(d);
    const Domain& domain = model.domain(d);
    if (vectors.dim == 0) {
      throw Error(model.directory().name() +
                  ": this baseline has no embeddings to export; write its lists with "
                  "'cfaa_gpu recommend --all'");
    }
    for (const std::size_t side : {kUser, kItem}) {
      const std::string name = domain.name + (side == kUser ? "_users" : "_items");
      const bool own = vectors.ranking_dim > 0;
      all.arrays.push_back({name,
                            {vectors.count[side], own ? vectors.ranking_dim : vectors.dim},
                            std::move(own ? vectors.ranking[side] : vectors.z[side])});
      all.ids.push_back({name, side == kUser ? &domain.users : &domain.items});
    }
  }
  return all;
}

Contents residual_contents(RankingModel& model, const ScorerArrays& scorer) {
  Contents all = embedding_contents(model, scorer);
  const std::string of_model = all.score.substr(all.score.find('=') + 2);
  all.score = fmt::format(
      "score(u, i) = <left[u], right[:, i]> + <user_factors[u], item_factors[i]> + {} ({})",
      model.residual_share(), of_model);
  add_signals(model, all);
  return all;
}

Contents contents_of(RankingModel& model, const ExportRequest& request) {
  const bool signals = model.signals(model.domains().front()) != nullptr;
  if (signals && request.vectors == ExportVectors::inner_product) {
    throw Error(model.directory().name() +
                ": is a run of signals, whose scores are products of sparse vectors, which faiss "
                "does not take; export without --as faiss");
  }
  const bool embeddings = !signals || model.residual_share() > 0;
  const ScorerArrays scorer = embeddings ? model.scorer() : ScorerArrays{};
  check_request(model, scorer, request);
  if (!signals) return embedding_contents(model, scorer);
  return embeddings ? residual_contents(model, scorer) : signal_contents(model);
}

}  // namespace

ExportReport export_embeddings(RankingModel& model, const ExportRequest& request) {
  if (request.format == ExportFormat::parquet) require_parquet(request.out.string());
  const auto [arrays, ids, score, mlp_layers] = contents_of(model, request);
  ExportReport report{{}, score};
  const fs::path description = request.out / "scorer.json";
  const fs::path together = request.out / "embeddings.safetensors";
  const auto npy = [&](const Array& array) { return request.out / (array.name + ".npy"); };
  const auto tsv = [&](const Ids& of) { return request.out / (of.name + ".tsv"); };
  // The ids of an array's rows where both go into one table, or null.
  const auto table_ids = [&, &ids = ids](const Array& array) -> const IdList* {
    for (const Ids& of : ids) {
      if (request.format == ExportFormat::parquet && of.name == array.name) return of.ids;
    }
    return nullptr;
  };
  const auto table = [&](const Array& array) { return request.out / (array.name + ".parquet"); };
  for (const Ids& of : ids) report.files.push_back(tsv(of));
  for (const Array& array : arrays) {
    if (request.format == ExportFormat::safetensors) continue;
    report.files.push_back(table_ids(array) ? table(array) : npy(array));
  }
  if (request.format == ExportFormat::safetensors) report.files.push_back(together);
  report.files.push_back(description);

  fs::create_directories(request.out);
  OutputRecord record(request.out / "export.files.json", "export");
  record.claim(report.files, request.force);
  for (const Ids& of : ids) write_ids(tsv(of), *of.ids);
  SafetensorsWriter writer;
  for (const Array& array : arrays) {
    if (const IdList* rows = table_ids(array)) {
      write_table(table(array), array, *rows);
      continue;
    }
    std::visit(
        [&](const auto& values) {
          if (request.format == ExportFormat::safetensors) {
            writer.add(array.name, array.shape, values.data());
          } else {
            write_npy(npy(array).string(), array.shape, values.data());
          }
        },
        array.values);
  }
  if (request.format == ExportFormat::safetensors) writer.write(together.string());
  const json fields = {{"score", report.score},
                       {"mlp_layers", mlp_layers},
                       {"activation", "relu between layers"},
                       {"run", fs::absolute(model.directory().path()).lexically_normal().string()}};
  write_file(description.string(), fields.dump(2) + "\n");
  record.complete();
  return report;
}

}  // namespace cfaa
