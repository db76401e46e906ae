#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace tutti {

/// The content of an IDX file of images (magic 2051): one byte per pixel, image by image, row by row.
struct IdxImages {
  int64_t count = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<uint8_t> pixels;
};

/// Read a whole IDX file, gzipped or not. Throw an Error that names the path, what is wrong with it and what to do;
/// memory is taken for what the file holds, never for what its header merely claims.
IdxImages read_idx_images(const std::filesystem::path& path);
/// Labels (magic 2049), each checked to lie in [0, classes).
std::vector<uint8_t> read_idx_labels(const std::filesystem::path& path, int classes);

/// Throws an Error naming both files unless there is one label per image.
void check_idx_pair(const std::filesystem::path& images_path, const IdxImages& images,
                    const std::filesystem::path& labels_path, const std::vector<uint8_t>& labels);

}  // namespace tutti
