#pragma once

#include <filesystem>
#include <vector>

namespace tutti {

/// Removes what Open MPI's ranks on this machine have left in `folder` when they were killed together with their
/// mpirun: files called vader_segment.HOST.…, of this user and host, that no process holds open or has mapped. Returns
/// what it has removed. Says nothing about what it cannot see or remove.
std::vector<std::filesystem::path> remove_stale_segments(const std::filesystem::path& folder = "/dev/shm");

}  // namespace tutti
