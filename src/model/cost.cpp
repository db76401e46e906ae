#include "model/cost.h"

#include <ATen/record_function.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstring>

#include "base/torch_compat.h"
#include "model/example_batch.h"

namespace tutti {
namespace {

/// Adds up the operations of what the calling thread runs while it is alive.
class FlopCounter {
 public:
  FlopCounter() : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(&begin, &end).needsInputs(true))) {
    counted = 0;
  }
  ~FlopCounter() { at::removeCallback(handle_); }
  FlopCounter(const FlopCounter&) = delete;
  FlopCounter& operator=(const FlopCounter&) = delete;
  int64_t flop() const { return counted; }

 private:
  /// Stands for an operator that was counted, so that those it is made of are not.
  struct Counted : at::ObserverContext {};

  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& call) {
    if (inside > 0) return nullptr;
    const int64_t flop = flop_of(call.name(), call.inputs());
    if (flop == 0) return nullptr;
    counted += flop;
    ++inside;
    return std::make_unique<Counted>();
  }
  static void end(const at::RecordFunction& /*call*/, at::ObserverContext* context) {
    if (context != nullptr) --inside;
  }

  static int64_t flop_of(const char* name, c10::ArrayRef<const c10::IValue> in) {
    const auto is = [name](const char* other) { return std::strcmp(name, other) == 0; };
    if (is("aten::mm") || is("aten::bmm")) return 2 * in[0].toTensor().numel() * in[1].toTensor().size(-1);
    if (is("aten::addmm") || is("aten::baddbmm")) return 2 * in[1].toTensor().numel() * in[2].toTensor().size(-1);
    if (is("aten::mkldnn_linear")) return 2 * in[0].toTensor().numel() * in[1].toTensor().size(0);
    if (is("aten::convolution")) return convolution_flop(in);
    if (is("tutti::first_conv3x3_relu") || is("tutti::conv3x3_relu_pool2")) {
      const torch::Tensor &x = in[0].toTensor(), &weight = in[1].toTensor();
      return 2 * x.size(0) * (x.size(2) - 2) * (x.size(3) - 2) * weight.numel();
    }
    return 0;
  }

  static int64_t convolution_flop(c10::ArrayRef<const c10::IValue> in) {
    const torch::Tensor &x = in[0].toTensor(), &weight = in[1].toTensor();
    const auto stride = in[3].toIntVector(), padding = in[4].toIntVector(), dilation = in[5].toIntVector();
    int64_t places = x.size(0);  // where the kernel is applied
    for (int64_t i = 2; i < x.dim(); ++i) {
      // One value may stand for all dimensions.
      const auto at = [i](const std::vector<int64_t>& values) {
        return values.size() == 1 ? values[0] : values[static_cast<std::size_t>(i - 2)];
      };
      const bool is_transposed = in[6].toBool();
      places *= is_transposed
                    ? x.size(i)
                    : (x.size(i) + 2 * at(padding) - at(dilation) * (weight.size(i) - 1) - 1) / at(stride) + 1;
    }
    return 2 * places * weight.numel();
  }

  static thread_local int64_t counted;
  static thread_local int inside;
  at::CallbackHandle handle_;
};

thread_local int64_t FlopCounter::counted = 0;
thread_local int FlopCounter::inside = 0;

/// Sees every allocation of the calling thread on the CPU.
struct MemoryCounter : c10::MemoryReportingInfoBase {
  void reportMemoryUsage(void*, int64_t bytes, AllocatorTotal, AllocatorTotal, c10::Device) override { live += bytes; }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t live = 0;
};

}  // namespace

ModelCost measure_cost(Model& model, const SampleTraits& data) {
  ModelCost cost;
  for (const torch::Tensor& parameter : model.parameters()) {
    if (!parameter.requires_grad()) continue;
    ++cost.tensors;
    cost.parameters += parameter.numel();
    cost.gradient_bytes += static_cast<int64_t>(parameter.nbytes());
  }
  model.train();
  const Batch batch = example_batch(data, 1);
  const FlopCounter operations;
  const auto memory = std::make_shared<MemoryCounter>();
  const c10::DebugInfoGuard watch(c10::DebugInfoKind::PROFILER_STATE, memory);
  const torch::Tensor loss = model.loss(batch);
  cost.forward_flop = operations.flop();
  cost.activation_bytes = memory->live;
  return cost;
}

}  // namespace tutti
