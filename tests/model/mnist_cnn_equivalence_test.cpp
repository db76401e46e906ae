// mnist-cnn ends with the same weights under every strategy.
#include <cstdlib>

#include "engine/equivalence.h"
#include "model/model.h"

namespace tutti {
namespace {

/// mnist-cnn itself, on made-up images; without dropout, since the ranks of a test share torch's random numbers.
struct DigitNetwork : torch::nn::Module {
  DigitNetwork() {
    cnn = register_module("cnn", make_model("mnist-cnn"));
    cnn->eval();
  }
  torch::Tensor loss(const Samples& samples) {
    const torch::Tensor waves = torch::sin(samples.x.sum(1).reshape({-1, 1}) * torch::arange(784) * 0.01);
    return cnn->loss({{waves.reshape({-1, 1, 28, 28})}, samples.y.argmax(1), samples.x.size(0)});
  }
  std::shared_ptr<Model> cnn;
};

// Its kernels are many times slower under sanitizers, which look at accesses and not at numbers.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
TEST(MnistCnn, IsSynchronizedEquallyByAllStrategies) { expect_all_strategies_equal<DigitNetwork>({2, 4, "sgd"}); }
#else
TEST(MnistCnn, IsSynchronizedEquallyByAllStrategies) {
  // Three steps are the profile's, the others follow the strategy's plan. $TUTTI_LONG: more of them.
  const int steps = std::getenv("TUTTI_LONG") != nullptr ? 20 : 6;
  for (const int ranks : {2, 3, 4})
    for (const char* optimizer : {"sgd", "adam"}) expect_all_strategies_equal<DigitNetwork>({ranks, steps, optimizer});
  expect_all_strategies_equal<DigitNetwork>({2, 6, "adam", 0.05, 2});
  expect_all_strategies_equal<DigitNetwork>({3, 6, "sgd", 0, 1, "bf16"});
}
#endif

}  // namespace
}  // namespace tutti
