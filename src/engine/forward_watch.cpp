#include "engine/forward_watch.h"

namespace tutti {
namespace {

// The callback is a plain function; this leads it to its watch.
thread_local ForwardWatch* current_watch = nullptr;

}  // namespace

ForwardWatch::ForwardWatch(const std::vector<FlatParameter>& parameters, std::function<void(std::size_t)> first_use)
    : first_use_(std::move(first_use)) {
  for (std::size_t i = 0; i < parameters.size(); ++i) unseen_[parameters[i].tensor.unsafeGetTensorImpl()] = i;
  current_watch = this;
  handle_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(&ForwardWatch::on_operator).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
}

ForwardWatch::~ForwardWatch() {
  at::removeCallback(handle_);
  current_watch = nullptr;
}

std::unique_ptr<at::ObserverContext> ForwardWatch::on_operator(const at::RecordFunction& call) {
  if (current_watch == nullptr || current_watch->unseen_.empty()) return nullptr;
  for (const c10::IValue& input : call.inputs()) {
    if (!input.isTensor()) continue;
    const auto found = current_watch->unseen_.find(input.toTensor().unsafeGetTensorImpl());
    if (found == current_watch->unseen_.end()) continue;
    current_watch->first_use_(found->second);
    current_watch->unseen_.erase(found);
  }
  return nullptr;
}

}  // namespace tutti
