#pragma once

#include <filesystem>
#include <string>

namespace tutti {

struct Download {
  std::string url;
  std::filesystem::path to;
  std::string sha256;
  int stall_seconds = 60;  // without a byte, after which the server is given up
};

/// Fetches a file with the program curl, which knows proxies and certificates. It grows as TO.part, from which an
/// interrupted download goes on, and gets its name only when its SHA-256 is right. Throws Error that names the address
/// and what curl says.
void download(const Download& what);

}  // namespace tutti
