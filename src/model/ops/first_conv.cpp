#include "model/ops/first_conv.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "model/ops/announce.h"
#include "model/ops/lanes.h"
#include "model/ops/plain.h"

namespace tutti {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

constexpr int kFirstTaps = 9;

/// Registers of output channels that are worked on together: 9 taps × 2 of AVX-512's 32, or × 1 of the others' 16.
constexpr int registers(int width) { return width == 16 ? 2 : 1; }

/// One image and what belongs to it: `image` [height][width], `output` and `gradient` [height-2][width-2][channels].
struct FirstShape {
  int64_t height, width, channels;
  int64_t output_size() const { return (height - 2) * (width - 2) * channels; }
};

/// `weight` is [tap][channel].
struct ForwardImage {
  template <int kWidth>
  static TUTTI_INLINE void run(const float* image, const float* weight, const float* bias, float* output,
                               FirstShape shape) {
    using Lanes = typename LanesOf<kWidth>::Value;
    constexpr int kRegisters = registers(kWidth);
    for (int64_t block = 0; block < shape.channels; block += kRegisters * kWidth) {
      Lanes w[kFirstTaps][kRegisters], b[kRegisters];
#pragma GCC unroll 2
      for (int j = 0; j < kRegisters; ++j) {
        b[j] = lanes<kWidth>(bias + block + j * kWidth);
#pragma GCC unroll 9
        for (int tap = 0; tap < kFirstTaps; ++tap)
          w[tap][j] = lanes<kWidth>(weight + tap * shape.channels + block + j * kWidth);
      }
      for (int64_t y = 0; y < shape.height - 2; ++y) {
        const float* const row = image + y * shape.width;
        float* to = output + y * (shape.width - 2) * shape.channels + block;
        for (int64_t x = 0; x < shape.width - 2; ++x, to += shape.channels) {
          Lanes sum[kRegisters];
#pragma GCC unroll 2
          for (int j = 0; j < kRegisters; ++j) sum[j] = b[j];
#pragma GCC unroll 9
          for (int tap = 0; tap < kFirstTaps; ++tap) {
            const float pixel = row[(tap / 3) * shape.width + x + tap % 3];
#pragma GCC unroll 2
            for (int j = 0; j < kRegisters; ++j) sum[j] += pixel * w[tap][j];
          }
          // "not below" rather than "above", so that NaN stays NaN
#pragma GCC unroll 2
          for (int j = 0; j < kRegisters; ++j) lanes<kWidth>(to + j * kWidth) = sum[j] <= 0 ? Lanes{} : sum[j];
        }
      }
    }
  }
};

/// Adds to `weight_gradient` [tap][channel] and `bias_gradient`.
struct BackwardImage {
  template <int kWidth>
  static TUTTI_INLINE void run(const float* image, const float* output, const float* gradient, float* weight_gradient,
                               float* bias_gradient, FirstShape shape) {
    using Lanes = typename LanesOf<kWidth>::Value;
    constexpr int kRegisters = registers(kWidth);
    for (int64_t block = 0; block < shape.channels; block += kRegisters * kWidth) {
      Lanes w[kFirstTaps][kRegisters], b[kRegisters];
#pragma GCC unroll 2
      for (int j = 0; j < kRegisters; ++j) {
        b[j] = lanes<kWidth>(bias_gradient + block + j * kWidth);
#pragma GCC unroll 9
        for (int tap = 0; tap < kFirstTaps; ++tap)
          w[tap][j] = lanes<kWidth>(weight_gradient + tap * shape.channels + block + j * kWidth);
      }
      for (int64_t y = 0; y < shape.height - 2; ++y) {
        const float* const row = image + y * shape.width;
        int64_t at = y * (shape.width - 2) * shape.channels + block;
        for (int64_t x = 0; x < shape.width - 2; ++x, at += shape.channels) {
          Lanes g[kRegisters];
#pragma GCC unroll 2
          for (int j = 0; j < kRegisters; ++j) {
            const Lanes passed = lanes<kWidth>(gradient + at + j * kWidth);
            g[j] = lanes<kWidth>(output + at + j * kWidth) > 0 ? passed : Lanes{};
            b[j] += g[j];
          }
#pragma GCC unroll 9
          for (int tap = 0; tap < kFirstTaps; ++tap) {
            const float pixel = row[(tap / 3) * shape.width + x + tap % 3];
#pragma GCC unroll 2
            for (int j = 0; j < kRegisters; ++j) w[tap][j] += pixel * g[j];
          }
        }
      }
#pragma GCC unroll 2
      for (int j = 0; j < kRegisters; ++j) {
        lanes<kWidth>(bias_gradient + block + j * kWidth) = b[j];
#pragma GCC unroll 9
        for (int tap = 0; tap < kFirstTaps; ++tap)
          lanes<kWidth>(weight_gradient + tap * shape.channels + block + j * kWidth) = w[tap][j];
      }
    }
  }
};

struct FirstConv : torch::autograd::Function<FirstConv> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& images, const torch::Tensor& weight,
                               const torch::Tensor& bias) {
    const int64_t count = images.size(0);
    const FirstShape shape{images.size(2), images.size(3), weight.size(0)};
    const torch::Tensor dense = images.contiguous();
    const torch::Tensor by_tap = weight.reshape({shape.channels, kFirstTaps}).t().contiguous();
    const torch::Tensor dense_bias = bias.contiguous();
    torch::Tensor output = torch::empty({count, shape.channels, shape.height - 2, shape.width - 2}, dense.options(),
                                        torch::MemoryFormat::ChannelsLast);
    const float* const image = dense.data_ptr<float>();
    const float* const w = by_tap.data_ptr<float>();
    const float* const b = dense_bias.data_ptr<float>();
    float* const out = output.data_ptr<float>();
    at::parallel_for(0, count, 1, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        run_widest<ForwardImage>(image + i * shape.height * shape.width, w, b, out + i * shape.output_size(), shape);
      }
    });
    context->save_for_backward({dense, output});
    return output;
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const auto saved = context->get_saved_variables();
    const torch::Tensor& images = saved[0];
    const torch::Tensor& output = saved[1];
    const int64_t count = images.size(0);
    const FirstShape shape{images.size(2), images.size(3), output.size(1)};
    const torch::Tensor gradient = gradients[0].contiguous(torch::MemoryFormat::ChannelsLast);
    // One partial sum per part of the batch, added up in order: the result depends on the number of threads only.
    const int64_t parts = std::max<int64_t>(1, std::min<int64_t>(at::get_num_threads(), count));
    torch::Tensor partial = torch::zeros({parts, kFirstTaps + 1, shape.channels}, images.options());
    const float* const image = images.data_ptr<float>();
    const float* const out = output.data_ptr<float>();
    const float* const g = gradient.data_ptr<float>();
    float* const sums = partial.data_ptr<float>();
    at::parallel_for(0, parts, 1, [=](int64_t first, int64_t last) {
      for (int64_t part = first; part < last; ++part) {
        float* const w = sums + part * (kFirstTaps + 1) * shape.channels;
        for (int64_t i = count * part / parts; i < count * (part + 1) / parts; ++i) {
          run_widest<BackwardImage>(image + i * shape.height * shape.width, out + i * shape.output_size(),
                                    g + i * shape.output_size(), w, w + kFirstTaps * shape.channels, shape);
        }
      }
    });
    const torch::Tensor total = parts == 1 ? partial[0] : partial.sum(0);
    return {torch::Tensor(), total.slice(0, 0, kFirstTaps).t().reshape({shape.channels, 1, 3, 3}), total[kFirstTaps]};
  }
};

}  // namespace

torch::Tensor first_conv3x3_relu(const torch::Tensor& images, const torch::Tensor& weight, const torch::Tensor& bias) {
  const bool is_fast = images.device().is_cpu() && images.scalar_type() == torch::kFloat && !images.requires_grad() &&
                       images.size(1) == 1 && images.size(2) > 2 && images.size(3) > 2 &&
                       weight.size(0) % (2 * kLanes) == 0 && !PlainOperations::is_on();
  if (!is_fast) return torch::relu(torch::conv2d(images, weight, bias));
  TUTTI_ANNOUNCE_OPERATOR("tutti::first_conv3x3_relu", images, weight, bias);
  return FirstConv::apply(images, weight, bias);
}

}  // namespace tutti
