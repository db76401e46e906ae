// A 3×3 convolution, relu and a 2×2 maximum, computed together.
//
// A *window* is the 2×2 patch of convolution results of which pooling keeps the largest. Winograd's F(2×2, 3×3) (Lavin
// and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015) computes exactly one window at a time: the 4×4
// input *tile* below it is transformed to 16 *frequencies*, each is multiplied with the transformed weights (a matrix
// product over channels, with 2.25 times fewer multiplications than the plain sum), and the way back gives the window.
// So the convolution's result, four times as large as the pooled one, never goes to memory.
//
// Backward, each window passes its gradient to one position, and to none where relu or a later dropout cut it off: at
// least three quarters of the convolution's gradient are zeros. Both products of backward skip them, going through the
// non-zero entries of each output channel with that channel's weights, or their gradient, held in registers.

#include "model/ops/conv_pool.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

#include "model/ops/announce.h"
#include "model/ops/lanes.h"
#include "model/ops/plain.h"

namespace tutti {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

constexpr int kTaps = 9;
constexpr int kFrequencies = 16;
constexpr int64_t kInputBlock = 2 * kLanes;   // input channels whose 9 taps fit the registers, in backward
constexpr int64_t kOutputBlock = 4 * kLanes;  // output channels of one matrix product, in forward
constexpr int64_t kTilesAtOnce = 6;           // whose sums fit the registers, in forward
constexpr int64_t kGroup = 4 * kTilesAtOnce;  // tiles transformed together; their frequencies stay in the L2 cache
constexpr int64_t kBandRows = 3;              // rows of windows handled together in backward; input stays in the L1
constexpr uint8_t kCutOff = 4;                // in place of 0 to 3, the winner's position: relu's result was 0

/// Per image: input [height][width][inputs], pooled [outputs][rows][columns], winners [rows][columns][outputs].
struct Shape {
  int64_t height, width, inputs, outputs;
  int64_t rows() const { return (height - 2) / 2; }
  int64_t columns() const { return (width - 2) / 2; }
  int64_t windows() const { return rows() * columns(); }
  int64_t input_size() const { return height * width * inputs; }
  int64_t pooled_size() const { return windows() * outputs; }
};

/// U = G g Gᵀ for every pair of channels. `weight` is [output][input][tap]; the result [block][frequency][input][lane].
torch::Tensor transform_weights(const torch::Tensor& weight, Shape shape) {
  torch::Tensor result = torch::empty({kFrequencies * shape.inputs * shape.outputs}, weight.options());
  const float* const w = weight.data_ptr<float>();
  float* const u = result.data_ptr<float>();
  for (int64_t out = 0; out < shape.outputs; ++out) {
    float* const block = u + out / kOutputBlock * kFrequencies * shape.inputs * kOutputBlock + out % kOutputBlock;
    for (int64_t in = 0; in < shape.inputs; ++in) {
      const float* const g = w + (out * shape.inputs + in) * kTaps;
      float half[4][3];  // G g
      for (int x = 0; x < 3; ++x) {
        half[0][x] = g[x];
        half[1][x] = .5F * (g[x] + g[3 + x] + g[6 + x]);
        half[2][x] = .5F * (g[x] - g[3 + x] + g[6 + x]);
        half[3][x] = g[6 + x];
      }
      for (int y = 0; y < 4; ++y) {
        const float row[4] = {half[y][0], .5F * (half[y][0] + half[y][1] + half[y][2]),
                              .5F * (half[y][0] - half[y][1] + half[y][2]), half[y][2]};
        for (int x = 0; x < 4; ++x) block[((4 * y + x) * shape.inputs + in) * kOutputBlock] = row[x];
      }
    }
  }
  return result;
}

/// V = Bᵀ d B for tiles [first, first + count). `v` is [frequency][tile of the group][input].
struct TransformTiles {
  template <int kWidth>
  static TUTTI_INLINE void run(const float* input, int64_t first, int64_t count, float* v, Shape shape) {
    using Lanes = typename LanesOf<kWidth>::Value;
    const int64_t stride = shape.width * shape.inputs;
    for (int64_t tile = 0; tile < count; ++tile) {
      const int64_t row = (first + tile) / shape.columns();
      const int64_t column = (first + tile) % shape.columns();
      const float* const corner = input + 2 * row * stride + 2 * column * shape.inputs;
      for (int64_t in = 0; in < shape.inputs; in += kWidth) {
        Lanes half[4][4];  // Bᵀ d
#pragma GCC unroll 4
        for (int x = 0; x < 4; ++x) {
          const float* const at = corner + x * shape.inputs + in;
          const Lanes d0 = lanes<kWidth>(at);
          const Lanes d1 = lanes<kWidth>(at + stride);
          const Lanes d2 = lanes<kWidth>(at + 2 * stride);
          const Lanes d3 = lanes<kWidth>(at + 3 * stride);
          half[0][x] = d0 - d2;
          half[1][x] = d1 + d2;
          half[2][x] = d2 - d1;
          half[3][x] = d1 - d3;
        }
#pragma GCC unroll 4
        for (int y = 0; y < 4; ++y) {
          float* const to = v + (4 * y * kGroup + tile) * shape.inputs + in;
          lanes<kWidth>(to) = half[y][0] - half[y][2];
          lanes<kWidth>(to + kGroup * shape.inputs) = half[y][1] + half[y][2];
          lanes<kWidth>(to + 2 * kGroup * shape.inputs) = half[y][2] - half[y][1];
          lanes<kWidth>(to + 3 * kGroup * shape.inputs) = half[y][1] - half[y][3];
        }
      }
    }
  }
};

/// m[f] = v[f] u[f], one matrix product per frequency. `m` is [frequency][tile of the group][lane].
struct MultiplyFrequencies {
  template <int kWidth>
  static TUTTI_INLINE void run(const float* v, const float* u, int64_t count, float* m, int64_t inputs) {
    using Lanes = typename LanesOf<kWidth>::Value;
    // Of sums: 6 tiles × 4 of AVX-512's 32 registers, or × 2 of the others' 16; beside them weights and an input.
    constexpr int kRegisters = kWidth == 16 ? 4 : 2;
    for (int64_t f = 0; f < kFrequencies; ++f) {
      for (int64_t out = 0; out < kOutputBlock; out += kRegisters * kWidth) {
        const float* const weights = u + f * inputs * kOutputBlock + out;
        for (int64_t tile = 0; tile < count; tile += kTilesAtOnce) {
          const float* const from = v + (f * kGroup + tile) * inputs;
          Lanes sum[kTilesAtOnce][kRegisters] = {};
          for (int64_t in = 0; in < inputs; ++in) {
            Lanes w[kRegisters];
#pragma GCC unroll 4
            for (int j = 0; j < kRegisters; ++j) w[j] = lanes<kWidth>(weights + in * kOutputBlock + j * kWidth);
#pragma GCC unroll 6
            for (int64_t i = 0; i < kTilesAtOnce; ++i) {
              const float value = from[i * inputs + in];
#pragma GCC unroll 4
              for (int j = 0; j < kRegisters; ++j) sum[i][j] += value * w[j];
            }
          }
          float* const to = m + (f * kGroup + tile) * kOutputBlock + out;
#pragma GCC unroll 6
          for (int64_t i = 0; i < kTilesAtOnce; ++i) {
#pragma GCC unroll 4
            for (int j = 0; j < kRegisters; ++j) lanes<kWidth>(to + i * kOutputBlock + j * kWidth) = sum[i][j];
          }
        }
      }
    }
  }
};

/// Aᵀ m A gives each window; adds the bias, and keeps the largest value if positive and where it was.
/// `best` is [tile][outputs], starting at this block's first channel, as are `winners` and `bias`.
/// Plain loops over channels: the compiler vectorizes them, while it takes comparisons of Lanes apart.
TUTTI_PER_CPU void pool_windows(const float* m, const float* bias, int64_t count, float* __restrict best,
                                uint8_t* __restrict winners, int64_t outputs) {
  constexpr int64_t kNext = kGroup * kOutputBlock;  // from one frequency to the next
  for (int64_t tile = 0; tile < count; ++tile) {
    const float* const from = m + tile * kOutputBlock;
    int32_t winner[kOutputBlock];
    for (int64_t out = 0; out < kOutputBlock; ++out) {
      float top[4];
      float bottom[4];
#pragma GCC unroll 4
      for (int x = 0; x < 4; ++x) {
        const float m1 = from[(4 + x) * kNext + out];
        const float m2 = from[(8 + x) * kNext + out];
        top[x] = from[x * kNext + out] + m1 + m2;
        bottom[x] = m1 - m2 - from[(12 + x) * kNext + out];
      }
      const float window[4] = {top[0] + top[1] + top[2] + bias[out], top[1] - top[2] - top[3] + bias[out],
                               bottom[0] + bottom[1] + bottom[2] + bias[out],
                               bottom[1] - bottom[2] - bottom[3] + bias[out]};
      float value = window[0];
      int32_t position = 0;
#pragma GCC unroll 3
      for (int i = 1; i < 4; ++i) {
        // The first of equals wins, and NaN wins over all, as in torch.
        const bool wins = (window[i] > value) | (window[i] != window[i]);
        value = wins ? window[i] : value;
        position = wins ? i : position;
      }
      best[tile * outputs + out] = value <= 0 ? 0.F : value;
      winner[out] = value <= 0 ? kCutOff : position;
    }
    for (int64_t out = 0; out < kOutputBlock; ++out) {
      winners[tile * outputs + out] = static_cast<uint8_t>(winner[out]);
    }
  }
}

/// [windows][outputs] to [outputs][windows].
TUTTI_PER_CPU void transpose(const float* from, float* to, int64_t windows, int64_t outputs) {
  for (int64_t out = 0; out < outputs; ++out) {
    for (int64_t window = 0; window < windows; ++window) to[out * windows + window] = from[window * outputs + out];
  }
}

/// A non-zero entry of the convolution's gradient, in one output channel.
struct Entry {
  int32_t offset;  // of the input value under the kernel's first tap, in floats
  float gradient;
};

/// Offsets of the input values under the first tap at each window's upper left position.
std::vector<int32_t> window_offsets(Shape shape) {
  std::vector<int32_t> offsets;
  for (int64_t row = 0; row < shape.rows(); ++row) {
    for (int64_t column = 0; column < shape.columns(); ++column) {
      offsets.push_back(static_cast<int32_t>((2 * row * shape.width + 2 * column) * shape.inputs));
    }
  }
  return offsets;
}

/// The entries of `count` windows of one output channel; returns how many they are.
int64_t collect_entries(const float* __restrict gradient, const uint8_t* __restrict winners,
                        const int32_t* __restrict offsets, int64_t count, Entry* __restrict entries,
                        const Shape& shape) {
  const int32_t right = static_cast<int32_t>(shape.inputs);
  const int32_t down = static_cast<int32_t>(shape.width * shape.inputs);
  const int32_t winner_offsets[kCutOff + 1] = {0, right, down, down + right, 0};
  const int64_t stride = shape.outputs;
  int64_t kept = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t winner = winners[i * stride];
    // Written always and kept sometimes: a branch here would be mispredicted every other time.
    entries[kept] = {offsets[i] + winner_offsets[winner], gradient[i]};
    kept += static_cast<int64_t>((winner != kCutOff) & (gradient[i] != 0));
  }
  return kept;
}

