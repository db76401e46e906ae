#include "inference/trained_evaluation.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "comm/shm/shm.h"
#include "tutti/error.h"

namespace tutti {
namespace {

// More columns than these fit on no terminal.
constexpr std::size_t kMostColumns = 20;
constexpr std::size_t kMostMistakes = 20;

/// A classifier whose every answer is counted, beside what tests count.
class CountingClassifier : public Model {
 public:
  CountingClassifier(const std::shared_ptr<Model>& model, int64_t classes, torch::Device device)
      : Model(model->model_name()),
        model_(register_module("model", model)),
        classes_(classes),
        counts_(torch::zeros({classes * classes}, torch::TensorOptions(torch::kLong).device(device))) {}

  std::vector<torch::Tensor> outputs(const Batch& batch) override { return model_->outputs(batch); }
  torch::Tensor loss(const Batch& batch) override { return model_->loss(batch); }
  EvalSums count(const Batch& batch) override {
    const torch::Tensor logits = outputs(batch).at(0);
    if (logits.dim() != 2 || logits.size(1) != classes_)
      throw Error("model '{}' has no output for each of {} classes", model_name(), classes_);
    counts_.add_(torch::bincount(batch.target * classes_ + logits.argmax(1), {}, classes_ * classes_));
    return count_classes(logits, batch.target);
  }

  std::vector<int64_t> counts() const {
    const torch::Tensor all = counts_.to(torch::kCPU);
    return {all.data_ptr<int64_t>(), all.data_ptr<int64_t>() + all.numel()};
  }

 private:
  std::shared_ptr<Model> model_;
  int64_t classes_;
  torch::Tensor counts_;
};

nlohmann::json json_of(const ClassScore& score) {
  return {{"precision", score.precision}, {"recall", score.recall}, {"f1", score.f1}, {"support", score.support}};
}

}  // namespace

TrainedEvaluation evaluate_trained(TrainedModel& trained, const std::function<void(int64_t, int64_t)>& told) {
  const TrainOptions& options = trained.options;
  const SampleTraits traits = trained.traits();
  const auto alone = make_shm_communicator({});
  const auto run = [&](Model& model) {
    return *evaluate(model, trained.data.test, *alone,
                     {options.eval_batch, options.workers, options.prefetch, trained.place, trained.bf16},
                     [&told](int64_t done, int64_t all) {
                       told(done, all);
                       return true;
                     });
  };
  if (traits.kind == SampleKind::segmentation || traits.kind == SampleKind::masked_text)
    return {run(*trained.model), std::nullopt};
  CountingClassifier counting(trained.model, traits.classes, trained.place.device);
  counting.eval();
  TrainedEvaluation result{run(counting), Confusion()};
  for (int64_t i = 0; i < traits.classes; ++i) result.confusion->names.push_back(trained.data.test->label(i));
  result.confusion->counts = counting.counts();
  return result;
}

std::string describe(const TrainedModel& trained, const TrainedEvaluation& result) {
  std::string text = fmt::format("{} on the test side of {}: {} samples\nWeights: {}\n\n", trained.options.model,
                                 trained.options.data.name, result.counts.samples, trained.file.string());
  const auto line = [&text](std::string name, double value) {
    std::replace(name.begin(), name.end(), '_', ' ');
    text += fmt::format("{:<24} {:.4f}\n", name, value);
  };
  line("loss", result.counts.loss());
  for (const Metric& metric : result.counts.metrics) line(metric.name, metric.value());
  if (result.confusion) {
    const bool is_small = result.confusion->classes() <= kMostColumns;
    const Table mistakes =
        is_small ? confusion_table(*result.confusion) : mistakes_table(*result.confusion, kMostMistakes);
    text += "\n" + aligned_text(class_table(*result.confusion), Table::kMostRows);
    text += "\n" + aligned_text(mistakes, Table::kMostRows);
  }
  text.pop_back();
  return text;
}

nlohmann::json to_json(const TrainedModel& trained, const TrainedEvaluation& result) {
  nlohmann::json json = test_results(result.counts);
  json["model"] = trained.options.model;
  json["data"] = trained.options.data.name;
  json["weights"] = trained.file.string();
  if (!result.confusion) return json;
  const Confusion& confusion = *result.confusion;
  const std::vector<ClassScore> scores = class_scores(confusion);
  json["classes"] = nlohmann::json::array();
  json["confusion"] = nlohmann::json::array();
  for (std::size_t i = 0; i < scores.size(); ++i) {
    nlohmann::json row = json_of(scores[i]);
    row["class"] = confusion.names[i];
    json["classes"].push_back(row);
    const auto begin = confusion.counts.begin() + static_cast<std::ptrdiff_t>(i * confusion.classes());
    json["confusion"].push_back(std::vector<int64_t>(begin, begin + static_cast<std::ptrdiff_t>(confusion.classes())));
  }
  json["mean"] = json_of(mean_score(scores));
  return json;
}

std::string csv(const TrainedEvaluation& result) {
  if (result.confusion) {
    Table table = class_table(*result.confusion);
    table.rows.pop_back();  // the mean
    const Table counts = confusion_table(*result.confusion);
    for (std::size_t column = 1; column < counts.columns.size(); ++column) {
      table.columns.push_back(counts.columns[column]);
      table.columns.back().key = table.columns.back().label = "said " + counts.columns[column].label;
      for (std::size_t row = 0; row < table.rows.size(); ++row)
        table.rows[row].values.push_back(counts.rows[row].values[column]);
    }
    return csv(table);
  }
  Table table;
  table.columns = {{"metric", "metric"}, {"value", "value", "number", 4}};
  table.rows.push_back({{text_value("loss"), number_value(result.counts.loss(), 4)}});
  for (const Metric& metric : result.counts.metrics)
    table.rows.push_back({{text_value(metric.name), number_value(metric.value(), 4)}});
  return csv(table);
}

}  // namespace tutti
