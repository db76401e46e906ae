#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tutti::interleave {

/// What ranks do together, from zeroed shared memory on. Made anew for every order that is tried.
class World {
 public:
  virtual ~World() = default;
  /// What each rank does. Runs in one thread: whoever is at a point() gives way.
  virtual std::vector<std::function<void()>> bodies() = 0;
  /// What is wrong now that all have ended; empty if nothing is.
  virtual std::string complaint() = 0;
};

struct Verdict {
  std::string complaint;  // with the order of operations that led to it; empty: no order breaks it
  long orders = 0;        // different ones that were tried
  std::size_t longest = 0;
};

/// Tries every order of the operations on shared memory that can make a difference, until one of them breaks
/// something. Two orders that differ only in operations which do not touch the same word, or only read it, are one:
/// dynamic partial-order reduction (Flanagan and Godefroid, 2005) with sleep sets.
Verdict explore(const std::function<std::unique_ptr<World>()>& make_world);

/// Mistakes that copy_sources.cmake planted in the sources: which of them are made.
struct Planted {
  bool sleep_without_second_look = false;
  bool ring_before_arrival = false;
  bool wake_without_new_ticket = false;
  bool one_stage_instead_of_two = false;
  bool ring_without_full_check = false;
  bool mail_before_bytes = false;
  bool mail_taken_after_work = false;
};
inline Planted planted;

/// All ranks see this memory at the same place. Zeroed before each order.
std::byte* shared_memory(std::size_t bytes);

/// Before each operation on a shared word: others may come first. Nothing outside of explore(), or for other memory.
void point(const void* word, bool writes, const char* what);
/// As the kernel's futex; no time passes, and nobody wakes without a reason.
void sleep_while(const void* word, const std::function<bool()>& is_unchanged);
void wake_sleepers(const void* word);
/// For a loop that looks at a word again and again: returns once somebody has written to the word last looked at.
void await_change();

}  // namespace tutti::interleave
