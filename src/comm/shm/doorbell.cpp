#include "comm/shm/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace tutti::shm {

static_assert(sizeof(std::atomic<uint32_t>) == 4 && std::atomic<uint32_t>::is_always_lock_free,
              "the kernel's futex is a plain 32-bit word");

void Doorbell::sleep(uint32_t ticket, std::chrono::milliseconds limit) {
  timespec time{};
  time.tv_sec = limit.count() / 1000;
  time.tv_nsec = (limit.count() % 1000) * 1'000'000;
  // Not FUTEX_PRIVATE: the word is shared between processes.
  syscall(SYS_futex, &word_, FUTEX_WAIT, ticket, &time, nullptr, 0);
  sleeping_.store(0);
}

void Doorbell::wake() {
  word_.fetch_add(1);
  syscall(SYS_futex, &word_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace tutti::shm
