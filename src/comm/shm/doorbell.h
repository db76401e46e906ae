#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tutti::shm {

/// Where one rank sleeps until another has something for it. Lives in shared memory.
///
/// Whoever changes what the rank may be waiting for makes the change first, then rings. The rank that wants to sleep
/// says so first, then looks once more, then sleeps. Both changes and both looks are sequentially consistent, so at
/// least one side sees the other, and no wake-up is lost. Ringing a rank that is awake costs one load.
class alignas(64) Doorbell {
 public:
  /// Wakes the owner if it sleeps or is about to.
  void ring() {
    if (sleeping_.load() != 0 && sleeping_.exchange(0) != 0) wake();
  }
  /// Wakes the owner whatever its state; for failures, where a system call costs nothing that matters.
  void ring_hard() { wake(); }

  /// First half of going to sleep. After it the owner checks once more for what it waits for.
  uint32_t prepare_to_sleep() {
    const uint32_t ticket = word_.load();
    sleeping_.store(1);
    return ticket;
  }
  void stay_awake() { sleeping_.store(0); }
  /// Second half: returns when rung since prepare_to_sleep(), when `limit` has passed, or for no reason.
  void sleep(uint32_t ticket, std::chrono::milliseconds limit);

 private:
  void wake();

  std::atomic<uint32_t> word_{0};
  std::atomic<uint32_t> sleeping_{0};
};

/// Tells a spinning processor to save power and leave its resources to the other hyper-thread.
inline void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace tutti::shm
