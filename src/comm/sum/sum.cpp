#include "comm/sum/sum.h"

namespace tutti {

namespace generic {
extern const SumKernels kSumKernels;
}
#ifdef TUTTI_SUM_X86
namespace avx2 {
extern const SumKernels kSumKernels;
}
namespace avx512 {
extern const SumKernels kSumKernels;
}
#endif

std::vector<SumKernels> runnable_sum_kernels() {
  std::vector<SumKernels> kernels{generic::kSumKernels};
#ifdef TUTTI_SUM_X86
  const bool has_avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");  // such processors have f16c too
  if (has_avx2) kernels.push_back(avx2::kSumKernels);
  if (has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    kernels.push_back(avx512::kSumKernels);
  }
#endif
  return kernels;
}

void sum_arrays(DataType type, const std::vector<void*>& targets, const std::vector<const void*>& sources,
                std::size_t count) {
  static const SumKernels kernels = runnable_sum_kernels().back();
  const SumKernels::Sum sum = type == DataType::f32    ? kernels.f32
                              : type == DataType::bf16 ? kernels.bf16
                              : type == DataType::f16  ? kernels.f16
                                                       : kernels.i64;
  sum(targets.data(), static_cast<int>(targets.size()), sources.data(), static_cast<int>(sources.size()), count);
}

}  // namespace tutti
