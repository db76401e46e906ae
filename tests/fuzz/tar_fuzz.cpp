#include "data/tar.h"
#include "data/tar_files.h"
#include "fuzz/fuzz.h"

namespace tutti::fuzz {
namespace {

/// The input with right checksums in what may be headers: few mutations would get past them.
std::string with_right_sums(std::string tar) {
  for (size_t at = 0; at + 512 <= tar.size(); at += 512) {
    if (tar.compare(at + 257, 5, "ustar") != 0) continue;
    unsigned sum = 0;
    for (size_t i = 0; i < 512; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(tar[at + i]);
    char digits[8];
    std::snprintf(digits, sizeof digits, "%06o", sum);
    tar.replace(at + 148, 7, std::string(digits, 6) + '\0');
  }
  return tar;
}

}  // namespace

static std::string fuzz_tar(std::string_view input) {
  static MemoryFile file;
  const std::string& path = file.hold(with_right_sums(std::string(input)));
  return outcome([&] {
    for (const TarMember& member : list_tar(path)) read_tar_member(path, member);
  });
}

static std::vector<std::string> tar_seeds() {
  using test::tar_member;
  return {tar_member("a.jpg", "picture") + tar_member("a.cls", "1") + test::tar_end(),
          tar_member("././@LongLink", std::string(120, 'n'), 'L') + tar_member("x", "y"),
          tar_member("pax", "12 path=abc\n11 size=99\n", 'x') + tar_member("x", "y"), "\x80",
          std::string("\x80\0\0\0\0\0\0\0\0\0\1\0", 12)};
}

static const Target kTar("tar", fuzz_tar, tar_seeds);

}  // namespace tutti::fuzz