/// Registers of each tap in backward: 9 taps × 2 of AVX-512's 32, or × 1 of the others' 16.
constexpr int tap_registers(int width) { return width == 16 ? 2 : 1; }

/// weight_gradient[tap][input] += Σ gradient · input under the tap, for kInputBlock input channels.
struct AddWeightGradient {
  template <int kWidth>
  static TUTTI_INLINE void run(const Entry* entries, int64_t count, const float* input, float* weight_gradient,
                               Shape shape) {
    constexpr int kRegisters = tap_registers(kWidth);
    const int64_t stride = shape.width * shape.inputs;
    for (int64_t in = 0; in < kInputBlock; in += kRegisters * kWidth) {
      typename LanesOf<kWidth>::Value sum[kTaps][kRegisters];
      float* const gradient = weight_gradient + in;
#pragma GCC unroll 9
      for (int tap = 0; tap < kTaps; ++tap) {
#pragma GCC unroll 2
        for (int j = 0; j < kRegisters; ++j) sum[tap][j] = lanes<kWidth>(gradient + tap * shape.inputs + j * kWidth);
      }
      for (int64_t i = 0; i < count; ++i) {
        const float* const from = input + in + entries[i].offset;
        const float g = entries[i].gradient;
#pragma GCC unroll 9
        for (int tap = 0; tap < kTaps; ++tap) {
          const float* const at = from + tap / 3 * stride + tap % 3 * shape.inputs;
#pragma GCC unroll 2
          for (int j = 0; j < kRegisters; ++j) sum[tap][j] += g * lanes<kWidth>(at + j * kWidth);
        }
      }
#pragma GCC unroll 9
      for (int tap = 0; tap < kTaps; ++tap) {
#pragma GCC unroll 2
        for (int j = 0; j < kRegisters; ++j) lanes<kWidth>(gradient + tap * shape.inputs + j * kWidth) = sum[tap][j];
      }
    }
  }
};

