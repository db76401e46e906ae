#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "tutti/communicator.h"
#include "tutti/plan.h"

namespace tutti {

/// What this rank has issued so far, as a hash and the most recent entries: ranks that issued different transfers have
/// added unrelated gradients, whatever the sizes said, and must not go on.
class IssueLog {
 public:
  void add(int64_t step, const Transfer& transfer);

  /// A collective, between steps. Throws Error naming the first transfer and rank that differ from rank 0's.
  void compare(Communicator& comm) const;

 private:
  std::deque<std::string> recent_;
  int64_t count_ = 0;
  uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace tutti
