#include "engine/forward_watch.h"

#include <optional>
#include <unordered_map>
#include <utility>

namespace tutti {

struct ForwardWatch::State {
  std::unordered_map<const void*, std::size_t> unseen;
  std::function<void(std::size_t)> first_use;
  std::atomic<bool> is_alive{true};
};

namespace {

/// What leads a thread's callback, a plain function, to its watch.
struct ThreadWatch {
  std::shared_ptr<ForwardWatch::State> state;
  std::optional<at::CallbackHandle> handle;
  bool is_inside_backward = false;
};
thread_local ThreadWatch current;

std::unique_ptr<at::ObserverContext> on_operator(const at::RecordFunction& call) {
  const std::shared_ptr<ForwardWatch::State> state = current.state;
  if (!state || !state->is_alive || state->unseen.empty()) return nullptr;
  for (const c10::IValue& input : call.inputs()) {
    if (!input.isTensor()) continue;
    const auto found = state->unseen.find(input.toTensor().unsafeGetTensorImpl());
    if (found == state->unseen.end()) continue;
    state->first_use(found->second);
    state->unseen.erase(found);
  }
  return nullptr;
}

}  // namespace

ForwardWatch::ForwardWatch(const std::vector<FlatParameter>& parameters, std::function<void(std::size_t)> first_use)
    : state_(std::make_shared<State>()) {
  for (std::size_t i = 0; i < parameters.size(); ++i) state_->unseen[parameters[i].tensor.unsafeGetTensorImpl()] = i;
  state_->first_use = std::move(first_use);
  current.state = state_;
  tidy_up();
}

ForwardWatch::~ForwardWatch() {
  state_->is_alive = false;
  if (current.state == state_) tidy_up();
}

void ForwardWatch::tidy_up() {
  if (current.is_inside_backward) return;
  const bool is_watched = current.state && current.state->is_alive;
  if (!is_watched) current.state.reset();
  if (is_watched && !current.handle) {
    current.handle = at::addThreadLocalCallback(
        at::RecordFunctionCallback(&on_operator).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  } else if (!is_watched && current.handle) {
    at::removeCallback(*current.handle);
    current.handle.reset();
  }
}

InsideBackward::InsideBackward() : before_(std::exchange(current.is_inside_backward, true)) {}

InsideBackward::~InsideBackward() { current.is_inside_backward = before_; }

}  // namespace tutti
