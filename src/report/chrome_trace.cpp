#include "report/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

namespace tutti {
namespace {

using nlohmann::json;

constexpr int kCompute = 1, kCommunication = 2;

/// Writes events in the format's own units: microseconds since the first event, with the nanoseconds as decimals.
class Writer {
 public:
  explicit Writer(int64_t origin_ns) : origin_ns_(origin_ns) {}

  void name_process(int rank, const std::string& name) { metadata(rank, 0, "process_name", name); }
  void name_thread(int rank, int thread, const std::string& name) { metadata(rank, thread, "thread_name", name); }

  void span(int rank, int thread, const char* category, const std::string& name, int64_t begin_ns, int64_t end_ns,
            const json& arguments) {
    event(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"cat":"{}","name":{},"ts":{},"dur":{},"args":{}}})", rank, thread,
                      category, json(name).dump(), microseconds(begin_ns - origin_ns_),
                      microseconds(std::max<int64_t>(0, end_ns - begin_ns)), arguments.dump()));
  }

  std::string finish(const json& other_data) {
    return fmt::format("{{\"displayTimeUnit\":\"ms\",\"otherData\":{},\"traceEvents\":[\n{}\n]}}\n", other_data.dump(),
                       events_);
  }

 private:
  static std::string microseconds(int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }
  void metadata(int rank, int thread, const char* what, const std::string& name) {
    event(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{"name":{}}}}})", rank, thread, what,
                      json(name).dump()));
  }
  void event(const std::string& text) {
    if (!events_.empty()) events_ += ",\n";
    events_ += text;
  }

  const int64_t origin_ns_;
  std::string events_;
};

class RankWriter {
 public:
  RankWriter(Writer& writer, int rank, const RankTrace& trace, const Plan& plan)
      : writer_(writer), rank_(rank), trace_(trace), plan_(plan) {
    for (const GradientSlot& slot : plan.slots) names_[slot.parameter] = slot.name;
  }

  void write() {
    writer_.name_process(rank_, fmt::format("rank {}", rank_));
    writer_.name_thread(rank_, kCompute, "compute");
    writer_.name_thread(rank_, kCommunication, "communication");
    for (const TraceEvent& event : trace_.compute) write_compute(event);
    for (const TraceEvent& event : trace_.communication) write_communication(event);
  }

 private:
  void put(int thread, const char* category, const std::string& name, int64_t begin_ns, int64_t end_ns,
           const json& arguments) {
    writer_.span(rank_, thread, category, name, begin_ns + trace_.clock_offset_ns, end_ns + trace_.clock_offset_ns,
                 arguments);
  }

  void write_compute(const TraceEvent& event) {
    const json step = {{"step", event.step}};
    const auto plain = [&](const char* category, const std::string& name) {
      put(kCompute, category, name, event.begin_ns, event.end_ns, step);
    };
    switch (event.kind) {
      case TraceKind::step:
        return plain("step", fmt::format("step {}", event.step));
      case TraceKind::data_wait:
        return plain("data", "data wait");
      case TraceKind::forward:
        plain("forward", "forward");
        return write_forward_layers(event);
      case TraceKind::backward:
        plain("backward", "backward");
        return write_backward_layers(event);
      case TraceKind::device_wait:
        return plain("backward", "wait for the device");
      case TraceKind::comm_wait:
        return plain("exposed", "wait for communication");
      case TraceKind::update:
        return plain("optimizer", "optimizer");
      case TraceKind::checkpoint:
        return plain("checkpoint", "checkpoint");
      case TraceKind::evaluation:
        return plain("evaluation", "evaluation");
      case TraceKind::first_use:
      case TraceKind::gradient:
      case TraceKind::transfer:
        return;  // parts of forward and backward; the other thread's
    }
  }

  struct Layer {
    std::string module;
    int64_t begin_ns, end_ns;
  };

