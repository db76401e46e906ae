#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/clock.h"

namespace tutti {

enum class TraceKind : int {
  step,         // from begin_step to the end of finish_step
  data_wait,    // training waits for the loader
  forward,      // of one micro-batch
  first_use,    // a moment: forward first reads parameter `index`
  backward,     // of one micro-batch
  gradient,     // a moment: the gradient of parameter `index` is in its place
  device_wait,  // the host waits for the device to finish backward
  comm_wait,    // computation waits for transfers: exposed communication
  update,       // of the parameters: all of them, or the slice of transfer `index`
  transfer,     // transfer `index` of the plan
  checkpoint,
  evaluation,
};

/// What one thread did from begin to end, in nanoseconds of the steady clock of its machine.
struct TraceEvent {
  TraceKind kind = TraceKind::step;
  int index = -1;  // of a parameter in the model's order, or of a transfer in the plan
  int64_t step = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t queued_ns = 0;  // transfers: everything it carries was there
  int64_t issued_ns = 0;  // transfers: handed to the communicator, after copies from the device and packing

  bool operator==(const TraceEvent& other) const;
};

inline int64_t trace_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

/// The events of one thread; only that thread adds to it. Memory is reserved ahead.
class TraceBuffer {
 public:
  bool is_recording() const { return is_recording_; }
  int64_t step() const { return step_; }
  /// An event that ends now.
  void add(TraceKind kind, int64_t begin_ns, int index = -1) { add({kind, index, step_, begin_ns, trace_now()}); }
  void add(const TraceEvent& event) { events_.push_back(event); }
  const std::vector<TraceEvent>& events() const { return events_; }

 private:
  friend class Trace;
  std::vector<TraceEvent> events_;
  int64_t step_ = 0;
  bool is_recording_ = false;
};

/// Records an event from its construction to its destruction; nothing without a buffer.
class TraceSpan {
 public:
  TraceSpan(TraceBuffer* buffer, TraceKind kind, int index = -1)
      : buffer_(buffer), kind_(kind), index_(index), begin_ns_(buffer != nullptr ? trace_now() : 0) {}
  ~TraceSpan() {
    if (buffer_ != nullptr) buffer_->add(kind_, begin_ns_, index_);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  TraceBuffer* buffer_;
  TraceKind kind_;
  int index_;
  int64_t begin_ns_;
};

/// The steps that are recorded.
struct TraceWindow {
  int64_t first_step = 0;
  int64_t steps = 20;
};

/// Records what the two threads of a rank do in a window of steps. Each thread writes to its own buffer, so recording
/// needs no lock; read the buffers when both are idle. The buffers are null unless the step is in the window, so
/// outside it tracing costs a comparison.
class Trace {
 public:
  explicit Trace(const TraceWindow& window);

  /// Moves the window, before it has begun and while both threads are idle.
  void start_at(int64_t first_step) { window_.first_step = first_step; }

  /// Whether the window holds this step.
  bool includes(int64_t step) const { return step >= window_.first_step && step < window_.first_step + window_.steps; }

  // The thread that computes:
  /// This step, the next one, is not traced: the window shall have its steps all the same.
  void leave_out(int64_t step);
  /// So many steps have been left out.
  int64_t left_out() const { return left_out_; }
  void begin_step(int64_t step);
  void end_step();
  TraceBuffer* compute() { return compute_.is_recording() ? &compute_ : nullptr; }
  /// Every step of the window is recorded.
  bool is_over() const { return is_over_; }

  // The communication thread, or another one while that sleeps:
  /// From one step before the window on: its transfers may last into the window.
  void begin_communication(int64_t step);
  TraceBuffer* communication() { return communication_.is_recording() ? &communication_ : nullptr; }

  /// A device repeats the steps, and its times are theirs; else the host's.
  void set_of_device() { is_of_device_ = true; }
  bool is_of_device() const { return is_of_device_; }

  const std::vector<TraceEvent>& compute_events() const { return compute_.events(); }
  const std::vector<TraceEvent>& communication_events() const { return communication_.events(); }

 private:
  TraceWindow window_;
  TraceBuffer compute_, communication_;
  int64_t step_begin_ns_ = 0, left_out_ = 0;
  bool is_over_ = false, is_of_device_ = false;
};

/// One rank's events, for others. Add clock_offset_ns to its times to get rank 0's.
struct RankTrace {
  // 0 on rank 0's machine: its ranks share the steady clock. Other machines' is measured by exchanging messages.
  int64_t clock_offset_ns = 0;
  bool is_of_device = false;
  std::vector<TraceEvent> compute, communication;
};

void to_json(nlohmann::json& json, const RankTrace& trace);
void from_json(const nlohmann::json& json, RankTrace& trace);

}  // namespace tutti
