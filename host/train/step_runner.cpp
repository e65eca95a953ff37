#include "host/train/step_runner.h"

#include <fmt/format.h>

#include <utility>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/model/filled_ranges.h"

namespace cfaa {
namespace {

// A fault of a step that cuSOLVER need not have.
bool may_be_solved(const Fault& fault) {
  const auto code = static_cast<FaultCode>(fault.code);
  return fault.step > 0 &&
         (code == FaultCode::not_converged || code == FaultCode::not_positive_definite);
}

}  // namespace

template <class T>
StepRunner<T>::StepRunner(Context& context, Cfaa<T>& model, BatchAssembler<T>& assembler,
                          const TrainOptions& options, bool graphs)
    : context_(context),
      model_(model),
      assembler_(assembler),
      options_(options),
      graphs_(graphs),
      layout_(assembler.shape()),
      batches_(static_cast<std::size_t>(model.parts().own())),
      results_(model.parameters(), [this] { replay_->boundary(); }) {
  DeviceRuntime& runtime = context.runtime();
  for (std::size_t i = 0; i < 2; ++i) {
    host_[i] = runtime.allocate_host(bytes());
    host_batches_[i] = batches_at(host_[i]);
  }
  if (runtime.kind() != DeviceKind::cpu) {
    device_ = runtime.allocate(bytes());
    device_batches_ = batches_at(device_);
    upload_ = std::make_unique<Upload>(context, bytes());
    assembling_threads_ = std::make_unique<ThreadPool>(context.threads().threads());
  }
  enter_phase(0);
}

template <class T>
std::vector<Batch<T>> StepRunner<T>::batches_at(void* memory) const {
  std::vector<Batch<T>> batches;
  for (std::size_t b = 0; b < batches_; ++b) {
    batches.push_back(layout_.at(static_cast<char*>(memory) + b * batch_bytes()));
  }
  return batches;
}

template <class T>
void StepRunner<T>::enter_phase(int64_t step) {
  const std::size_t phase = options_.phases.at(step);
  if (phase_ != phase) {
    phase_ = phase;
    model_.enter(phase, options_.phases[phase]);
    solvers_compared_ = false;
    replay_ = std::make_unique<Replay>(
        context_, [this] { compute(); }, replay_check(), graphs_);
  }
  if (step == options_.phases.first_step(phase) &&
      options_.phases[phase].start == PhaseStart::copy_source) {
    model_.copy_source(context_);
  }
}

template <class T>
void StepRunner<T>::compute() {
  model_.step(context_, std::span<const Batch<T>>(device_batches_), options_.loss, options_.math(),
              device_ == nullptr ? nullptr : &results_);
}

template <class T>
void StepRunner<T>::compute_without_update() {
  results_.stop_before_update(true);
  compute();
  results_.stop_before_update(false);
}

template <class T>
Fault StepRunner<T>::read_latch() {
  Fault fault;
  context_.runtime().copy_to_host(&fault, context_.fault_latch(), sizeof(fault));
  context_.runtime().synchronize();
  return fault;
}

template <class T>
void StepRunner<T>::clear_latch() {
  context_.runtime().fill_zero(context_.fault_latch(), sizeof(Fault));
}

template <class T>
void StepRunner<T>::settle() {
  if (device_ == nullptr || model_.solver() != Solver::gemm) return;
  for (Fault fault = read_latch(); may_be_solved(fault); fault = read_latch()) {
    const int64_t last = last_;
    if (solved_again_ == 0) {
      log_info(fmt::format(
          "step {}: the horizontal loss could not be solved by products, and is by cuSOLVER; so "
          "are later steps like it, which costs speed and nothing else",
          fault.step));
    }
    clear_latch();
    solve_again(fault.step - 1);
    for (int64_t step = fault.step; step <= last; ++step) run(step);
  }
}

template <class T>
void StepRunner<T>::solve_again(int64_t step) {
  load(step);
  enter_phase(step);
  model_.solve_by(Solver::cusolver);
  compute();
  model_.solve_by(Solver::gemm);
  last_ = step;
  ++solved_again_;
  context_.check_faults();
}

template <class T>
void StepRunner<T>::compare_solvers() {
  if (solvers_compared_ || device_ == nullptr || model_.solver() != Solver::gemm) return;
  solvers_compared_ = true;
  compute_without_update();
  if (read_latch().code != static_cast<int32_t>(FaultCode::none)) {
    clear_latch();  // the step itself will say so, and is dealt with then
    return;
  }
  const std::vector<NamedBytes> by_products = results_.read(context_);
  model_.solve_by(Solver::cusolver);
  compute_without_update();
  model_.solve_by(Solver::gemm);
  const Deviation found = largest_deviation<T>(by_products, results_.read(context_));
  if (!found.tolerable) {
    throw Error(fmt::format(
        "alignment.solver gemm: {} of the first step is {:.1e} from what cuSOLVER finds; set "
        "alignment.solver to cusolver",
        found.name, found.relative));
  }
  log_once(fmt::format(
      "the horizontal loss is solved by products; the first step is within {:.1e} of cuSOLVER's",
      found.relative));
}

template <class T>
Replay::Check StepRunner<T>::replay_check() {
  return {.plain =
              [this] {
                compute_without_update();
                plain_results_ = results_.read(context_);
              },
          .difference =
              [this] {
                return first_difference(std::exchange(plain_results_, {}), results_.read(context_));
              }};
}

template <class T>
StepRunner<T>::~StepRunner() {
  pause();
  upload_.reset();  // waits for copies from the host's memory
  for (void* memory : host_) context_.runtime().release_host(memory);
  if (device_ != nullptr) context_.runtime().release(device_);
}

template <class T>
void StepRunner<T>::pause() {
  if (assembling_.valid()) assembling_.wait();
}

template <class T>
void StepRunner<T>::assemble_ahead(int64_t step) {
  pause();
  const std::size_t other = 1 - current_;
  if (was_copied_[other]) context_.runtime().wait_for(copied_[other]);
  ahead_ = step;
  assembling_ = std::async(std::launch::async, [this, step, other] {
    const int64_t first = step * model_.parts().parts() + model_.parts().first();
    for (std::size_t b = 0; b < batches_; ++b) {
      assembler_.assemble(first + static_cast<int64_t>(b), host_batches_[other][b],
                          assembling_threads_.get());
    }
  });
}

template <class T>
void StepRunner<T>::load(int64_t step) {
  if (ahead_ != step) assemble_ahead(step);
  assembling_.get();
  ahead_ = -1;
  current_ = 1 - current_;
  if (device_ == nullptr) {
    device_batches_ = host_batches_[current_];
    return;
  }
  const auto* host = static_cast<const char*>(host_[current_]);
  upload_->begin();
  for (std::size_t b = 0; b < batches_; ++b) {
    const std::size_t first = b * batch_bytes();
    for (const ByteRange& range :
         filled_ranges(host_batches_[current_][b], host + first, layout_.bytes())) {
      upload_->copy(first + range.first, host + first + range.first, range.count);
    }
  }
  upload_->deliver(device_);
  copied_[current_] = context_.runtime().mark();
  was_copied_[current_] = true;
}

template <class T>
void StepRunner<T>::rehearse(int64_t step) {
  if (device_ == nullptr) return;
  load(step);
  enter_phase(step);
  compute_without_update();
}

template <class T>
void StepRunner<T>::run(int64_t step) {
  if (options_.phases.at(step) != phase_) settle();
  load(step);
  assemble_ahead(step + 1);
  enter_phase(step);
  compare_solvers();
  replay_->run();
  last_ = step;
}

template <class T>
void StepRunner<T>::run_observed(int64_t step, StepObserver<T>& observer) {
  load(step);
  enter_phase(step);
  model_.step(context_, std::span<const Batch<T>>(device_batches_), options_.loss, options_.math(),
              &observer);
  last_ = step;
}

template <class T>
StepMeasures StepRunner<T>::measures() {
  settle();
  context_.check_faults();
  return model_.measures(context_, device_batches_);
}

template class StepRunner<float>;
template class StepRunner<double>;

}  // namespace cfaa
