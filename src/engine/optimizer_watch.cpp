#include "engine/optimizer_watch.h"

#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/trace.h"

namespace tutti {
namespace {

// The callbacks are plain functions; this leads them to their watch.
std::mutex watching;
std::function<void(int64_t, int64_t)> told;  // guarded by watching

struct StepBegin : at::ObserverContext {
  int64_t ns = trace_now();
};

std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& call) {
  if (std::string_view(call.name()).rfind("Optimizer.step#", 0) != 0) return nullptr;
  return std::make_unique<StepBegin>();
}

void on_end(const at::RecordFunction& /*call*/, at::ObserverContext* context) {
  if (context == nullptr) return;
  const std::lock_guard<std::mutex> lock(watching);
  if (told) told(static_cast<StepBegin*>(context)->ns, trace_now());
}

}  // namespace

OptimizerWatch::OptimizerWatch(std::function<void(int64_t begin_ns, int64_t end_ns)> step) {
  {
    const std::lock_guard<std::mutex> lock(watching);
    told = std::move(step);
  }
  handle_ = at::addGlobalCallback(at::RecordFunctionCallback(&on_begin, &on_end).scopes({at::RecordScope::USER_SCOPE}));
}

OptimizerWatch::~OptimizerWatch() {
  at::removeCallback(handle_);
  const std::lock_guard<std::mutex> lock(watching);
  told = {};
}

}  // namespace tutti
