// Stands in for image_kernels_cuda.cpp in a build without CUDA.
#include "model/ops/image_kernels.h"
#include "tutti/error.h"

namespace tutti {
namespace {

[[noreturn]] void refuse() { throw Error("this build of Tutti has no CUDA"); }

}  // namespace

bool can_fuse(const torch::Tensor&, const FusedNorm&) { return false; }
TwoUses fused_batch_norm(const torch::Tensor&, const FusedNorm&) { refuse(); }
bool can_pool_fused(const torch::Tensor&, int64_t, int64_t, int64_t) { return false; }
torch::Tensor fused_max_pool(const torch::Tensor&, int64_t, int64_t, int64_t) { refuse(); }
bool can_join_fused(const torch::Tensor&, const torch::Tensor&, const torch::Tensor&) { return false; }
torch::Tensor fused_join(const torch::Tensor&, const torch::Tensor&, const torch::Tensor&) { refuse(); }
bool can_fold_pixels(const torch::Tensor&) { return false; }
torch::Tensor fold_pixels(const torch::Tensor&, int64_t, int64_t) { refuse(); }

}  // namespace tutti
