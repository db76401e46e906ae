#include "explore.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <map>

namespace tutti::interleave {
namespace {

constexpr std::size_t kMaxFibers = 4;
constexpr std::size_t kStackBytes = 256 * 1024;
constexpr std::size_t kMemoryBytes = 8 * 1024 * 1024;
constexpr std::size_t kTooLong = 100'000;  // operations: somebody goes round in circles

/// For each fiber, how many of its operations happened before.
using VectorClock = std::array<std::size_t, kMaxFibers>;

void join(VectorClock& clock, const VectorClock& other) {
  for (std::size_t f = 0; f < kMaxFibers; ++f) clock[f] = std::max(clock[f], other[f]);
}

struct Operation {
  const void* word = nullptr;
  bool writes = false;
  const char* what = "";

  bool depends_on(const Operation& other) const { return word == other.word && (writes || other.writes); }
};

enum class State { ready, blocked, done };

/// One rank. `next` is what it will do when it is its turn.
struct Fiber {
  ucontext_t context{};  // where it begins
  std::jmp_buf place;    // where it goes on: swapcontext() would ask the kernel for signal masks each time
  bool has_begun = false;
  std::vector<char> stack = std::vector<char>(kStackBytes);
  std::function<void()> body;
  State state = State::ready;
  Operation next;
  const void* awaits = nullptr;  // blocked until this word is woken, or written
  bool awaits_write = false;
  VectorClock clock{};
  std::size_t operations = 0;
};

struct Event {
  std::size_t fiber = 0;
  std::size_t number = 0;  // among those of its fiber, from 1
  Operation operation;
};

/// The accesses to a word that the next one may depend on.
struct WordHistory {
  VectorClock writes{}, reads{};
  long last_write = -1;  // index of the event
  std::array<long, kMaxFibers> last_read = {-1, -1, -1, -1};
};

using Fibers = unsigned;  // one bit each
constexpr Fibers only(std::size_t fiber) { return 1U << fiber; }

/// A state on the way, and what is still to be tried from there.
struct Node {
  Fibers enabled = 0, backtrack = 0, done = 0, sleep = 0;
  std::size_t chosen = 0;
  std::array<Operation, kMaxFibers> next;
};

class Explorer {
 public:
  Explorer() {
    void* const memory =
        ::mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    memory_ = static_cast<std::byte*>(memory);
  }

  Verdict explore(const std::function<std::unique_ptr<World>()>& make_world) {
    nodes_.clear();
    Verdict verdict;
    do {
      ::madvise(memory_, kMemoryBytes, MADV_DONTNEED);  // zeroes it
      const std::unique_ptr<World> world = make_world();
      is_redundant_ = false;
      std::string complaint = run_once(world->bodies());
      if (complaint.empty() && !is_redundant_) complaint = world->complaint();
      verdict.orders += is_redundant_ ? 0 : 1;
      verdict.longest = std::max(verdict.longest, events_.size());
      if (complaint.empty()) continue;
      verdict.complaint = complaint + "\n" + describe_events();
      // Ranks that sleep for ever hold on to what is theirs: their stacks are not unwound.
      if (std::any_of(fibers_.begin(), fibers_.end(), [](const Fiber& f) { return f.state != State::done; }))
        static_cast<void>(const_cast<std::unique_ptr<World>&>(world).release());
      break;
    } while (choose_next());
    return verdict;
  }

  std::byte* memory() { return memory_; }

  void point(const void* word, bool writes, const char* what) {
    if (current_ == nullptr || word < memory_ || word >= memory_ + kMemoryBytes) return;
    current_->next = {word, writes, what};
    give_way();
  }

  void sleep_while(const void* word, const std::function<bool()>& is_unchanged) {
    point(word, true, "sleeps unless changed");
    if (is_unchanged()) block(word, false);
  }

  void wake_sleepers(const void* word) {
    point(word, true, "wakes sleepers");
    for (std::size_t f = 0; f < fibers_.size(); ++f)
      if (fibers_[f].state == State::blocked && fibers_[f].awaits == word && !fibers_[f].awaits_write)
        woken_ |= only(f);
  }

