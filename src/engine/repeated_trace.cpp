#include "engine/repeated_trace.h"

#include <algorithm>

namespace tutti {

RepeatedTrace::RepeatedTrace(Trace& trace, const Plan& plan, const torch::Device& device)
    : trace_(trace), plan_(plan), clock_(make_device_clock(device)) {}

void RepeatedTrace::open(TraceKind kind, int index, bool is_communication) {
  const std::size_t mark = clock_->mark();
  open_.push_back(spans_.size());
  // What is carried before backward begins is the tail of the step before.
  spans_.push_back({kind, index, is_communication, is_communication && !is_backward_begun_, mark, mark});
}

void RepeatedTrace::close() {
  spans_[open_.back()].end = clock_->mark();
  open_.pop_back();
}

void RepeatedTrace::repeat_forward() {
  close();
  begin_forward();
}

void RepeatedTrace::begin_earlier_backward() {
  close();
  open(TraceKind::backward);
}

void RepeatedTrace::begin_backward() {
  close();
  is_backward_begun_ = true;
  open(TraceKind::backward);
}

void RepeatedTrace::begin_transfer(std::size_t transfer) {
  open(TraceKind::transfer, static_cast<int>(transfer), /*is_communication=*/true);
}

void RepeatedTrace::begin_slice_update(std::size_t transfer) {
  open(TraceKind::update, static_cast<int>(transfer), /*is_communication=*/true);
}

void RepeatedTrace::gradient_ready(std::size_t parameter) {
  open(TraceKind::gradient, static_cast<int>(parameter));
  open_.pop_back();  // a moment
}

void RepeatedTrace::first_use(std::size_t parameter) {
  open(TraceKind::first_use, static_cast<int>(parameter));
  open_.pop_back();
}

int64_t RepeatedTrace::queued_ns(const Transfer& transfer, int64_t latest_ns) const {
  if (transfer.starts != StartsWhen::gradients_ready) return latest_ns;
  int64_t queued = 0;
  const SlotRange slots = slots_of(plan_, transfer);
  for (std::size_t slot = slots.first; slot < slots.end; ++slot) {
    if (ready_ns_[slot] == 0) return latest_ns;
    queued = std::max(queued, ready_ns_[slot]);
  }
  return std::min(queued, latest_ns);
}

void RepeatedTrace::add_repetition(int64_t step) {
  TraceBuffer* const compute = trace_.compute();
  if (compute == nullptr || spans_.empty()) return;
  trace_.set_of_device();
  clock_->wait();
  const int64_t now_ns = trace_now();
  // The last thing that was computed has just ended.
  const std::size_t first = spans_.front().begin;
  const auto since_first_ns = [&](std::size_t mark) {
    return static_cast<int64_t>(clock_->seconds_between(first, mark) * 1e9);
  };
  int64_t length_ns = 0;
  for (const Span& span : spans_) length_ns = std::max(length_ns, since_first_ns(span.end));
  const int64_t first_ns = now_ns - length_ns;

  std::vector<int> slot_of_parameter;
  for (std::size_t slot = 0; slot < plan_.slots.size(); ++slot) {
    const auto parameter = static_cast<std::size_t>(plan_.slots[slot].parameter);
    if (slot_of_parameter.size() <= parameter) slot_of_parameter.resize(parameter + 1, -1);
    slot_of_parameter[parameter] = static_cast<int>(slot);
  }
  ready_ns_.assign(plan_.slots.size(), 0);
  trace_.begin_communication(step);
  std::vector<TraceEvent> computed, carried;
  for (const Span& span : spans_) {
    const int64_t of_step = span.is_of_step_before ? step - 1 : step;
    const int64_t begin_ns = first_ns + since_first_ns(span.begin), end_ns = first_ns + since_first_ns(span.end);
    (span.is_communication ? carried : computed).push_back({span.kind, span.index, of_step, begin_ns, end_ns});
    if (span.kind != TraceKind::gradient) continue;
    const auto parameter = static_cast<std::size_t>(span.index);
    if (parameter < slot_of_parameter.size() && slot_of_parameter[parameter] >= 0)
      ready_ns_[static_cast<std::size_t>(slot_of_parameter[parameter])] = begin_ns;
  }
  for (TraceEvent& event : carried) {
    if (event.kind != TraceKind::transfer) continue;
    event.issued_ns = event.begin_ns;
    event.queued_ns = queued_ns(plan_.transfers[static_cast<std::size_t>(event.index)], event.begin_ns);
  }
  for (auto& events : {&computed, &carried})
    std::stable_sort(events->begin(), events->end(),
                     [](const TraceEvent& a, const TraceEvent& b) { return a.end_ns < b.end_ns; });
  for (const TraceEvent& event : computed) compute->add(event);
  if (TraceBuffer* const communication = trace_.communication())
    for (const TraceEvent& event : carried) communication->add(event);
}

}  // namespace tutti
