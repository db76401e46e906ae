// What each kernel reaches of the memory's bandwidth, beside a copy on the device that moves as many bytes. A kernel is
// a line of the table in main(): its name, the bytes it has to move at least, and how to launch it once.
//
//   kernel_bandwidth [part of a name]
//
// Prints microseconds, GB/s, the copy's GB/s and the share of it that the kernel reaches; medians of kSamples.

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/cuda_status.h"
#include "kernels/add_norm.h"
#include "kernels/bias_activation.h"
#include "kernels/cross_entropy.h"

namespace tutti {
namespace {

constexpr int kSamples = 15;
constexpr int kLaunches = 20;  // per sample

struct Row {
  std::string name;
  int64_t bytes;
  std::function<cudaError_t(cudaStream_t stream)> launch;
};

/// Device memory full of small positive numbers, whatever type they are read as.
template <typename T = void>
class Memory {
 public:
  explicit Memory(int64_t bytes) {
    void* pointer = nullptr;
    check_cuda(cudaMalloc(&pointer, static_cast<std::size_t>(std::max<int64_t>(bytes, 16))), "cudaMalloc");
    memory_ = std::shared_ptr<void>(pointer, [](void* p) { cudaFree(p); });
    check_cuda(cudaMemset(pointer, 0x3c, static_cast<std::size_t>(bytes)), "cudaMemset");
  }
  T* get() const { return static_cast<T*>(memory_.get()); }

