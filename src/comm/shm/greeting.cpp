#include "comm/shm/greeting.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/sha256.h"

namespace tutti::shm {
namespace {

std::string hash_of_job(const char* label, const std::string& job) {
  Sha256 hash;
  hash.update(fmt::format("{}\n{}", label, job));
  return hash.hex();
}

}  // namespace

Proof proof_of(const std::string& job, const char* role) {
  Proof proof{};
  const std::string text = hash_of_job(role, job);
  std::copy_n(text.begin(), std::min(text.size(), proof.size()), proof.begin());
  return proof;
}

std::string socket_name(const std::string& job) {
  return fmt::format("tutti-shm-{}-{}", geteuid(), hash_of_job("name", job).substr(0, 32));
}

}  // namespace tutti::shm
