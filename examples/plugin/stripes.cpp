// A model, a data set and a strategy of one's own for the program tutti:
//   tutti train --plugin build/libstripes.so --model stripes --data stripes --strategy two-halves
#include <torch/nn/modules/linear.h>
#include <tutti/plugin.h>

namespace {

/// Two layers between the pixels and the classes.
class StripesModel : public tutti::Model {
 public:
  explicit StripesModel(const tutti::SampleTraits& data)
      : Model("stripes"),
        hidden_(register_module("hidden", torch::nn::Linear(data.shape[0] * data.shape[1] * data.shape[2], 32))),
        head_(register_module("head", torch::nn::Linear(32, data.classes))) {}

  std::vector<torch::Tensor> outputs(const tutti::Batch& batch) override {
    return {head_(torch::relu(hidden_(batch.inputs[0].flatten(1))))};
  }
  torch::Tensor loss(const tutti::Batch& batch) override {
    return torch::cross_entropy_loss(outputs(batch)[0], batch.target);
  }
  tutti::EvalSums count(const tutti::Batch& batch) override {
    return tutti::count_classes(outputs(batch)[0], batch.target);
  }

 private:
  torch::nn::Linear hidden_, head_;
};

/// Noisy pictures of stripes, lying (0) or standing (1), each drawn from its number.
class Stripes : public tutti::Dataset {
 public:
  Stripes(int64_t size, int64_t first) : size_(size), first_(first) {}
  const std::string& name() const override { return name_; }
  int64_t size() const override { return size_; }
  tutti::SampleTraits traits() const override { return {tutti::SampleKind::images, {1, kSide, kSide}, 2}; }
  bool varies() const override { return false; }

  void load(tutti::Pick pick, int64_t row, tutti::Batch& batch) const override {
    const int64_t sample = first_ + pick.index, label = sample % 2;
    float* const pixels = batch.inputs[0][row].data_ptr<float>();
    for (int64_t y = 0; y < kSide; ++y)
      for (int64_t x = 0; x < kSide; ++x) {
        const auto noise = static_cast<float>((sample * 7919 + y * 31 + x * 17) % 101) / 101;
        pixels[y * kSide + x] = static_cast<float>((label == 0 ? y : x) / 2 % 2) + noise - 1;
      }
    batch.target[row] = label;
  }

 private:
  static constexpr int64_t kSide = 8;
  std::string name_ = "stripes";
  int64_t size_, first_;
};

/// The half of the layers whose gradients are ready first travels while the others are computed.
tutti::Plan two_halves(const tutti::Profile& profile, const tutti::Links&, int ranks, const tutti::StrategyOptions&) {
  tutti::Plan plan = tutti::empty_plan(profile, "two-halves", ranks);
  const std::size_t slots = plan.slots.size(), half = slots / 2;
  if (half > 0) tutti::add_transfer(plan, 0, half - 1, tutti::StartsWhen::gradients_ready);
  if (slots > 0) tutti::add_transfer(plan, half, slots - 1, tutti::StartsWhen::gradients_ready);
  return plan;
}

}  // namespace

TUTTI_PLUGIN(tutti::Registry& registry) {
  registry.add_model({"stripes",
                      {tutti::SampleKind::images, {1, 8, 8}, 2},
                      [](const tutti::ModelOptions& options) -> std::shared_ptr<tutti::Model> {
                        return std::make_shared<StripesModel>(options.data);
                      }});
  registry.add_data({"stripes", [](const tutti::DataOptions& options) -> tutti::TrainTest {
                       const int64_t train = options.train_size > 0 ? options.train_size : 2000;
                       const int64_t test = options.test_size > 0 ? options.test_size : 500;
                       return {std::make_shared<Stripes>(train, 0), std::make_shared<Stripes>(test, train)};
                     }});
  registry.add_strategy({"two-halves", "two all-reduces, the first during backward", two_halves});
}
