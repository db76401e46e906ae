#include "comm/shm/arena.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "comm/shm/round_up.h"

namespace tutti::shm {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = 2 * 1024 * 1024;

/// Bytes from a line of /proc/meminfo; "a lot" if there is no such line.
uint64_t memory_info(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  std::string key;
  uint64_t kilobytes = 0;
  while (file >> key >> kilobytes) {
    if (key == name + ":") return kilobytes * 1024;
    file.ignore(1000, '\n');
  }
  return ~uint64_t{0};
}

/// Maps part of a file at an address that huge pages can back.
std::byte* map_aligned(const Fd& file, uint64_t offset, std::size_t bytes, std::size_t alignment) {
  const std::size_t reserved = bytes + alignment;
  void* const room = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) throw_errno("cannot reserve addresses for shared memory");
  auto* const begin = static_cast<std::byte*>(room);
  auto* const base =
      begin + (round_up(reinterpret_cast<uintptr_t>(begin), alignment) - reinterpret_cast<uintptr_t>(begin));
  if (base > begin) munmap(begin, static_cast<std::size_t>(base - begin));
  munmap(base + bytes, static_cast<std::size_t>(begin + reserved - (base + bytes)));
  if (mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.get(), static_cast<off_t>(offset)) ==
      MAP_FAILED) {
    const int error = errno;
    munmap(base, bytes);
    errno = error;
    throw_errno("cannot map shared memory");
  }
  return base;
}

}  // namespace

Arena::Arena(Segment& segment) : segment_(segment), end_(segment.bytes()) {}

Arena::~Arena() {
  for (const Region& region : regions_) {
    munmap(region.base, region.part_bytes * static_cast<std::size_t>(segment_.size()));
  }
}

void* Arena::allocate(std::size_t bytes) {
  const auto size = static_cast<std::size_t>(segment_.size());
  const std::size_t unit = bytes >= kHugePage ? kHugePage : kPage;
  if (bytes > (std::size_t{1} << 50)) throw CommFailed("allocate of {} bytes is more than any machine has.", bytes);
  const Region plan{round_up(end_, unit), round_up(std::max(bytes, kPage), unit), nullptr};
  const uint64_t own = plan.offset + plan.part_bytes * static_cast<std::size_t>(segment_.rank());
  // More than the machine has would not fail but wake the kernel's out-of-memory killer.
  if (plan.part_bytes * size > memory_info("MemTotal") || plan.part_bytes > memory_info("MemAvailable")) {
    throw CommFailed("{} ranks cannot have {} MiB of shared memory each: {} MiB are available on this machine.", size,
                     plan.part_bytes >> 20, memory_info("MemAvailable") >> 20);
  }
  // Takes the memory now, so that a lack of it is an error here and not a SIGBUS later. Each rank does it for its own
  // part, so that the pages lie near its processor.
  int status;
  do {
    status = fallocate(segment_.file().get(), 0, static_cast<off_t>(own), static_cast<off_t>(plan.part_bytes));
  } while (status != 0 && errno == EINTR);
  if (status != 0) {
    throw CommFailed("{} cannot get {} bytes of shared memory: {}.", segment_.describe(segment_.rank()),
                     plan.part_bytes, std::strerror(errno));
  }
  Region region = plan;
  region.base = map_aligned(segment_.file(), region.offset, region.part_bytes * size, unit);
  madvise(region.base, region.part_bytes * size, MADV_HUGEPAGE);  // a wish; small pages work too
  regions_.push_back(region);
  end_ = region.offset + region.part_bytes * size;
  return at(own);
}

std::optional<uint64_t> Arena::offset_of(const void* data, std::size_t bytes) const {
  const auto address = reinterpret_cast<uintptr_t>(data);
  for (const Region& region : regions_) {
    const auto own = static_cast<std::size_t>(segment_.rank()) * region.part_bytes;
    const uintptr_t begin = reinterpret_cast<uintptr_t>(region.base) + own;
    if (address >= begin && address - begin <= region.part_bytes && bytes <= region.part_bytes - (address - begin)) {
      return region.offset + own + (address - begin);
    }
  }
  return std::nullopt;
}

std::byte* Arena::at(uint64_t offset) const {
  for (const Region& region : regions_) {
    if (offset >= region.offset &&
        offset - region.offset < region.part_bytes * static_cast<std::size_t>(segment_.size())) {
      return region.base + (offset - region.offset);
    }
  }
  throw CommFailed("offset {} lies in no allocation", offset);
}

}  // namespace tutti::shm
