#pragma once

#include <sys/types.h>

namespace tutti {

/// Removes what an mpirun (Open MPI) of this user has left on this machine: its session folder and the shared memory of
/// its ranks. It does so by itself unless it was killed. Only for one that has ended, with all of its ranks.
void remove_mpirun_files(pid_t mpirun) noexcept;

}  // namespace tutti
