#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace tutti {

/// The whole file. Throws Error naming the path and the reason.
std::string read_file(const std::filesystem::path& path);

/// Who can read what is written; only its owner can write, whatever the umask says.
enum class Readers { all, owner };

/// Writes a file so that a reader sees the old content or the whole new one, also after a crash or a full disk:
/// a temporary name beside it, flushed to the disk, then renamed.
void write_file_atomically(const std::filesystem::path& path, std::string_view content, Readers readers = Readers::all);

/// Creates the file `temporary`, which nobody else has made or linked to before: what is there under this name is
/// removed first. Returns its descriptor, or -1 and errno.
int create_new_file(const std::filesystem::path& temporary, Readers readers);

/// Flushes what was written to a file or a folder to the disk. Throws Error naming the path and the reason.
void flush_to_disk(const std::filesystem::path& path);

/// mkdir -p; throws Error naming the path and the reason. `readers` is for the folders that it makes.
void make_folders(const std::filesystem::path& path, Readers readers = Readers::all);

/// rm -rf, as far as it goes; says nothing. Use it instead of std::filesystem::remove_all: PyTorch's libtorch.so
/// exports a broken copy of that, which programs that link it may get.
void remove_tree(const std::filesystem::path& path) noexcept;

/// "12.3 MB", for people.
std::string readable_bytes(uint64_t bytes);

}  // namespace tutti