  void await_change() {
    if (current_ != nullptr) block(current_->next.word, true);
  }

 private:
  /// Follows the choices made so far, and makes new ones until all have ended.
  std::string run_once(std::vector<std::function<void()>> bodies) {
    start(std::move(bodies));
    for (std::size_t depth = 0;; ++depth) {
      const Fibers enabled = find_enabled();
      if (enabled == 0) break;
      if (depth > kTooLong) return "it goes on for ever";
      note_races();
      if (depth == nodes_.size()) add_node(enabled);
      const std::size_t chosen = is_redundant_ ? first_of(enabled) : nodes_[depth].chosen;
      step(chosen);
      if (is_redundant_) nodes_.resize(std::min(nodes_.size(), depth));
    }
    std::string asleep;
    for (std::size_t f = 0; f < fibers_.size(); ++f)
      if (fibers_[f].state != State::done) asleep += " " + std::to_string(f);
    return asleep.empty() ? "" : "for ever asleep: rank" + asleep;
  }

  void start(std::vector<std::function<void()>> bodies) {
    fibers_.resize(bodies.size());
    events_.clear();
    words_.clear();
    for (std::size_t f = 0; f < bodies.size(); ++f) {
      Fiber& fiber = fibers_[f];
      fiber.body = std::move(bodies[f]);
      fiber.state = State::ready;
      fiber.clock = {};
      fiber.operations = 0;
      ::getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack.data();
      fiber.context.uc_stack.ss_size = fiber.stack.size();
      fiber.has_begun = false;
      ::makecontext(&fiber.context, &Explorer::enter, 0);
    }
    for (Fiber& fiber : fibers_) resume(fiber);  // to its first operation
  }

  static void enter();

  void resume(Fiber& fiber) {
    current_ = &fiber;
    if (_setjmp(scheduler_) == 0) {
      if (fiber.has_begun) _longjmp(fiber.place, 1);
      fiber.has_begun = true;
      ::setcontext(&fiber.context);
    }
    current_ = nullptr;
  }
  void give_way() {
    if (_setjmp(current_->place) == 0) _longjmp(scheduler_, 1);
  }
  void block(const void* word, bool awaits_write) {
    current_->state = State::blocked;
    current_->awaits = word;
    current_->awaits_write = awaits_write;
    give_way();
  }

  Fibers find_enabled() const {
    Fibers enabled = 0;
    for (std::size_t f = 0; f < fibers_.size(); ++f)
      if (fibers_[f].state == State::ready) enabled |= only(f);
    return enabled;
  }
  static std::size_t first_of(Fibers fibers) { return static_cast<std::size_t>(__builtin_ctz(fibers)); }

  /// Where a fiber's next operation could as well have come before the last one that it depends on, that is to be
  /// tried, too.
  void note_races() {
    if (is_redundant_) return;
    for (std::size_t f = 0; f < fibers_.size(); ++f) {
      const Fiber& fiber = fibers_[f];
      if (fiber.state != State::ready) continue;
      const auto found = words_.find(fiber.next.word);
      if (found == words_.end()) continue;
      long last = -1;
      const auto consider = [&](long index) {
        if (index < 0) return;
        const Event& event = events_[static_cast<std::size_t>(index)];
        if (event.fiber != f && fiber.clock[event.fiber] < event.number) last = std::max(last, index);
      };
      consider(found->second.last_write);
      if (fiber.next.writes)
        for (const long read : found->second.last_read) consider(read);
      if (last < 0) continue;
      Node& node = nodes_[static_cast<std::size_t>(last)];
      node.backtrack |= (node.enabled & only(f)) != 0 ? only(f) : node.enabled;
    }
  }