/// input_gradient under each tap += gradient · weight[tap][input], for kInputBlock input channels.
struct AddInputGradient {
  template <int kWidth>
  static TUTTI_INLINE void run(const Entry* entries, int64_t count, const float* weight, float* input_gradient,
                               Shape shape) {
    constexpr int kRegisters = tap_registers(kWidth);
    const int64_t stride = shape.width * shape.inputs;
    for (int64_t in = 0; in < kInputBlock; in += kRegisters * kWidth) {
      typename LanesOf<kWidth>::Value w[kTaps][kRegisters];
#pragma GCC unroll 9
      for (int tap = 0; tap < kTaps; ++tap) {
#pragma GCC unroll 2
        for (int j = 0; j < kRegisters; ++j) w[tap][j] = lanes<kWidth>(weight + in + tap * shape.inputs + j * kWidth);
      }
      for (int64_t i = 0; i < count; ++i) {
        float* const to = input_gradient + in + entries[i].offset;
        const float g = entries[i].gradient;
#pragma GCC unroll 9
        for (int tap = 0; tap < kTaps; ++tap) {
          float* const at = to + tap / 3 * stride + tap % 3 * shape.inputs;
#pragma GCC unroll 2
          for (int j = 0; j < kRegisters; ++j) lanes<kWidth>(at + j * kWidth) += g * w[tap][j];
        }
      }
    }
  }
};

