#include "comm/shm/monitor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace tutti::shm {

Monitor::Monitor(Segment& segment, std::vector<Fd> lifelines, std::chrono::milliseconds sign_interval)
    : segment_(segment),
      lifelines_(std::move(lifelines)),
      sign_interval_(sign_interval),
      stop_(eventfd(0, EFD_CLOEXEC)) {
  if (!stop_) throw_errno("cannot create an eventfd");
  if (segment_.size() > 1) thread_ = std::thread([this] { run(); });
}

Monitor::~Monitor() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  // Cannot fail: the counter is far from its limit.
  [[maybe_unused]] const auto written = write(stop_.get(), &one, sizeof one);
  thread_.join();
}

void Monitor::run() {
  std::vector<pollfd> polled;
  for (const Fd& lifeline : lifelines_) polled.push_back({lifeline.get(), 0, 0});  // only the end is of interest
  polled.push_back({stop_.get(), POLLIN, 0});
  while (true) {
    segment_.own().signs.fetch_add(1, std::memory_order_relaxed);
    if (poll(polled.data(), polled.size(), static_cast<int>(sign_interval_.count())) <= 0) continue;
    if (polled.back().revents != 0) return;
    for (int r = 0; r < segment_.size(); ++r) {
      pollfd& lifeline = polled[static_cast<std::size_t>(r)];
      if (lifeline.fd < 0 || lifeline.revents == 0) continue;
      lifeline.fd = -1;
      if (segment_.state(r).has_left.load() == 0)
        segment_.fail(segment_.describe(r) + " has died.", segment_.job_rank(r));
      segment_.own().bell.ring_hard();
    }
  }
}

}  // namespace tutti::shm
