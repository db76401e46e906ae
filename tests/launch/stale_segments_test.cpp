#include "launch/stale_segments.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>

#include "base/fd.h"
#include "base/files.h"
#include "comm/nodes.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

TEST(StaleSegments, AreRemovedWhereNobodyUsesThemAndNothingElseIs) {
  char name[] = "/tmp/stale_segments_test.XXXXXX";
  const fs::path folder = ::mkdtemp(name);
  // Names that no rank on this machine has.
  const std::string job = ".99999.f" + std::to_string(::getpid()) + ".";
  const auto make = [&](const std::string& file) {
    std::ofstream(folder / file) << std::string(4096, 'x');
    return folder / file;
  };
  const fs::path stale = make("vader_segment." + this_host() + job + "0");
  const fs::path open = make("vader_segment." + this_host() + job + "1");
  const fs::path mapped = make("vader_segment." + this_host() + job + "2");
  const fs::path of_another_host = make("vader_segment.not-" + this_host() + job + "3");
  const fs::path of_somebody = make("sem.something");
  fs::create_symlink(of_somebody, folder / ("vader_segment." + this_host() + job + "4"));
  const Fd held(::open(open.c_str(), O_RDONLY | O_CLOEXEC));
  Fd file(::open(mapped.c_str(), O_RDWR | O_CLOEXEC));
  void* const memory = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file.get(), 0);
  ASSERT_NE(memory, MAP_FAILED);
  file.close();

  EXPECT_EQ(remove_stale_segments(folder), std::vector<fs::path>{stale});
  EXPECT_FALSE(fs::exists(stale));
  for (const fs::path& kept : {open, mapped, of_another_host, of_somebody}) EXPECT_TRUE(fs::exists(kept)) << kept;
  ::munmap(memory, 4096);
  EXPECT_EQ(remove_stale_segments(folder), std::vector<fs::path>{mapped});
  remove_tree(folder);
}

}  // namespace
}  // namespace tutti
