#include "data/idx.h"

#include "data/idx_files.h"
#include "fuzz/fuzz.h"

namespace tutti::fuzz {

std::string fuzz_one(std::string_view input) {
  static MemoryFile file;
  const std::string& path = file.hold(input);
  return outcome([&] { read_idx_images(path); }) + outcome([&] { read_idx_labels(path, 10); });
}

std::vector<std::string> seeds() {
  const std::string images = testing::idx_images(2, 2, 3, "abcdefghijkl");
  const std::string labels = testing::idx_labels(3, std::string("\1\2\3"));
  return {images, labels, testing::gzipped(images), testing::gzipped(labels)};
}

}  // namespace tutti::fuzz
