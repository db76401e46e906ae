#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace tutti {

/// SHA-256 of bytes that arrive in pieces.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void update(const void* data, std::size_t bytes);
  void update(std::string_view text) { update(text.data(), text.size()); }
  /// The digest in hexadecimal. Call once, at the end.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Of a whole file, in hexadecimal. Throws Error naming the path and the reason.
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace tutti
