#include "comm/nccl/nccl.h"

namespace tutti {

std::unique_ptr<Communicator> make_nccl_communicator(const NcclOptions&) {
  throw UsageError(
      "this build has no NCCL: build where a CUDA libtorch and NCCL's header are, or use --transport shm or mpi");
}

std::string nccl_version() { return {}; }

}  // namespace tutti
