#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// A file whose content is known beforehand, and where it can be fetched.
struct KnownFile {
  std::string name;
  std::string sha256;
  std::string url;
};

/// What is known of a data set, or of a vocabulary, before its files are looked at.
struct KnownData {
  std::string name;  // as in --data
  std::string folder;
  std::vector<KnownFile> files;  // empty: they may be any
  int64_t train_size = 0;        // 0: any
  int64_t test_size = 0;
  std::string also_needs;  // another entry
  std::string by_hand;     // what to put into the folder, where nothing can be fetched
};

const std::vector<KnownData>& data_catalog();
/// The entry of that name, or null.
const KnownData* find_known_data(std::string_view name);

}  // namespace tutti
