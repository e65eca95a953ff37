#pragma once

// What turns a user, or an item, into a row of Z: the first part of a model (`model.encoder`).
//
//   towers        ids, histories and review vectors through layers     host/model/towers.h
//   convolution   the words of the reviews (DeepCoNN, NARRE)           host/model/convolution.h
//   word_memory   words weighed by the id's own row (TDAR)             host/model/word_memory.h
//
// An encoder adds what it learns to the model's Parameters: a table's or a layer's name begins with
// its domain and side. It keeps nothing of a step itself: that is in the runs.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "host/core/context.h"
#include "host/core/math_mode.h"
#include "host/device/placed_bytes.h"
#include "host/model/batch.h"
#include "host/model/model_options.h"
#include "host/model/parameters.h"

namespace cfaa {

struct ModelShape {
  PerDomain<PerSide<int64_t>> count{};  // users and items of each domain
  int64_t review_dim = 0;               // 0 where `inputs` has no review
  // What review vectors are made from, in host memory that outlives the model; null without.
  PerDomain<PerSide<ReviewArrays>> reviews{};
  Placement review_placement = Placement::by_room;
  PerDomain<bool> used = {true, true};  // the others have no towers
  // Vectors of the words that a domain's reviews are made of, in host memory; empty where the
  // encoder reads none.
  PerDomain<MatrixView<const float>> words{};

  // Rows of a side's history table: a user's history is of items, an item's of users.
  int64_t history_rows(const ModelOptions& options, std::size_t domain, std::size_t side) const;
};

// What an encoder read and computed of one side's rows; lives in the arena.
template <class T>
struct EncoderRun {
  EncoderRun(std::size_t of_domain, std::size_t of_side, MatrixView<T> rows)
      : domain(of_domain), side(of_side), z(rows) {}
  virtual ~EncoderRun() = default;
  EncoderRun(const EncoderRun&) = delete;
  EncoderRun& operator=(const EncoderRun&) = delete;

  // What a trace shows beside z, by name: "x", "hidden0".
  using Show = std::function<void(const std::string& name, MatrixView<const T> array)>;
  virtual void show(const Show& show) const = 0;

  std::size_t domain, side;
  MatrixView<T> z;  // (R, D), rows may be padded
};

template <class T>
using EncoderRuns = std::span<const std::unique_ptr<EncoderRun<T>>>;

// The gradient of a table's touched rows; lives in the arena.
template <class T>
struct TableGradient {
  int table;  // of Parameters
  TouchedRows<T> touched;
  MatrixView<T> gradient;  // (capacity, columns), the first touched.count rows
};

// Layers of one side, by their numbers in Parameters.
struct EncoderLayers {
  std::vector<int> weight, bias;  // first to last; the last weight is what Z's scale is set by
};

template <class T>
class Encoder {
 public:
  virtual ~Encoder() = default;
  Encoder() = default;
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  // Takes what the rows of a side need from the arena and reads their inputs.
  virtual std::unique_ptr<EncoderRun<T>> prepare(Context& context, std::size_t domain,
                                                 std::size_t side, const SideBatch<T>& batch,
                                                 MatrixView<T> z) const = 0;
  // Adds to z, which is zero. With `state`, dropout is applied.
  virtual void forward(Context& context, EncoderRuns<T> runs, const StepState* state,
                       MathMode math) const = 0;
  // dz, one for each run, is used up. Adds to the layers' gradients and returns the tables'.
  virtual std::vector<TableGradient<T>> backward(Context& context, EncoderRuns<T> runs,
                                                 std::span<const MatrixView<T>> dz,
                                                 const Batch<T>& batch, const StepState* state,
                                                 MathMode math) const = 0;

  // For the start from random numbers, and for a target that starts as the source's copy. Both
  // domains have the same where they share layers; none where Z is a sum of rows.
  virtual const EncoderLayers& layers(std::size_t domain, std::size_t side) const = 0;
  // What was copied of ModelShape::reviews for a GPU.
  virtual PlacedSizes review_sizes() const { return {}; }
  // Sets what starts neither from random numbers nor at 0.
  virtual void start(Context&) {}
};

// Error where the options ask for what the encoder cannot do.
template <class T>
std::unique_ptr<Encoder<T>> make_encoder(Context& context, const ModelOptions& options,
                                         const ModelShape& shape, Parameters<T>& parameters);

// "source.user", "target.item", ...
std::string tower_name(std::size_t domain, std::size_t side);

}  // namespace cfaa
