#include "model/ops/first_conv.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "model/ops/announce.h"
#include "model/ops/lanes.h"

namespace tutti {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

constexpr int kTaps = 9;
constexpr int kBlock = 2 * kLanes;  // output channels that are worked on together; 9 taps of them fit the registers

/// One image and what belongs to it: `image` [height][width], `output` and `gradient` [height-2][width-2][channels].
struct Shape {
  int64_t height, width, channels;
  int64_t output_size() const { return (height - 2) * (width - 2) * channels; }
};

/// `weight` is [tap][channel].
TUTTI_PER_CPU void forward_image(const float* image, const float* weight, const float* bias, float* output,
                                 Shape shape) {
  for (int64_t block = 0; block < shape.channels; block += kBlock) {
    Lanes w[kTaps][2];
    for (int tap = 0; tap < kTaps; ++tap) {
      for (int half = 0; half < 2; ++half) {
        w[tap][half] = lanes(weight + tap * shape.channels + block + half * kLanes);
      }
    }
    const Lanes b0 = lanes(bias + block);
    const Lanes b1 = lanes(bias + block + kLanes);
    for (int64_t y = 0; y < shape.height - 2; ++y) {
      const float* const row = image + y * shape.width;
      float* to = output + y * (shape.width - 2) * shape.channels + block;
      for (int64_t x = 0; x < shape.width - 2; ++x, to += shape.channels) {
        Lanes sum0 = b0;
        Lanes sum1 = b1;
#pragma GCC unroll 9
        for (int tap = 0; tap < kTaps; ++tap) {
          const float pixel = row[(tap / 3) * shape.width + x + tap % 3];
          sum0 += pixel * w[tap][0];
          sum1 += pixel * w[tap][1];
        }
        // "not below" rather than "above", so that NaN stays NaN
        lanes(to) = sum0 <= 0 ? Lanes{} : sum0;
        lanes(to + kLanes) = sum1 <= 0 ? Lanes{} : sum1;
      }
    }
  }
}

/// Adds to `weight_gradient` [tap][channel] and `bias_gradient`.
TUTTI_PER_CPU void backward_image(const float* image, const float* output, const float* gradient,
                                  float* weight_gradient, float* bias_gradient, Shape shape) {
  for (int64_t block = 0; block < shape.channels; block += kBlock) {
    Lanes w[kTaps][2];
    for (int tap = 0; tap < kTaps; ++tap) {
      for (int half = 0; half < 2; ++half) {
        w[tap][half] = lanes(weight_gradient + tap * shape.channels + block + half * kLanes);
      }
    }
    Lanes b0 = lanes(bias_gradient + block);
    Lanes b1 = lanes(bias_gradient + block + kLanes);
    for (int64_t y = 0; y < shape.height - 2; ++y) {
      const float* const row = image + y * shape.width;
      int64_t at = y * (shape.width - 2) * shape.channels + block;
      for (int64_t x = 0; x < shape.width - 2; ++x, at += shape.channels) {
        const Lanes g0 = lanes(output + at) > 0 ? lanes(gradient + at) : Lanes{};
        const Lanes g1 = lanes(output + at + kLanes) > 0 ? lanes(gradient + at + kLanes) : Lanes{};
        b0 += g0;
        b1 += g1;
#pragma GCC unroll 9
        for (int tap = 0; tap < kTaps; ++tap) {
          const float pixel = row[(tap / 3) * shape.width + x + tap % 3];
          w[tap][0] += pixel * g0;
          w[tap][1] += pixel * g1;
        }
      }
    }
    for (int tap = 0; tap < kTaps; ++tap) {
      for (int half = 0; half < 2; ++half) {
        lanes(weight_gradient + tap * shape.channels + block + half * kLanes) = w[tap][half];
      }
    }
    lanes(bias_gradient + block) = b0;
    lanes(bias_gradient + block + kLanes) = b1;
  }
}

struct FirstConv : torch::autograd::Function<FirstConv> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& images, const torch::Tensor& weight,
                               const torch::Tensor& bias) {
    const int64_t count = images.size(0);
    const Shape shape{images.size(2), images.size(3), weight.size(0)};
    const torch::Tensor dense = images.contiguous();
    const torch::Tensor by_tap = weight.reshape({shape.channels, kTaps}).t().contiguous();
    const torch::Tensor dense_bias = bias.contiguous();
    torch::Tensor output = torch::empty({count, shape.channels, shape.height - 2, shape.width - 2}, dense.options(),
                                        torch::MemoryFormat::ChannelsLast);
    const float* const image = dense.data_ptr<float>();
    const float* const w = by_tap.data_ptr<float>();
    const float* const b = dense_bias.data_ptr<float>();
    float* const out = output.data_ptr<float>();
    at::parallel_for(0, count, 1, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        forward_image(image + i * shape.height * shape.width, w, b, out + i * shape.output_size(), shape);
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
    const Shape shape{images.size(2), images.size(3), output.size(1)};
    const torch::Tensor gradient = gradients[0].contiguous(torch::MemoryFormat::ChannelsLast);
    // One partial sum per part of the batch, added up in order: the result depends on the number of threads only.
    const int64_t parts = std::max<int64_t>(1, std::min<int64_t>(at::get_num_threads(), count));
    torch::Tensor partial = torch::zeros({parts, kTaps + 1, shape.channels}, images.options());
    const float* const image = images.data_ptr<float>();
    const float* const out = output.data_ptr<float>();
    const float* const g = gradient.data_ptr<float>();
    float* const sums = partial.data_ptr<float>();
    at::parallel_for(0, parts, 1, [=](int64_t first, int64_t last) {
      for (int64_t part = first; part < last; ++part) {
        float* const w = sums + part * (kTaps + 1) * shape.channels;
        for (int64_t i = count * part / parts; i < count * (part + 1) / parts; ++i) {
          backward_image(image + i * shape.height * shape.width, out + i * shape.output_size(),
                         g + i * shape.output_size(), w, w + kTaps * shape.channels, shape);
        }
      }
    });
    const torch::Tensor total = parts == 1 ? partial[0] : partial.sum(0);
    return {torch::Tensor(), total.slice(0, 0, kTaps).t().reshape({shape.channels, 1, 3, 3}), total[kTaps]};
  }
};

}  // namespace

torch::Tensor first_conv3x3_relu(const torch::Tensor& images, const torch::Tensor& weight, const torch::Tensor& bias) {
  const bool is_fast = images.device().is_cpu() && images.scalar_type() == torch::kFloat && !images.requires_grad() &&
                       images.size(1) == 1 && images.size(2) > 2 && images.size(3) > 2 && weight.size(0) % kBlock == 0;
  if (!is_fast) return torch::relu(torch::conv2d(images, weight, bias));
  TUTTI_ANNOUNCE_OPERATOR("tutti::first_conv3x3_relu", images, weight, bias);
  return FirstConv::apply(images, weight, bias);
}

}  // namespace tutti
