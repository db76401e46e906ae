#pragma once

#include <filesystem>

namespace tutti {

/// Whether this is a device or a pipe, as /dev/null: what is written goes into it, and no file must replace it.
bool is_device_file(const std::filesystem::path& path);

}  // namespace tutti
