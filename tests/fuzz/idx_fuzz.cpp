#include "data/idx.h"

#include "data/idx_files.h"
#include "fuzz/fuzz.h"

namespace tutti::fuzz {

static std::string fuzz_idx(std::string_view input) {
  static MemoryFile file;
  const std::string& path = file.hold(input);
  return outcome([&] { read_idx_images(path); }) + outcome([&] { read_idx_labels(path, 10); });
}

static std::vector<std::string> idx_seeds() {
  const std::string images = test::idx_images(2, 2, 3, "abcdefghijkl");
  const std::string labels = test::idx_labels(3, std::string("\1\2\3"));
  return {images, labels, test::gzipped(images), test::gzipped(labels)};
}

static const Target kIdx("idx", fuzz_idx, idx_seeds);

}  // namespace tutti::fuzz
