#pragma once

// One training step after the other: while the device computes step i, another thread assembles
// the batches of step i + 1 (one, or those of this rank's parts) into the other of two host
// buffers. On the CPU a step reads its batch where it was assembled. On a GPU the buffers are
// pinned, the batch of step i + 1 is copied while the device computes step i, and the step is
// replayed from captured graphs; a buffer is used again once its copy is done.
//
// Where a GPU solves by products (alignment.solver gemm) and a step's do not converge, the latch
// keeps that step and those behind it from changing anything. Whoever waits for the device next
// runs that step again, plainly and by cuSOLVER, and then those behind it: which steps these are
// depends on the steps alone, not on when somebody looks. The first step of every phase is computed
// in both ways, and a run whose ways differ is refused.

#include <future>
#include <memory>
#include <optional>

#include "host/device/replay.h"
#include "host/device/upload.h"
#include "host/model/cfaa.h"
#include "host/train/batch_assembler.h"
#include "host/train/losses_and_gradients.h"

namespace cfaa {

template <class T>
class StepRunner {
 public:
  // Without `graphs` no step is replayed. The model has been divided already, if at all.
  StepRunner(Context& context, Cfaa<T>& model, BatchAssembler<T>& assembler,
             const TrainOptions& options, bool graphs = true);
  ~StepRunner();

  // Steps are run in ascending order, one by one.
  void run(int64_t step);
  // The same part by part, before the eyes of `observer`; not replayed.
  void run_observed(int64_t step, StepObserver<T>& observer);

  // Waits for the device. Error for a fault of the steps since the last call.
  StepMeasures measures();
  // Waits for the device; steps whose products did not converge are made up for.
  void settle();
  int64_t solved_again() const { return solved_again_; }  // steps, so far

  // The batch in device memory, and that of the last step in host memory; the first of several.
  const Batch<T>& batch() const { return device_batches_[0]; }
  const Batch<T>& host_batch() const { return host_batches_[current_][0]; }
  // Makes a step's batches current without running it.
  void load(int64_t step);
  // On a GPU: computes a step up to its update, so that scratch is what steps need of it. Changes
  // nothing that is learned.
  void rehearse(int64_t step);

  const BatchShape& shape() const { return layout_.shape(); }
  const Replay& replay() const { return *replay_; }
  std::size_t bytes() const { return batches_ * batch_bytes(); }
  // No batch is being assembled when it returns: the assembler is free for other uses.
  void pause();

 private:
  // From one batch to the next, where it is aligned.
  std::size_t batch_bytes() const { return (layout_.bytes() + 255) / 256 * 256; }
  std::vector<Batch<T>> batches_at(void* memory) const;
  void assemble_ahead(int64_t step);
  // Tells the model of the phase that a step is in.
  void enter_phase(int64_t step);
  void compute();
  void compute_without_update();
  Fault read_latch();
  void clear_latch();
  void solve_again(int64_t step);
  void compare_solvers();
  Replay::Check replay_check();

  Context& context_;
  Cfaa<T>& model_;
  BatchAssembler<T>& assembler_;
  std::unique_ptr<ThreadPool> assembling_threads_;  // where a GPU leaves the CPU's to the assembler
  const TrainOptions& options_;
  bool graphs_;
  BatchLayout<T> layout_;
  std::size_t batches_;  // of a step
  void* host_[2];
  void* device_ = nullptr;  // of a GPU: the graphs know its address
  std::unique_ptr<Upload> upload_;
  std::vector<Batch<T>> host_batches_[2], device_batches_;
  std::uint64_t copied_[2] = {0, 0};  // marks behind the copies
  bool was_copied_[2] = {false, false};
  std::size_t current_ = 0;
  int64_t ahead_ = -1;  // the step being assembled
  std::future<void> assembling_;
  LossesAndGradients<T> results_;
  std::vector<NamedBytes> plain_results_;
  std::optional<std::size_t> phase_;  // the model's
  std::unique_ptr<Replay> replay_;    // of the steps of a phase
  bool solvers_compared_ = false;     // in this phase
  int64_t last_ = -1, solved_again_ = 0;
};

}  // namespace cfaa
