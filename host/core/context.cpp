#include "host/core/context.h"

#include "host/core/error.h"

namespace cfaa {

Context::Context(std::unique_ptr<DeviceRuntime> runtime, ContextOptions options)
    : runtime_(std::move(runtime)),
      threads_(options.threads),
      scratch_(*runtime_),
      random_{options.seed},
      latch_(static_cast<Fault*>(runtime_->allocate(sizeof(Fault)))) {
  runtime_->fill_zero(latch_, sizeof(Fault));
}

Context::~Context() {
  runtime_->release(latch_);
}

void Context::check_faults() {
  Fault fault;
  runtime_->copy_to_host(&fault, latch_, sizeof(Fault));
  runtime_->synchronize();
  if (fault.code == static_cast<int32_t>(FaultCode::none)) return;
  runtime_->fill_zero(latch_, sizeof(Fault));
  throw Error(explain(fault));
}

}  // namespace cfaa
