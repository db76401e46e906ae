#include "comm/mpi/mpi.h"

namespace tutti {
namespace {

[[noreturn]] void refuse() {
  throw UsageError(
      "this build has no MPI: install libopenmpi-dev and build again, or use --transport shm on one machine");
}

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(const MpiOptions&) { refuse(); }
MpiWorld start_mpi(std::chrono::milliseconds /*timeout*/) { refuse(); }
void reach_all_processes(std::chrono::milliseconds) { refuse(); }
bool built_with_mpi() { return false; }

}  // namespace tutti
