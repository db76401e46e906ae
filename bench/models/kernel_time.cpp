#include "kernel_time.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <set>
#include <vector>

namespace tutti {

double kernel_time(const std::function<void()>& work) {
  namespace profiler = torch::autograd::profiler;
  const profiler::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO);
  const std::set<torch::profiler::impl::ActivityType> activities{torch::profiler::impl::ActivityType::CUDA};
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  work();
  struct Span {
    uint64_t begin, end;
  };
  std::vector<Span> spans;
  const auto result = profiler::disableProfiler();
  for (const auto& event : result->events())
    if (event.deviceType() == c10::DeviceType::CUDA)
      spans.push_back({event.startNs(), event.startNs() + event.durationNs()});
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  uint64_t busy_ns = 0, until = 0;
  for (const Span& span : spans) {
    if (span.end > std::max(span.begin, until)) busy_ns += span.end - std::max(span.begin, until);
    until = std::max(until, span.end);
  }
  return static_cast<double>(busy_ns) * 1e-9;
}

int64_t peak_memory() {
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(c10::cuda::current_device());
  return stats.reserved_bytes[0].peak;  // of all kinds of memory together
}

}  // namespace tutti