/// What backward_image works with, kept from image to image.
struct Scratch {
  std::vector<int32_t> offsets;  // of the windows
  std::vector<Entry> entries;    // per output channel, those of a band
  std::vector<int64_t> counts;   // per output channel, how many
};

/// Adds this image's share to `weight_gradient` [output][tap][input] and `bias_gradient`. `input_gradient` holds zeros
/// on entry; null when nobody needs it.
void backward_image(const float* input, const float* weight, const float* gradient, const uint8_t* winners,
                    float* input_gradient, float* weight_gradient, float* bias_gradient, Scratch& scratch,
                    const Shape& shape) {
  const int64_t most = kBandRows * shape.columns();
  const int64_t per_output = kTaps * shape.inputs;
  scratch.entries.resize(static_cast<size_t>(shape.outputs * most));
  scratch.counts.resize(static_cast<size_t>(shape.outputs));
  for (int64_t row = 0; row < shape.rows(); row += kBandRows) {
    const int64_t window = row * shape.columns();
    const int64_t windows = std::min(kBandRows, shape.rows() - row) * shape.columns();
    for (int64_t out = 0; out < shape.outputs; ++out) {
      Entry* const list = scratch.entries.data() + out * most;
      const int64_t count =
          collect_entries(gradient + out * shape.windows() + window, winners + window * shape.outputs + out,
                          scratch.offsets.data() + window, windows, list, shape);
      scratch.counts[out] = count;
      float sum = 0;
      for (int64_t i = 0; i < count; ++i) sum += list[i].gradient;
      bias_gradient[out] += sum;
      for (int64_t in = 0; in < shape.inputs; in += kInputBlock) {
        run_widest<AddWeightGradient>(list, count, input + in, weight_gradient + out * per_output + in, shape);
      }
    }
    if (input_gradient == nullptr) continue;
    for (int64_t out = 0; out < shape.outputs; ++out) {
      for (int64_t in = 0; in < shape.inputs; in += kInputBlock) {
        run_widest<AddInputGradient>(scratch.entries.data() + out * most, scratch.counts[out],
                                     weight + out * per_output + in, input_gradient + in, shape);
      }
    }
  }
}

