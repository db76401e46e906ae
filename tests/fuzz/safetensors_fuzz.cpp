#include "base/safetensors.h"

#include "base/files.h"
#include "data/idx_files.h"
#include "fuzz/fuzz.h"

namespace tutti::fuzz {

static std::string fuzz_safetensors(std::string_view input) {
  static MemoryFile file;
  return outcome([&] {
    const SafetensorsFile tensors(file.hold(input));
    size_t sum = 0;
    for (const NamedArray& array : tensors.arrays())
      for (size_t i = 0; i < array.bytes; ++i) sum += static_cast<const unsigned char*>(array.data)[i];
    if (sum > input.size() * 255) throw std::logic_error("more memory than the file has");
  });
}

static std::vector<std::string> safetensors_seeds() {
  const test::TempFolder folder;
  const float numbers[6] = {1, 2, 3, 4, 5, 6};
  write_safetensors(
      folder.path() / "f",
      {{"a", "F32", {2, 3}, numbers, sizeof numbers}, {"b", "I64", {1}, numbers, 8}, {"c", "U8", {}, numbers, 1}},
      {{"epoch", "3"}});
  return {read_file(folder.path() / "f"), "\"dtype\":\"BF16\"", "\"shape\":[0,9999999999]",
          "\"data_offsets\":[0,24]",      "{\"x\":{}}",         "[[[[[[[["};
}

static const Target kSafetensors("safetensors", fuzz_safetensors, safetensors_seeds);

}  // namespace tutti::fuzz
