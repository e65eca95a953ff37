#include "host/model/word_memory.h"

#include <fmt/format.h>

#include <cmath>

#include "host/core/columns.h"
#include "host/core/error.h"
#include "host/ops/embedding_bag.h"
#include "host/ops/word_attention.h"

namespace cfaa {
namespace {

constexpr double kScale = 1;  // of the logits, as in the paper

// Words come at unit RMS; products of their means are to be of the order of one.
template <class T>
std::vector<T> unit_length(MatrixView<const float> words) {
  std::vector<T> values(words.data, words.data + words.size());
  const T scale = static_cast<T>(1 / std::sqrt(static_cast<double>(words.cols())));
  for (T& value : values) value *= scale;
  return values;
}

}  // namespace

template <class T>
WordMemory<T>::WordMemory(Context& context, const ModelOptions& options, const ModelShape& shape,
                          Parameters<T>& parameters)
    : parameters_(parameters), rows_dim_(options.id_columns()) {
  for (std::size_t d = 0; d < 2; ++d) {
    if (!shape.used[d]) continue;
    const MatrixView<const float> words = shape.words[d];
    if (options.z_columns() != rows_dim_ + words.cols()) {
      throw Error(fmt::format(
          "model.dim is {}, and model.encoder is word_memory: it must be model.id_dim and the size "
          "of a word's vector, {} + {} = {}",
          options.dim, rows_dim_, words.cols(), rows_dim_ + words.cols()));
    }
    words_[d] = Tensor<T, 2>(context, words.shape, unit_length<T>(words).data());
    for (std::size_t s = 0; s < 2; ++s) {
      const std::string name = tower_name(d, s);
      const int64_t count = shape.count[d][s];
      sides_[d][s] = {parameters.add_table(context, name + ".id", count, rows_dim_),
                      parameters.add_table(context, name + ".query", count, rows_dim_),
                      parameters.add_table(context, name + ".key", words.rows(), rows_dim_)};
    }
  }
}

template <class T>
std::unique_ptr<EncoderRun<T>> WordMemory<T>::prepare(Context& context, std::size_t domain,
                                                      std::size_t side, const SideBatch<T>& batch,
                                                      MatrixView<T> z) const {
  auto run = std::make_unique<WordMemoryRun<T>>(domain, side, z);
  run->batch = &batch;
  run->words = words_[domain].view();
  run->query = context.scratch().template take<T, 2>({z.rows(), rows_dim_});
  run->share = context.scratch().template take<T, 1>({batch.text.words.index.size()});
  return run;
}

template <class T>
void WordMemory<T>::forward(Context& context, EncoderRuns<T> runs, const StepState*,
                            MathMode) const {
  for (const auto& each : runs) {
    const auto& run = static_cast<const WordMemoryRun<T>&>(*each);
    const Side& side = sides_[run.domain][run.side];
    const Bags<T> ids = run.batch->id.bags();
    embedding_bag<T>(context, parameters_.table(side.id).w, ids, columns(run.z, 0, rows_dim_));
    embedding_bag<T>(context, parameters_.table(side.query).w, ids, run.query);
    word_attention<T>(context, run.query, parameters_.table(side.key).w, run.words, kScale,
                      run.batch->text.words.bags(), columns(run.z, rows_dim_, run.words.cols()),
                      run.share);
  }
}

template <class T>
std::vector<TableGradient<T>> WordMemory<T>::backward(Context& context, EncoderRuns<T> runs,
                                                      std::span<const MatrixView<T>> dz,
                                                      const Batch<T>&, const StepState*,
                                                      MathMode) const {
  Arena& arena = context.scratch();
  std::vector<TableGradient<T>> tables;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto& run = static_cast<const WordMemoryRun<T>&>(*runs[i]);
    const Side& side = sides_[run.domain][run.side];
    const TouchedRows<T> entities = run.batch->id.touched(),
                         words = run.batch->text.words.touched();
    const MatrixView<T> dquery = arena.take<T, 2>(run.query.shape);
    const MatrixView<T> dkey = arena.take<T, 2>({words.row.size(), rows_dim_});
    word_attention_backward<T>(context, run.query, parameters_.table(side.key).w, run.words, kScale,
                               run.batch->text.words.bags(), run.share,
                               columns(dz[i], rows_dim_, run.words.cols()), words, dquery, dkey);
    tables.push_back({side.key, words, dkey});
    const auto add = [&](int table, MatrixView<T> dout) {
      const MatrixView<T> gradient = arena.take<T, 2>({entities.row.size(), rows_dim_});
      embedding_bag_backward<T>(context, dout, entities, gradient);
      tables.push_back({table, entities, gradient});
    };
    add(side.query, dquery);
    add(side.id, columns(dz[i], 0, rows_dim_));
  }
  return tables;
}

template class WordMemory<float>;
template class WordMemory<double>;

}  // namespace cfaa