 private:
  std::shared_ptr<void> memory_;
};

/// Of one launch. The launches of a sample are recorded, so that the host's time for each is not measured.
double seconds(const Row& row, cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t recording = nullptr;
  check_cuda(row.launch(stream), row.name.c_str());
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  for (int i = 0; i < kLaunches; ++i) check_cuda(row.launch(stream), row.name.c_str());
  check_cuda(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  check_cuda(cudaGraphInstantiate(&recording, graph, 0), "cudaGraphInstantiate");
  cudaEvent_t begin = nullptr, end = nullptr;
  check_cuda(cudaEventCreate(&begin), "cudaEventCreate");
  check_cuda(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<float> samples;
  for (int sample = -2; sample < kSamples; ++sample) {
    check_cuda(cudaEventRecord(begin, stream), "cudaEventRecord");
    check_cuda(cudaGraphLaunch(recording, stream), "cudaGraphLaunch");
    check_cuda(cudaEventRecord(end, stream), "cudaEventRecord");
    check_cuda(cudaEventSynchronize(end), row.name.c_str());
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    if (sample >= 0) samples.push_back(ms);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaGraphExecDestroy(recording);
  cudaGraphDestroy(graph);
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2] * 1e-3 / kLaunches;
}

std::string shape_name(const char* what, int64_t rows, int64_t width) {
  return fmt::format("{} bf16 {} × {}", what, rows, width);
}

void add_norm_rows(std::vector<Row>& table, int64_t rows, int64_t width) {
  const int64_t bytes = 2 * rows * width;
  AddNormRun run;
  run.type = ElementType::bf16;
  run.rows = rows;
  run.width = width;
  run.epsilon = 1e-5F;
  run.dropout.rule = dropout_rule(0.1);
  run.dropout.seed = 17;
  int64_t partial_rows = 0;
  check_cuda(add_norm_partial_rows(run, partial_rows), "add_norm");
  const Memory<> x(bytes), residual(bytes), out(bytes), given(bytes), of_x(bytes), of_residual(bytes);
  const Memory<float> parameters(3 * 4 * width), statistics(2 * 4 * rows), sums(3 * 4 * width),
      partial(partial_rows * 3 * 4 * width);
  const Memory<uint64_t> drawn(16);
  const Memory<uint8_t> kept(rows * width / 8);
  const auto described = [=] {
    AddNormRun described = run;
    described.x = x.get();
    described.residual = residual.get();
    described.bias = parameters.get();
    described.weight = parameters.get() + width;
    described.shift = parameters.get() + 2 * width;
    described.mean = statistics.get();
    described.inverse_deviation = statistics.get() + rows;
    described.dropout.drawn = drawn.get();
    described.dropout.kept = kept.get();
    return described;
  };
  table.push_back({shape_name("add_norm forward", rows, width), 3 * bytes,
                   [=](cudaStream_t stream) { return add_norm_forward(described(), out.get(), stream); }});
  table.push_back({shape_name("add_norm backward", rows, width), 5 * bytes, [=](cudaStream_t stream) {
                     return add_norm_backward(described(), given.get(),
                                              {of_x.get(), of_residual.get(), sums.get(), partial.get()}, stream);
                   }});
}

void activation_rows(std::vector<Row>& table, int64_t rows, int64_t width) {
  const int64_t bytes = 2 * rows * width;
  BiasRun run{ElementType::bf16, rows, width, nullptr};
  int64_t partial_rows = 0;
  check_cuda(bias_partial_rows(run, partial_rows), "bias");
  const Memory<> x(bytes), out(bytes), given(bytes), of_x(bytes);
  const Memory<float> bias(4 * width), of_bias(4 * width), partial(partial_rows * 4 * width);
  const Memory<uint64_t> drawn(16);
  DropoutRun dropout;
  dropout.rule = dropout_rule(0.1);
  dropout.seed = 17;
  const auto described = [=] { return BiasRun{ElementType::bf16, rows, width, bias.get()}; };
  const auto results = [=] { return BiasGradients{of_x.get(), of_bias.get(), partial.get()}; };
  table.push_back({shape_name("bias_gelu forward", rows, width), 2 * bytes,
                   [=](cudaStream_t stream) { return bias_gelu_forward(described(), x.get(), out.get(), stream); }});
  table.push_back({shape_name("bias_gelu backward", rows, width), 3 * bytes, [=](cudaStream_t stream) {
                     return bias_gelu_backward(described(), x.get(), given.get(), results(), stream);
                   }});
  table.push_back({shape_name("bias_gradient", rows, width), bytes,
                   [=](cudaStream_t stream) { return bias_gradient(described(), given.get(), results(), stream); }});
  table.push_back({shape_name("bias_relu forward", rows, width), 2 * bytes, [=](cudaStream_t stream) {
                     DropoutRun with_memory = dropout;
                     with_memory.drawn = drawn.get();
                     return bias_relu_forward(described(), with_memory, x.get(), out.get(), stream);
                   }});
  table.push_back({shape_name("bias_relu backward", rows, width), 3 * bytes, [=](cudaStream_t stream) {
                     return bias_relu_backward(described(), dropout.rule, x.get(), given.get(), results(), stream);
                   }});
}

void cross_entropy_rows(std::vector<Row>& table, int64_t rows, int64_t classes) {
  const int64_t bytes = 2 * rows * classes;
  const Memory<> scores(bytes), of_scores(bytes);
  const Memory<int64_t> targets(8 * rows);
  check_cuda(cudaMemset(targets.get(), 0, static_cast<std::size_t>(8 * rows)), "cudaMemset");
  const Memory<float> log_sums(4 * rows), losses(4 * rows), mean(8);
  const auto described = [=] {
    CrossEntropyRun run;
    run.type = ElementType::bf16;
    run.rows = rows;
    run.classes = classes - 6;  // as many as 30522 are rounded up by
    run.stride = classes;
    run.scores = scores.get();
    run.targets = targets.get();
    run.log_sums = log_sums.get();
    run.mean = mean.get();
    return run;
  };
  table.push_back({shape_name("cross_entropy forward", rows, classes), bytes,
                   [=](cudaStream_t stream) { return cross_entropy_forward(described(), losses.get(), stream); }});
  table.push_back({shape_name("cross_entropy backward", rows, classes), 2 * bytes, [=](cudaStream_t stream) {
                     return cross_entropy_backward(described(), mean.get(), of_scores.get(), stream);
                   }});
}

void measure(const std::string& part_of_name) {
  std::vector<Row> table;
  // Of the Transformer, BERT-Base and BERT-Large in the studies, and one that no cache holds.
  for (const auto& [rows, width] : {std::pair<int64_t, int64_t>{32768, 256}, {4096, 768}, {512, 1024}, {65536, 1024}})
    add_norm_rows(table, rows, width);
  for (const auto& [rows, width] : {std::pair<int64_t, int64_t>{32768, 1024}, {4096, 3072}, {512, 4096}})
    activation_rows(table, rows, width);
  cross_entropy_rows(table, 640, 30528);

  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreate(&stream), "cudaStreamCreate");
  fmt::print("{:<42} {:>9} {:>8} {:>8} {:>7}\n", "kernel", "µs", "GB/s", "copy", "share");
  for (const Row& row : table) {
    if (row.name.find(part_of_name) == std::string::npos) continue;
    const int64_t half = row.bytes / 2;
    const Memory<> from(half), to(half);
    const Row copy{"copy", row.bytes, [&](cudaStream_t on) {
                     return cudaMemcpyAsync(to.get(), from.get(), static_cast<std::size_t>(half),
                                            cudaMemcpyDeviceToDevice, on);
                   }};
    const double kernel_s = seconds(row, stream), copy_s = seconds(copy, stream);
    const double bytes = static_cast<double>(row.bytes) * 1e-9;
    fmt::print("{:<42} {:>9.1f} {:>8.0f} {:>8.0f} {:>6.0f}%\n", row.name, kernel_s * 1e6, bytes / kernel_s,
               bytes / copy_s, 100 * copy_s / kernel_s);
  }
  cudaStreamDestroy(stream);
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  try {
    tutti::measure(argc > 1 ? argv[1] : "");
  } catch (const std::exception& error) {
    fmt::print(stderr, "kernel_bandwidth: {}\n", error.what());
    return 1;
  }
}
