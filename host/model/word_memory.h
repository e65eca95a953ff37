#pragma once

// Users and items by a memory of words (TDAR). A side's rows are
//
//   z_r = (U_r, E_r),  E_r = sum_w a_rw s_w,  a_rw = softmax over the words w of r of <P_r, T_w>
//
// over the distinct words of the reviews of user (item) r without the one to be predicted; U and P
// are the id's own rows of two tables, T the words' keys, s their fixed vectors, of unit length on
// average. There are no layers.

#include <memory>
#include <span>
#include <vector>

#include "host/core/tensor.h"
#include "host/model/encoder.h"

namespace cfaa {

template <class T>
struct WordMemoryRun final : EncoderRun<T> {
  using EncoderRun<T>::EncoderRun;
  void show(const typename EncoderRun<T>::Show& show) const override { show("words", words); }

  const SideBatch<T>* batch = nullptr;
  MatrixView<T> words;  // (V, width of a word's vector)
  MatrixView<T> query;  // (R, K) P
  VectorView<T> share;  // of every entry of the bags of words: a
};

template <class T>
class WordMemory final : public Encoder<T> {
 public:
  // Error where model.dim is not the sum of both parts.
  WordMemory(Context& context, const ModelOptions& options, const ModelShape& shape,
             Parameters<T>& parameters);

  std::unique_ptr<EncoderRun<T>> prepare(Context& context, std::size_t domain, std::size_t side,
                                         const SideBatch<T>& batch, MatrixView<T> z) const override;
  void forward(Context& context, EncoderRuns<T> runs, const StepState* state,
               MathMode math) const override;
  std::vector<TableGradient<T>> backward(Context& context, EncoderRuns<T> runs,
                                         std::span<const MatrixView<T>> dz, const Batch<T>& batch,
                                         const StepState* state, MathMode math) const override;
  const EncoderLayers& layers(std::size_t, std::size_t) const override { return none_; }

 private:
  struct Side {
    int id = -1, query = -1, key = -1;  // tables: U, P, T
  };

  Parameters<T>& parameters_;
  int64_t rows_dim_;  // K
  EncoderLayers none_;
  PerDomain<Tensor<T, 2>> words_;
  PerDomain<PerSide<Side>> sides_;
};

}  // namespace cfaa
