// How close the kernels on channels-last images come to the memory's speed: bytes that they have to move, over time,
// beside what a copy on the device reaches over as many bytes. Tensors take turns, so that they come from memory and
// not from the second-level cache. Prints a table.

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "base/cuda_status.h"
#include "kernels/batch_norm.h"
#include "kernels/fold_pixels.h"
#include "kernels/join.h"
#include "kernels/max_pool.h"

namespace tutti {
namespace {

constexpr int64_t kTurnBytes = int64_t{512} << 20;  // several times the second-level cache
constexpr int kRepeats = 7;

/// Bytes on the device.
class Memory {
 public:
  explicit Memory(int64_t bytes) { check_cuda(cudaMalloc(&data_, static_cast<size_t>(bytes)), "an allocation"); }
  ~Memory() { cudaFree(data_); }
  Memory(Memory&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  Memory& operator=(Memory&&) = delete;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

/// Values of both signs, nothing that a GPU would handle faster than others.
std::vector<uint16_t> bf16_values(int64_t count) {
  std::vector<uint16_t> values(static_cast<std::size_t>(count));
  uint32_t random = 12345;
  for (uint16_t& value : values) {
    random = random * 1664525 + 1013904223;
    const float number = static_cast<float>(random >> 8) / (1 << 23) - 1;
    uint32_t bits = 0;
    std::memcpy(&bits, &number, sizeof bits);
    value = static_cast<uint16_t>(bits >> 16);
  }
  return values;
}

/// Seconds that one of `calls` takes when a graph runs them one behind the other.
double seconds_per_call(cudaStream_t stream, int calls, const std::function<void(int)>& call) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording");
  for (int i = 0; i < calls; ++i) call(i);
  check_cuda(cudaStreamEndCapture(stream, &graph), "recording");
  check_cuda(cudaGraphInstantiate(&exec, graph, 0), "recording");
  cudaEvent_t begin = nullptr, end = nullptr;
  check_cuda(cudaEventCreate(&begin), "an event");
  check_cuda(cudaEventCreate(&end), "an event");
  std::vector<float> milliseconds;
  for (int i = 0; i <= kRepeats; ++i) {
    check_cuda(cudaEventRecord(begin, stream), "an event");
    check_cuda(cudaGraphLaunch(exec, stream), "a launch");
    check_cuda(cudaEventRecord(end, stream), "an event");
    check_cuda(cudaEventSynchronize(end), "waiting");
    float time = 0;
    check_cuda(cudaEventElapsedTime(&time, begin, end), "timing");
    if (i > 0) milliseconds.push_back(time);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  std::nth_element(milliseconds.begin(), milliseconds.begin() + kRepeats / 2, milliseconds.end());
  return milliseconds[kRepeats / 2] / 1000.0 / calls;
}

struct Size {
  int64_t batch, side, channels;
};

void measure_norm(cudaStream_t stream, const Size& size) {
  const ImageShape shape{size.batch * size.side * size.side, size.channels, true};
  const int64_t bytes = 2 * shape.rows * shape.channels;
  const int turns = static_cast<int>(std::clamp<int64_t>(kTurnBytes / (3 * bytes), 2, 32));
  const std::vector<uint16_t> values = bf16_values(shape.rows * shape.channels);
  struct Turn {
    Memory x, y, other, gradient, mask;
  };
  std::vector<Turn> all;
  for (int i = 0; i < turns; ++i) {
    all.push_back({Memory(bytes), Memory(bytes), Memory(bytes), Memory(bytes), Memory(norm_mask_bytes(shape))});
    for (const Memory* memory : {&all.back().x, &all.back().y, &all.back().other, &all.back().gradient})
      check_cuda(cudaMemcpy(memory->as<void>(), values.data(), static_cast<size_t>(bytes), cudaMemcpyHostToDevice),
                 "a copy");
  }
  const Memory channels(8 * 4 * shape.channels), sums(4 * channel_sums(shape.channels)), counters(4 * kChannelCounters);
  check_cuda(cudaMemset(counters.as<void>(), 0, 4 * kChannelCounters), "clearing");
  std::vector<float> ones(static_cast<std::size_t>(8 * shape.channels), 1);
  check_cuda(cudaMemcpy(channels.as<void>(), ones.data(), 4 * ones.size(), cudaMemcpyHostToDevice), "a copy");
  const auto channel = [&](int i) { return channels.as<float>() + i * shape.channels; };
  const auto forward = [&](bool adds) {
    return [&, adds](int i) {
      const Turn& turn = all[static_cast<std::size_t>(i)];
      NormForward call;
      call.shape = shape;
      call.x = turn.x.as<void>();
      call.residual = adds ? turn.other.as<void>() : nullptr;
      call.y = turn.y.as<void>();
      call.has_relu = true;
      call.mask = adds ? turn.mask.as<uint8_t>() : nullptr;
      call.weight = channel(0), call.bias = channel(1);
      call.running_mean = channel(2), call.running_variance = channel(3);
      call.momentum = 0.1, call.epsilon = 1e-5;
      call.mean = channel(4), call.inverse_deviation = channel(5);
      call.scratch = {sums.as<float>(), counters.as<unsigned>()};
      check_cuda(norm_forward_on_device(call, stream), "batch normalization");
    };
  };
  const auto backward = [&](bool adds, bool is_forked) {
    return [&, adds, is_forked](int i) {
      const Turn& turn = all[static_cast<std::size_t>(i)];
      NormBackward call;
      call.shape = shape;
      call.x = turn.x.as<void>();
      call.y_gradient = turn.gradient.as<void>();
      call.y_gradient2 = is_forked ? turn.y.as<void>() : nullptr;
      call.y_gradient2_row = shape.channels;
      call.relu = adds ? NormRelu::from_mask : NormRelu::of_value;
      call.mask = turn.mask.as<uint8_t>();
      call.weight = channel(0), call.bias = channel(1);
      call.mean = channel(4), call.inverse_deviation = channel(5);
      call.x_gradient = turn.y.as<void>();
      call.residual_gradient = adds ? turn.other.as<void>() : nullptr;
      call.weight_gradient = channel(6), call.bias_gradient = channel(7);
      call.scratch = {sums.as<float>(), counters.as<unsigned>()};
      check_cuda(norm_backward_on_device(call, stream), "batch normalization");
    };
  };
  const double copy = seconds_per_call(stream, turns, [&](int i) {
    const Turn& turn = all[static_cast<std::size_t>(i)];
    check_cuda(cudaMemcpyAsync(turn.y.as<void>(), turn.x.as<void>(), static_cast<size_t>(bytes),
                               cudaMemcpyDeviceToDevice, stream),
               "a copy");
  });
  const double copy_speed = 2 * static_cast<double>(bytes) / copy;
  const auto report = [&](const char* name, double passes, double seconds) {
    const double speed = passes * static_cast<double>(bytes) / seconds;
    fmt::print("{:>4} x {:>3} x {:>3} x {:>4}  {:22}  {:8.1f} us  {:7.0f} GB/s  {:5.0f} %\n", size.batch, size.side,
               size.side, size.channels, name, seconds * 1e6, speed / 1e9, 100 * speed / copy_speed);
  };
  constexpr double kMask = 1.0 / 16;
  report("copy", 2, copy);
  report("norm, relu", 3, seconds_per_call(stream, turns, forward(false)));
  report("norm, add, relu", 4 + kMask, seconds_per_call(stream, turns, forward(true)));
  report("norm, relu, backward", 5, seconds_per_call(stream, turns, backward(false, false)));
  report("norm, add, relu, backw.", 6 + kMask, seconds_per_call(stream, turns, backward(true, false)));
  report("same, two gradients", 7 + kMask, seconds_per_call(stream, turns, backward(true, true)));
}

/// Beside a copy that moves as many bytes, `read` and `written` together.
void report(cudaStream_t stream, const Size& size, const char* name, int64_t read, int64_t written,
            const std::function<void(int)>& call, int turns) {
  const int64_t half = (read + written) / 2;
  std::vector<Memory> all;
  for (int i = 0; i < 2 * turns; ++i) all.emplace_back(half);
  const double copy = seconds_per_call(stream, turns, [&](int i) {
    check_cuda(cudaMemcpyAsync(all[static_cast<std::size_t>(2 * i)].as<void>(),
                               all[static_cast<std::size_t>(2 * i + 1)].as<void>(), static_cast<size_t>(half),
                               cudaMemcpyDeviceToDevice, stream),
               "a copy");
  });
  const double seconds = seconds_per_call(stream, turns, call);
  fmt::print("{:>4} x {:>3} x {:>3} x {:>4}  {:22}  {:8.1f} us  {:7.0f} GB/s  {:5.0f} %\n", size.batch, size.side,
             size.side, size.channels, name, seconds * 1e6, static_cast<double>(read + written) / seconds / 1e9,
             100 * copy / seconds);
}

int turns_of(int64_t bytes) { return static_cast<int>(std::clamp<int64_t>(kTurnBytes / bytes, 2, 32)); }

/// Zeroed memory for each turn.
std::vector<Memory> memories(int turns, int64_t bytes) {
  std::vector<Memory> all;
  for (int i = 0; i < turns; ++i) {
    all.emplace_back(bytes);
    check_cuda(cudaMemset(all.back().as<void>(), 0, static_cast<size_t>(bytes)), "clearing");
  }
  return all;
}

void measure_pool(cudaStream_t stream, const Size& size, int window) {
  const MaxPool pool{size.batch, size.side, size.side, size.channels, true, window, 2, window == 3 ? 1 : 0};
  const int64_t from = 2 * size.batch * size.side * size.side * size.channels;
  const int64_t pooled = size.batch * pool.pooled_height() * pool.pooled_width() * size.channels;
  const int turns = turns_of(from + 3 * pooled);
  const auto x = memories(turns, from), y = memories(turns, 2 * pooled), winners = memories(turns, pooled);
  const auto forward = [&](int i) {
    const auto turn = static_cast<std::size_t>(i);
    check_cuda(max_pool_on_device(pool, x[turn].as<void>(), y[turn].as<void>(), winners[turn].as<uint8_t>(), stream),
               "pooling");
  };
  const auto backward = [&](int i) {
    const auto turn = static_cast<std::size_t>(i);
    check_cuda(
        max_pool_gradient_on_device(pool, y[turn].as<void>(), winners[turn].as<uint8_t>(), x[turn].as<void>(), stream),
        "pooling");
  };
  report(stream, size, window == 3 ? "pool 3" : "pool 2", from, 3 * pooled, forward, turns);
  report(stream, size, window == 3 ? "pool 3, backward" : "pool 2, backward", 3 * pooled, from, backward, turns);
}

/// As many channels on both sides.
void measure_join(cudaStream_t stream, const Size& size) {
  const Join join{size.batch * size.side * size.side, size.channels, size.channels, true};
  const int64_t bytes = 2 * join.rows * size.channels;
  const int turns = turns_of(4 * bytes);
  const auto first = memories(turns, bytes), second = memories(turns, bytes), joined = memories(turns, 2 * bytes);
  const auto bias = memories(1, 4 * size.channels), sums = memories(1, 4 * channel_sums(size.channels)),
             counters = memories(1, 4 * kChannelCounters);
  const auto forward = [&](int i) {
    const auto turn = static_cast<std::size_t>(i);
    check_cuda(join_on_device(join, first[turn].as<void>(), second[turn].as<void>(), bias[0].as<float>(),
                              joined[turn].as<void>(), stream),
               "joining");
  };
  const auto backward = [&](int i) {
    const auto turn = static_cast<std::size_t>(i);
    check_cuda(split_on_device(join, joined[turn].as<void>(), second[turn].as<void>(), bias[0].as<float>(),
                               {sums[0].as<float>(), counters[0].as<unsigned>()}, stream),
               "splitting");
  };
  report(stream, size, "join", 2 * bytes, 2 * bytes, forward, turns);
  report(stream, size, "join, backward", bytes, bytes, backward, turns);
}

void measure_fold(cudaStream_t stream, const Size& size) {
  const FoldPixels fold{size.batch, size.side, size.side, size.channels, 2, 1};
  const int64_t from = 4 * size.batch * size.side * size.side * size.channels;
  const int64_t to = 2 * size.batch * fold.folded_height() * fold.folded_width() * fold.folded_channels();
  const int turns = turns_of(from + to);
  const auto images = memories(turns, from), folded = memories(turns, to);
  const auto call = [&](int i) {
    const auto turn = static_cast<std::size_t>(i);
    check_cuda(fold_pixels_on_device(fold, images[turn].as<float>(), folded[turn].as<void>(), stream), "folding");
  };
  report(stream, size, "fold", from, to, call, turns);
}

}  // namespace
}  // namespace tutti

int main() {
  using namespace tutti;
  try {
    cudaStream_t stream = nullptr;
    check_cuda(cudaStreamCreate(&stream), "a stream");
    fmt::print("bfloat16, channels-last; passes over a tensor times its size, over time; in % of a copy's speed\n");
    for (const Size& size : {Size{64, 112, 64},
                             {64, 56, 64},
                             {64, 56, 256},
                             {64, 28, 128},
                             {64, 28, 512},
                             {64, 14, 256},
                             {64, 14, 1024},
                             {64, 7, 512},
                             {64, 7, 2048},
                             {16, 256, 64},
                             {16, 16, 1024},
                             {128, 7, 64}})
      measure_norm(stream, size);
    for (const Size& size : {Size{64, 112, 64}, {256, 112, 64}}) measure_pool(stream, size, 3);
    for (const Size& size : {Size{16, 256, 64}, {16, 32, 512}}) measure_pool(stream, size, 2);
    for (const Size& size : {Size{16, 256, 64}, {16, 32, 512}}) measure_join(stream, size);
    for (const Size& size : {Size{64, 224, 3}, {128, 28, 1}}) measure_fold(stream, size);
  } catch (const std::exception& error) {
    fmt::print(stderr, "image_bandwidth: {}\n", error.what());
    return 1;
  }
}
