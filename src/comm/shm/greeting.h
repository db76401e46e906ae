#pragma once

#include <sched.h>

#include <array>
#include <cstdint>
#include <string>

namespace tutti::shm {

// What ranks say to each other when they meet, over a Unix socket. Both sides have asked the kernel before that the
// other is of the same user.

constexpr uint32_t kMagic = 0x74757474;  // "tutt"
/// Changes whenever the layout of the segment or of these messages does.
constexpr uint32_t kVersion = 3;

/// Shows that its sender knows the whole name of the job, of which others see but a hash. `tutti train` puts 128 random
/// bits into it; names made of what Slurm, torchrun or MPICH say can be guessed, and prove nothing.
using Proof = std::array<char, 64>;
Proof proof_of(const std::string& job, const char* role);

/// A rank's to rank 0, with its lifeline.
struct Hello {
  uint32_t magic = kMagic;
  uint32_t version = kVersion;
  int32_t rank = 0;
  int32_t size = 0;
  int32_t pid = 0;
  cpu_set_t cpus{};
  Proof proof{};
};

/// Rank 0's answer: the file and all lifelines, or a text saying why not.
struct Answer {
  uint32_t accepted = 0;
  char text[500] = {};
  Proof proof{};
};

/// The name under which rank 0 of a job listens.
std::string socket_name(const std::string& job);

}  // namespace tutti::shm
