#include "comm/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "base/exit_note.h"
#include "comm/shm/round_up.h"

namespace tutti::shm {
namespace {

/// Reading beyond the end of a file, or of one that shrinks, would kill this process.
void check_memory_file(const Fd& file, std::size_t bytes) {
  const int seals = fcntl(file.get(), F_GET_SEALS);
  struct stat facts = {};
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(file.get(), &facts) != 0 ||
      static_cast<uint64_t>(facts.st_size) < bytes)
    throw CommFailed("what was handed out as shared memory is none of {} bytes that cannot shrink.", bytes);
}

}  // namespace

/// Where the parts begin.
struct Segment::Layout {
  static constexpr std::size_t kStages = round_up(sizeof(Control), 4096);
  static constexpr std::size_t kChannelHeaderBytes = 4096;

  static std::size_t channels(int size) { return kStages + static_cast<std::size_t>(size) * 2 * kStageBytes; }
  // With many ranks there are many pairs, of which each carries little.
  static std::size_t ring_bytes(int size) { return size <= 16 ? 256 * 1024 : 64 * 1024; }
  static std::size_t total(int size) {
    const auto pairs = static_cast<std::size_t>(size) * static_cast<std::size_t>(size);
    return channels(size) + pairs * (kChannelHeaderBytes + ring_bytes(size));
  }
};

Fd Segment::create_file(int size) {
  Fd file(memfd_create("tutti-shm", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) throw_errno("cannot create shared memory");
  if (ftruncate(file.get(), static_cast<off_t>(Layout::total(size))) != 0) throw_errno("cannot size shared memory");
  // Nobody can then cut off memory that another rank is using. It may grow: allocations come after the segment.
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0) throw_errno("cannot seal shared memory");
  return file;
}

Segment::Segment(Fd file, int rank, int size, int servers, std::vector<int> job_ranks)
    : file_(std::move(file)),
      rank_(rank),
      size_(size),
      servers_(servers),
      job_ranks_(std::move(job_ranks)),
      ring_bytes_(Layout::ring_bytes(size)),
      bytes_(Layout::total(size)) {
  check_memory_file(file_, bytes_);
  void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (memory == MAP_FAILED) throw_errno("cannot map shared memory");
  base_ = static_cast<std::byte*>(memory);
}

Segment::~Segment() { munmap(base_, bytes_); }

std::byte* Segment::stage(int rank, int parity) {
  return base_ + Layout::kStages + static_cast<std::size_t>(2 * rank + parity) * kStageBytes;
}

ChannelHeader& Segment::channel(int from, int to) {
  const auto index = static_cast<std::size_t>(from * size_ + to);
  return *reinterpret_cast<ChannelHeader*>(base_ + Layout::channels(size_) +
                                           index * (Layout::kChannelHeaderBytes + ring_bytes_));
}

std::byte* Segment::ring(int from, int to) {
  return reinterpret_cast<std::byte*>(&channel(from, to)) + Layout::kChannelHeaderBytes;
}

void Segment::fail(const std::string& text, int culprit) noexcept {
  Control& shared = control();
  uint32_t none = 0;
  if (shared.failure.compare_exchange_strong(none, 1)) {
    shared.culprit = culprit;
    std::strncpy(shared.failure_text, text.c_str(), sizeof(shared.failure_text) - 1);
    shared.failure.store(2);
  }
  for (int r = 0; r < size_; ++r) state(r).bell.ring_hard();
}

std::string Segment::failure_text() {
  // Whoever is writing the text is done in a moment, unless it was killed just there.
  for (int i = 0; i < 1000 && control().failure.load() != 2; ++i)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  if (control().failure.load() != 2) return "a rank has died while it reported a failure";
  if (control().culprit >= 0) note_culprit(control().culprit);
  return {control().failure_text, strnlen(control().failure_text, sizeof control().failure_text)};
}

std::string Segment::describe(int rank) {
  const int workers = size_ - servers_;
  if (rank >= workers) return fmt::format("parameter server {} (pid {})", rank - workers, state(rank).pid);
  if (job_rank(workers - 1) != workers - 1) return fmt::format("rank {} (pid {})", job_rank(rank), state(rank).pid);
  return fmt::format("rank {} of {} (pid {})", rank, workers, state(rank).pid);
}

int Segment::job_rank(int rank) const { return job_ranks_.empty() ? rank : job_ranks_[static_cast<std::size_t>(rank)]; }

bool Segment::has_cpu_per_rank() {
  // The union: ranks that are bound to one processor each have as many as there are ranks.
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int r = 0; r < size_; ++r) CPU_OR(&all, &all, &state(r).cpus);
  return CPU_COUNT(&all) >= size_;
}

}  // namespace tutti::shm