  /// The moments of one kind within an event; neighbours of one module are one layer.
  template <typename Extend>
  std::vector<Layer> layers(const TraceEvent& within, TraceKind kind, Extend extend) const {
    std::vector<Layer> layers;
    for (const TraceEvent& event : trace_.compute) {
      if (event.kind != kind || event.begin_ns < within.begin_ns || event.begin_ns > within.end_ns) continue;
      const auto name = names_.find(event.index);
      const std::string module =
          module_of(name != names_.end() ? name->second : fmt::format("parameter {}", event.index));
      extend(layers, module, event.begin_ns);
    }
    return layers;
  }

  /// A layer lasts from its parameters' first use to the first use of the next layer's.
  void write_forward_layers(const TraceEvent& forward) {
    const auto found = layers(forward, TraceKind::first_use, [&](auto& all, const std::string& module, int64_t ns) {
      if (!all.empty() && all.back().module == module) return;
      if (!all.empty()) all.back().end_ns = ns;
      all.push_back({module, ns, forward.end_ns});
    });
    for (const Layer& layer : found)
      put(kCompute, "forward", layer.module, layer.begin_ns, layer.end_ns, {{"step", forward.step}});
  }

  /// A layer lasts from the gradients of the layer before it in backward to its own.
  void write_backward_layers(const TraceEvent& backward) {
    const auto found = layers(backward, TraceKind::gradient, [&](auto& all, const std::string& module, int64_t ns) {
      const int64_t begin = all.empty() ? backward.begin_ns : all.back().end_ns;
      if (!all.empty() && all.back().module == module)
        all.back().end_ns = ns;
      else
        all.push_back({module, begin, ns});
    });
    for (const Layer& layer : found)
      put(kCompute, "backward", layer.module, layer.begin_ns, layer.end_ns, {{"step", backward.step}});
  }

  void write_communication(const TraceEvent& event) {
    const auto index = static_cast<std::size_t>(event.index);
    if (index >= plan_.transfers.size()) return;
    const Transfer& transfer = plan_.transfers[index];
    if (event.kind == TraceKind::update)
      return put(kCommunication, "optimizer", "optimizer: " + transfer.name, event.begin_ns, event.end_ns,
                 {{"step", event.step}, {"transfer", event.index}});
    put(kCommunication, "transfer", fmt::format("{} {}", word(transfer.operation), transfer.name), event.begin_ns,
        event.end_ns,
        {{"step", event.step},
         {"transfer", event.index},
         {"name", transfer.name},
         {"operation", word(transfer.operation)},
         {"bytes", transfer.elements() * static_cast<int64_t>(sizeof(float))},
         {"startable_us_before", static_cast<double>(event.begin_ns - event.queued_ns) * 1e-3},
         {"staging_us", static_cast<double>(event.issued_ns - event.begin_ns) * 1e-3}});
  }

  Writer& writer_;
  const int rank_;
  const RankTrace& trace_;
  const Plan& plan_;
  std::map<int, std::string> names_;  // by parameter
};

}  // namespace

std::string module_of(const std::string& parameter) {
  const std::size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? parameter : parameter.substr(0, dot);
}

std::string chrome_trace(const std::vector<RankTrace>& ranks, const Plan& plan) {
  int64_t origin_ns = std::numeric_limits<int64_t>::max();
  json offsets = json::array();
  for (const RankTrace& rank : ranks) {
    offsets.push_back(rank.clock_offset_ns);
    for (const auto* events : {&rank.compute, &rank.communication})
      for (const TraceEvent& event : *events) origin_ns = std::min(origin_ns, event.begin_ns + rank.clock_offset_ns);
  }
  Writer writer(origin_ns);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    RankWriter(writer, static_cast<int>(rank), ranks[rank], plan).write();
  return writer.finish({{"tutti_trace", 1}, {"strategy", plan.strategy}, {"clock_offset_ns", offsets}});
}

}  // namespace tutti
