#pragma once

// Read before everything else by the copies of src/comm/shm that are tried here. Inside tutti::shm, std::atomic, futex
// calls, mmap and sleeping are then the ones below, and nothing of the sources has to know. Everything else of std is
// itself.

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "explore.h"

namespace tutti::shm {
namespace std {

using namespace ::std;

/// Every operation gives way to the other ranks first. What is tried are interleavings, which is all that sequentially
/// consistent operations allow. Relaxed ones, of words that only say who is alive and waits, are made in between; any
/// other memory order ends the test.
template <typename T>
class atomic {
 public:
  static constexpr bool is_always_lock_free = true;

  atomic() = default;
  atomic(T value) : value_(value) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  T load() const {
    interleave::point(this, false, "load");
    return value_;
  }
  void store(T value) {
    interleave::point(this, true, "store");
    value_ = value;
  }
  T load(::std::memory_order order) const {
    only_relaxed(order);
    return value_;
  }
  void store(T value, ::std::memory_order order) {
    only_relaxed(order);
    value_ = value;
  }

  T exchange(T value) {
    return change("exchange", [&](T) { return value; });
  }
  T fetch_add(T more) {
    return change("fetch_add", [&](T old) { return static_cast<T>(old + more); });
  }
  T fetch_or(T bits) {
    return change("fetch_or", [&](T old) { return static_cast<T>(old | bits); });
  }
  bool compare_exchange_strong(T& expected, T wanted) {
    const T old = change("compare_exchange", [&](T now) { return now == expected ? wanted : now; });
    const bool is_same = old == expected;
    expected = old;
    return is_same;
  }

 private:
  template <typename Change>
  T change(const char* what, Change how) {
    interleave::point(this, true, what);
    const T old = value_;
    value_ = how(old);
    return old;
  }

  static void only_relaxed(::std::memory_order order) {
    if (order != ::std::memory_order_relaxed) ::std::abort();
  }

  T value_{};
};

namespace this_thread {
using namespace ::std::this_thread;
template <typename Duration>
void sleep_for(Duration) {
  interleave::await_change();
}
}  // namespace this_thread

}  // namespace std

template <typename... Rest>
long syscall(long number, std::atomic<uint32_t>* word, int operation, uint32_t value, Rest...) {
  if (number != SYS_futex) ::std::abort();
  if (operation == FUTEX_WAKE) {
    interleave::wake_sleepers(word);
  } else {
    // No operation of its own: the word is looked at as the sleep begins.
    interleave::sleep_while(word, [&] { return *reinterpret_cast<const uint32_t*>(word) == value; });
  }
  return 0;
}

inline void* mmap(void*, ::std::size_t bytes, int, int, int, off_t) { return interleave::shared_memory(bytes); }
inline int munmap(void*, ::std::size_t) { return 0; }

}  // namespace tutti::shm