  void add_node(Fibers enabled) {
    Node node;
    node.enabled = enabled;
    for (std::size_t f = 0; f < fibers_.size(); ++f) node.next[f] = fibers_[f].next;
    if (!nodes_.empty()) {
      const Node& before = nodes_.back();
      for (std::size_t f = 0; f < fibers_.size(); ++f)
        if (((before.sleep | before.done) & ~only(before.chosen) & only(f)) != 0 &&
            !before.next[f].depends_on(before.next[before.chosen]))
          node.sleep |= only(f);
    }
    const Fibers possible = enabled & ~node.sleep;
    if (possible == 0) {  // whatever follows was tried in another order
      is_redundant_ = true;
      return;
    }
    const bool goes_on = !events_.empty() && (possible & only(events_.back().fiber)) != 0;
    node.chosen = goes_on ? events_.back().fiber : first_of(possible);
    node.backtrack = only(node.chosen);
    nodes_.push_back(node);
  }

  void step(std::size_t chosen) {
    Fiber& fiber = fibers_[chosen];
    const Operation operation = fiber.next;
    WordHistory& word = words_[operation.word];
    const long index = static_cast<long>(events_.size());
    events_.push_back({chosen, ++fiber.operations, operation});
    join(fiber.clock, word.writes);
    if (operation.writes) join(fiber.clock, word.reads);
    fiber.clock[chosen] = fiber.operations;
    join(operation.writes ? word.writes : word.reads, fiber.clock);
    if (operation.writes) {
      word.last_write = index;
      word.last_read.fill(-1);
      word.reads = {};
    } else {
      word.last_read[chosen] = index;
    }
    woken_ = 0;
    if (operation.writes)
      for (std::size_t f = 0; f < fibers_.size(); ++f)
        if (fibers_[f].state == State::blocked && fibers_[f].awaits_write && fibers_[f].awaits == operation.word)
          woken_ |= only(f);
    resume(fiber);
    for (std::size_t f = 0; f < fibers_.size(); ++f) {
      if ((woken_ & only(f)) == 0) continue;
      fibers_[f].state = State::ready;
      join(fibers_[f].clock, fiber.clock);
      resume(fibers_[f]);
    }
  }

  /// Goes back to the last state from which something is left to try.
  bool choose_next() {
    while (!nodes_.empty()) {
      Node& node = nodes_.back();
      node.done |= only(node.chosen);
      if (const Fibers left = node.backtrack & ~node.done & ~node.sleep; left != 0) {
        node.chosen = first_of(left);
        return true;
      }
      nodes_.pop_back();
    }
    return false;
  }

  std::string describe_events() const {
    std::string text;
    for (const Event& event : events_) {
      char line[120];
      std::snprintf(line, sizeof line, "  rank %zu: %s, word %#zx\n", event.fiber, event.operation.what,
                    static_cast<std::size_t>(static_cast<const std::byte*>(event.operation.word) - memory_));
      text += line;
    }
    return text;
  }

  std::byte* memory_;
  std::vector<Fiber> fibers_;
  Fiber* current_ = nullptr;
  std::jmp_buf scheduler_;
  std::vector<Node> nodes_;    // the way to the current state
  std::vector<Event> events_;  // of the current order
  std::map<const void*, WordHistory> words_;
  Fibers woken_ = 0;
  bool is_redundant_ = false;
};

Explorer& explorer() {
  static Explorer the_one;
  return the_one;
}

void Explorer::enter() {
  Fiber& fiber = *explorer().current_;
  fiber.body();
  fiber.state = State::done;
  explorer().give_way();
}

}  // namespace

Verdict explore(const std::function<std::unique_ptr<World>()>& make_world) { return explorer().explore(make_world); }
std::byte* shared_memory(std::size_t bytes) {
  if (bytes > kMemoryBytes) std::abort();
  return explorer().memory();
}
void point(const void* word, bool writes, const char* what) { explorer().point(word, writes, what); }
void sleep_while(const void* word, const std::function<bool()>& is_unchanged) {
  explorer().sleep_while(word, is_unchanged);
}
void wake_sleepers(const void* word) { explorer().wake_sleepers(word); }
void await_change() { explorer().await_change(); }

}  // namespace tutti::interleave
