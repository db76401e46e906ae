#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tutti {

/// A regular file inside a tar file.
struct TarMember {
  std::string name;
  int64_t offset = 0;  // of its content in the tar file
  int64_t size = 0;
};

/// The regular files of a tar file, in their order: ustar, GNU's long names and large sizes, pax headers. Contents are
/// not read. Throws Error that names file and byte for a header that is damaged, and for a file that was cut short.
std::vector<TarMember> list_tar(const std::filesystem::path& path);

/// A member's content. Throws Error naming tar file and member.
std::string read_tar_member(const std::filesystem::path& path, const TarMember& member);

}  // namespace tutti
