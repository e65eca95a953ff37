#pragma once

// Users and items by the words of their reviews (DeepCoNN, NARRE). With o_e the text convolution of
// review e (host/ops/text_convolution.h) over fixed word vectors, a side's rows are
//
//   max        x_r = max_e o_e                                        (DeepCoNN)
//   attention  x_r = sum_e a_e o_e,  a = softmax over e of
//              h' max(0, W (o_e, max(0, q_e)) + b)                    (NARRE)
//   z_r = W0 x_r + b0 + the id's own row
//
// over the reviews e of user (item) r without the one to be predicted; q_e is the row of a table
// for whom the review is about (by). Each distinct review of a step is convolved once, and each
// word of the domain multiplied with the filters once. Filters are a side's own.

#include <memory>
#include <span>
#include <vector>

#include "host/core/tensor.h"
#include "host/model/encoder.h"
#include "host/ops/grouped_linear.h"

namespace cfaa {

template <class T>
struct ConvolutionRun final : EncoderRun<T> {
  using EncoderRun<T>::EncoderRun;
  void show(const typename EncoderRun<T>::Show& show) const override;

  const SideBatch<T>* batch = nullptr;
  MatrixView<T> words;           // (V, width of a word's vector)
  MatrixView<T> product;         // (V, window F)
  MatrixView<T> joined;          // (E, F + Q): o and, for attention, max(0, q)
  MatrixView<T> text;            // (E, F) o, in the first columns of `joined`
  MatrixView<int32_t> position;  // (E, F) where in the review o is from
  MatrixView<T> pooled, x;       // (R, F) before and after dropout
  MatrixView<int32_t> from;      // (R, F) of max: the review that x is from
  MatrixView<T> hidden, logit;   // (E, A), (E, 1) of attention
  MatrixView<T> softmax;         // (R, 2)
};

template <class T>
class Convolution final : public Encoder<T> {
 public:
  Convolution(Context& context, const ModelOptions& options, const ModelShape& shape,
              Parameters<T>& parameters);

  std::unique_ptr<EncoderRun<T>> prepare(Context& context, std::size_t domain, std::size_t side,
                                         const SideBatch<T>& batch, MatrixView<T> z) const override;
  void forward(Context& context, EncoderRuns<T> runs, const StepState* state,
               MathMode math) const override;
  std::vector<TableGradient<T>> backward(Context& context, EncoderRuns<T> runs,
                                         std::span<const MatrixView<T>> dz, const Batch<T>& batch,
                                         const StepState* state, MathMode math) const override;
  const EncoderLayers& layers(std::size_t domain, std::size_t side) const override {
    return sides_[domain][side].layers;
  }
  // The filters' biases, at 0.1.
  void start(Context& context) override;

 private:
  // Places of the weights; `kAttention` and `kLogit` are there with attention alone.
  enum Place : std::size_t { kFilters = 0, kAttention = 1, kLogit = 2 };
  struct Side {
    EncoderLayers layers;
    int id = -1, counterpart = -1;  // tables
  };

  bool attends() const { return options_.pooling == ReviewPooling::attention; }
  void add_layers(const std::string& prefix, int64_t word_width, Side& side);
  // What the filters' products and the logits, whose softmax would not see it, have none of.
  bool has_bias(const Side& side, std::size_t place) const;
  int bias(const Side& side, std::size_t place) const;
  LinearLayer<T> layer(const Side& side, std::size_t place, MatrixView<T> x, MatrixView<T> y) const;
  // Adds to the layer's gradients; dx may be empty.
  void layer_backward(Context& context, const Side& side, std::size_t place, MatrixView<T> x,
                      MatrixView<T> y, MatrixView<T> dy, MatrixView<T> dx, Activation activation,
                      MathMode math) const;

  void pool(Context& context, const Side& side, const ConvolutionRun<T>& run, MathMode math) const;
  // dx (R, F) of the pooled rows -> of the texts, (E, F).
  MatrixView<T> pool_backward(Context& context, const Side& side, const ConvolutionRun<T>& run,
                              MatrixView<T> dx, MathMode math,
                              std::vector<TableGradient<T>>& tables) const;

  const ModelOptions& options_;
  Parameters<T>& parameters_;
  PerDomain<Tensor<T, 2>> words_;
  Tensor<T, 1> no_bias_;  // (window F) zeros
  PerDomain<PerSide<Side>> sides_;
};

}  // namespace cfaa
