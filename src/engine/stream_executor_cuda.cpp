#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/stream_executor.h"
#include "plan/plan_cursor.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// Steps whose work may be queued and not done.
constexpr std::size_t kMostAhead = 2;

class CudaStreamExecutor : public StreamExecutor {
 public:
  CudaStreamExecutor(const Plan& plan, Communicator& comm, DeviceLink& link, Wire& wire,
                     std::function<void(const UpdatePiece&)> update)
      : plan_(plan),
        comm_(comm),
        link_(link),
        wire_(wire),
        update_(std::move(update)),
        stream_(at::cuda::getStreamFromExternal(static_cast<cudaStream_t>(comm.device_stream()),
                                                c10::cuda::current_device())),
        now_{PlanCursor(plan), {}, false},
        done_(plan.transfers.size()),
        last_transfer_(plan.slots.size(), -1) {
    for (std::size_t t = 0; t < plan.transfers.size(); ++t) {
      const SlotRange slots = slots_of(plan, plan.transfers[t]);
      for (std::size_t slot = slots.first; slot < slots.end; ++slot)
        last_transfer_[slot] = static_cast<std::ptrdiff_t>(t);
    }
  }

  void begin_step(int64_t step) override {
    step_ = step;
    now_.cursor.begin_step();
  }

  void gradient_ready(std::size_t slot) override {
    now_.cursor.gradient_ready(slot);
    queue_transfers();
  }

  void backward_done() override {
    now_.cursor.backward_done();
    if (plan_.barrier == Barrier::next_forward) {
      now_.has_tail = true;
      join();  // a recording ends on the stream on which it began
    } else {
      queue_transfers();
    }
  }

  void wait_for_backward() override {}

  double wait_for_step() override {
    queue_tail();
    join();
    if (is_recording()) return 0;
    const auto start = Clock::now();
    guarded([&] { comm_.queued_on(current_stream())->wait(); });
    ahead_.clear();
    return seconds_since(start);
  }

  double wait_for_slot(std::size_t slot) override {
    if (now_.has_tail) {
      queue_tail();
      in_flight_ = true;
    }
    // Without a tail, or where a slot is not in it, everything was joined at the end of the step before.
    if (in_flight_ && last_transfer_[slot] >= 0) wait_for(done_[static_cast<std::size_t>(last_transfer_[slot])]);
    return 0;
  }

  double busy_s() const override { return 0; }

  bool has_tail() const override { return now_.has_tail; }
  void begin_recording(StepObserver* observer) override {
    before_ = now_;
    observer_ = observer;
  }
  void end_recording() override {
    now_ = *before_;
    observer_ = nullptr;
    in_flight_ = is_forked_ = false;
  }

  void step_repeated(int64_t step) override {
    step_ = step;
    ahead_.push_back(comm_.queued_on(current_stream()));
    if (ahead_.size() <= kMostAhead) return;
    guarded([&] { ahead_.front()->wait(); });
    ahead_.pop_front();
  }

 private:
  struct State {
    PlanCursor cursor;
    std::vector<std::size_t> to_update;  // transfers that were queued before backward was over
    bool has_tail = false;
  };

  static bool is_recording() {
    return c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None;
  }
  static cudaStream_t current_stream() { return at::cuda::getCurrentCUDAStream(); }

  /// Transfers queued from now on start after what the computation has queued so far.
  void fork() {
    at::cuda::CUDAEvent event;
    event.record();
    event.block(stream_);
    is_forked_ = true;
  }

  void join() {
    in_flight_ = false;
    // A recording knows the other stream only once it has forked.
    if (!std::exchange(is_forked_, false)) return;
    at::cuda::CUDAEvent event;
    event.record(stream_);
    wait_for(event);
  }

  void wait_for(at::cuda::CUDAEvent& event) {
    if (observer_ != nullptr) observer_->begin_wait();
    event.block(at::cuda::getCurrentCUDAStream());
    if (observer_ != nullptr) observer_->end_wait();
  }

  /// Those that may start. Their order on the stream is the plan's, so one that is queued counts as done.
  void queue_transfers() {
    bool is_forked = false;
    while (const std::optional<std::size_t> next = now_.cursor.start_next()) {
      if (!std::exchange(is_forked, true)) fork();
      const c10::cuda::CUDAStreamGuard guard(stream_);
      queue(*next);
      if (!updates_parameters(plan_, plan_.transfers[*next]))
        now_.cursor.transfer_done(*next);
      else if (now_.cursor.is_backward_done())
        apply(*next);
      else
        now_.to_update.push_back(*next);
      done_[*next].record(stream_);
    }
  }

  void queue_tail() {
    if (!std::exchange(now_.has_tail, false)) return;
    fork();
    for (const std::size_t transfer : std::exchange(now_.to_update, {})) {
      const c10::cuda::CUDAStreamGuard guard(stream_);
      apply(transfer);
      done_[transfer].record(stream_);
    }
    queue_transfers();
  }

  void apply(std::size_t index) {
    if (observer_ != nullptr) observer_->begin_slice_update(index);
    update_({index, plan_.transfers[index].begin, plan_.transfers[index].end});
    if (observer_ != nullptr) observer_->end_slice_update();
    now_.cursor.transfer_done(index);
  }

  void queue(std::size_t index) {
    const Transfer& transfer = plan_.transfers[index];
    if (observer_ != nullptr) observer_->begin_transfer(index);
    guarded([&] {
      // Parameters travel as they are, or ranks would end up with different ones.
      const bool is_values = carries_parameters(plan_, transfer);
      const Span span =
          link_.host(is_values ? FlatBuffer::values : FlatBuffer::gradients, transfer.begin, transfer.end);
      const Span message = is_values ? span : wire_.pack(span, transfer.begin);
      const std::unique_ptr<Work> work = wire_.carry(transfer, message, comm_);
      if (!is_values) wire_.unpack(message, span, transfer.begin);
    });
    if (observer_ != nullptr) observer_->end_transfer();
  }

  template <typename Function>
  void guarded(Function function) const {
    try {
      function();
    } catch (const CommFailed& failure) {
      throw CommFailed("rank {}/{}, step {}: {}", comm_.rank(), comm_.size(), step_, failure.what());
    }
  }

  const Plan& plan_;
  Communicator& comm_;
  DeviceLink& link_;
  Wire& wire_;
  const std::function<void(const UpdatePiece&)> update_;
  const at::cuda::CUDAStream stream_;
  State now_;
  std::optional<State> before_;                // while a step is recorded
  StepObserver* observer_ = nullptr;           // the same; may be null
  bool is_forked_ = false;                     // transfers were queued and not joined
  bool in_flight_ = false;                     // a tail that was queued and not joined
  std::vector<at::cuda::CUDAEvent> done_;      // by transfer
  std::vector<std::ptrdiff_t> last_transfer_;  // by slot; -1: none
  std::deque<std::unique_ptr<Work>> ahead_;    // repeated steps, the oldest first
  int64_t step_ = 0;
};

}  // namespace

std::unique_ptr<StreamExecutor> make_stream_executor(const Plan& plan, Communicator& comm, DeviceLink& link, Wire& wire,
                                                     std::function<void(const UpdatePiece&)> update) {
  return std::make_unique<CudaStreamExecutor>(plan, comm, link, wire, std::move(update));
}

}  // namespace tutti
