#include "inference/predict.h"

#include <algorithm>

#include "base/torch_compat.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// The most likely of one row of logits.
std::vector<Guess> best_of(const torch::Tensor& logits, int64_t top, const Dataset& data) {
  const torch::Tensor probabilities = torch::softmax(logits.to(torch::kDouble), 0);
  const auto [values, places] = probabilities.topk(std::min(top, probabilities.size(0)));
  std::vector<Guess> guesses;
  for (int64_t i = 0; i < values.size(0); ++i)
    guesses.push_back({data.label(places[i].item<int64_t>()), values[i].item<double>()});
  return guesses;
}

/// The mask as scores on the CPU, row by row.
void take_mask(const torch::Tensor& logits, InputPrediction& to) {
  const torch::Tensor scores = logits.to(torch::kFloat).contiguous();
  to.height = scores.size(-2);
  to.width = scores.size(-1);
  to.scores.assign(scores.data_ptr<float>(), scores.data_ptr<float>() + scores.numel());
  to.foreground = scores.gt(0).to(torch::kDouble).mean().item<double>();
}

/// The rows of a batch that are filled.
Batch first_rows(const Batch& batch, int64_t count) {
  Batch rows;
  for (const torch::Tensor& input : batch.inputs) rows.inputs.push_back(input.narrow(0, 0, count));
  rows.target = batch.target.narrow(0, 0, count);
  rows.size = count;
  return rows;
}

/// Answers to a batch; `answers` has one for each row.
void answer(TrainedModel& trained, const Batch& batch, int64_t top, const std::vector<InputPrediction*>& answers) {
  const Dataset& data = *trained.data.test;
  const SampleKind kind = trained.traits().kind;
  const torch::NoGradGuard no_grad;
  torch::Tensor outputs;
  {
    const Bf16Autocast autocast(trained.bf16);
    outputs = trained.model->outputs(to_device(batch, trained.place)).at(0).to(torch::kCPU);
  }
  for (std::size_t row = 0; row < answers.size(); ++row) {
    const auto index = static_cast<int64_t>(row);
    if (kind == SampleKind::segmentation) {
      take_mask(outputs[index], *answers[row]);
    } else if (kind == SampleKind::masked_text) {
      const torch::Tensor words = batch.inputs[4][index];  // -100 where nothing is to be guessed
      for (int64_t i = 0; i < words.size(0); ++i)
        if (words[i].item<int64_t>() >= 0)
          answers[row]->guesses.push_back(best_of(outputs[index * words.size(0) + i], top, data));
    } else {
      answers[row]->guesses = {best_of(outputs[index], top, data)};
    }
  }
}

}  // namespace

std::vector<InputPrediction> predict(TrainedModel& trained, const std::vector<Input>& inputs, int64_t top) {
  const auto most = static_cast<std::size_t>(std::max<int64_t>(1, trained.options.eval_batch));
  std::vector<InputPrediction> predictions(inputs.size());
  for (std::size_t begin = 0; begin < inputs.size(); begin += most) {
    const std::size_t end = std::min(inputs.size(), begin + most);
    const Batch batch = trained.data.test->make_batch(static_cast<int64_t>(end - begin), /*pinned=*/false);
    Batch filled = batch;
    std::vector<InputPrediction*> answers;
    for (std::size_t i = begin; i < end; ++i) {
      predictions[i].input = inputs[i].name;
      predictions[i].problem = inputs[i].problem;
      if (!predictions[i].problem.empty()) continue;
      try {
        trained.data.test->encode(inputs[i].content, inputs[i].name, static_cast<int64_t>(answers.size()), filled);
        answers.push_back(&predictions[i]);
      } catch (const Error& error) {
        predictions[i].problem = error.what();
      }
    }
    if (!answers.empty()) answer(trained, first_rows(filled, static_cast<int64_t>(answers.size())), top, answers);
  }
  return predictions;
}

}  // namespace tutti