struct ConvPool : torch::autograd::Function<ConvPool> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& input, const torch::Tensor& weight,
                               const torch::Tensor& bias) {
    const int64_t count = input.size(0);
    const Shape shape{input.size(2), input.size(3), input.size(1), weight.size(0)};
    const torch::Tensor dense = input.contiguous(torch::MemoryFormat::ChannelsLast);
    const torch::Tensor transformed = transform_weights(weight.contiguous(), shape);
    const torch::Tensor dense_bias = bias.contiguous();
    torch::Tensor pooled = torch::empty({count, shape.outputs, shape.rows(), shape.columns()}, dense.options());
    torch::Tensor winners = torch::empty({count, shape.windows(), shape.outputs}, torch::kByte);
    const float* const x = dense.data_ptr<float>();
    const float* const u = transformed.data_ptr<float>();
    const float* const b = dense_bias.data_ptr<float>();
    float* const y = pooled.data_ptr<float>();
    uint8_t* const won = winners.data_ptr<uint8_t>();
    at::parallel_for(0, count, 1, [=](int64_t begin, int64_t end) {
      // Tensors because they start at a cache line. Zeros: the last group's unused tiles are multiplied too.
      torch::Tensor v = torch::zeros({kFrequencies * kGroup * shape.inputs});
      torch::Tensor m = torch::empty({kFrequencies * kGroup * kOutputBlock});
      torch::Tensor best = torch::empty({shape.pooled_size()});
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t tile = 0; tile < shape.windows(); tile += kGroup) {
          const int64_t tiles = std::min(kGroup, shape.windows() - tile);
          run_widest<TransformTiles>(x + i * shape.input_size(), tile, tiles, v.data_ptr<float>(), shape);
          for (int64_t out = 0; out < shape.outputs; out += kOutputBlock) {
            run_widest<MultiplyFrequencies>(v.data_ptr<float>(), u + out * kFrequencies * shape.inputs, tiles,
                                            m.data_ptr<float>(), shape.inputs);
            pool_windows(m.data_ptr<float>(), b + out, tiles, best.data_ptr<float>() + tile * shape.outputs + out,
                         won + i * shape.pooled_size() + tile * shape.outputs + out, shape.outputs);
          }
        }
        transpose(best.data_ptr<float>(), y + i * shape.pooled_size(), shape.windows(), shape.outputs);
      }
    });
    context->save_for_backward({dense, weight, winners});
    context->saved_data["needs_input_gradient"] = input.requires_grad();
    return pooled;
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const auto saved = context->get_saved_variables();
    const torch::Tensor& input = saved[0];
    const int64_t count = input.size(0);
    const Shape shape{input.size(2), input.size(3), input.size(1), saved[1].size(0)};
    const torch::Tensor gradient = gradients[0].contiguous();
    const torch::Tensor weight = saved[1].contiguous(torch::MemoryFormat::ChannelsLast);  // [output][tap][input]
    torch::Tensor input_gradient;
    if (context->saved_data["needs_input_gradient"].toBool()) {
      input_gradient = torch::empty_like(input, torch::MemoryFormat::ChannelsLast);
    }
    // One partial sum per part of the batch, added up in order: the result depends on the number of threads only.
    const int64_t parts = std::max<int64_t>(1, std::min<int64_t>(at::get_num_threads(), count));
    const int64_t weight_size = shape.outputs * kTaps * shape.inputs;
    torch::Tensor partial = torch::zeros({parts, weight_size + shape.outputs}, input.options());
    const float* const x = input.data_ptr<float>();
    const float* const w = weight.data_ptr<float>();
    const float* const g = gradient.data_ptr<float>();
    const uint8_t* const won = saved[2].data_ptr<uint8_t>();
    float* const dx = input_gradient.defined() ? input_gradient.data_ptr<float>() : nullptr;
    float* const sums = partial.data_ptr<float>();
    at::parallel_for(0, parts, 1, [=](int64_t first, int64_t last) {
      Scratch scratch{window_offsets(shape), {}, {}};
      for (int64_t part = first; part < last; ++part) {
        float* const dw = sums + part * (weight_size + shape.outputs);
        for (int64_t i = count * part / parts; i < count * (part + 1) / parts; ++i) {
          float* const image_dx = dx == nullptr ? nullptr : dx + i * shape.input_size();
          if (image_dx != nullptr) std::fill_n(image_dx, shape.input_size(), 0.F);
          backward_image(x + i * shape.input_size(), w, g + i * shape.pooled_size(), won + i * shape.pooled_size(),
                         image_dx, dw, dw + weight_size, scratch, shape);
        }
      }
    });
    const torch::Tensor total = parts == 1 ? partial[0] : partial.sum(0);
    return {input_gradient,
            total.slice(0, 0, weight_size).view({shape.outputs, 3, 3, shape.inputs}).permute({0, 3, 1, 2}).contiguous(),
            total.slice(0, weight_size)};
  }
};

}  // namespace

torch::Tensor conv3x3_relu_pool2(const torch::Tensor& input, const torch::Tensor& weight, const torch::Tensor& bias) {
  const bool is_fast = input.device().is_cpu() && input.scalar_type() == torch::kFloat && input.size(2) >= 4 &&
                       input.size(3) >= 4 && weight.size(1) % kInputBlock == 0 && weight.size(0) % kOutputBlock == 0 &&
                       !PlainOperations::is_on();
  // relu and maximum commute; after pooling there is a quarter of the work.
  if (!is_fast) return torch::relu(torch::max_pool2d(torch::conv2d(input, weight, bias), 2));
  TUTTI_ANNOUNCE_OPERATOR("tutti::conv3x3_relu_pool2", input, weight, bias);
  return ConvPool::apply(input, weight, bias);
}

}  // namespace tutti
