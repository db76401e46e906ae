// What a rank says of its training: its plan, its timeline, its epochs and its end.
#include <cmath>

#include "base/files.h"
#include "comm/exchange.h"
#include "probe/clocks.h"
#include "report/chrome_trace.h"
#include "report/step_breakdown.h"
#include "train/node_report.h"
#include "train/rank_trainer.h"
#include "train/run_report.h"
#include "train/search_report.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Steps under the strategy's plan before they are traced: the first touches new memory.
constexpr int64_t kStepsBeforeTrace = 2;

}  // namespace

void RankTrainer::follow_plan() {
  const StrategySearch* const search = engine_->search();
  if (decisions_ > 0 && search == nullptr && is_searched_) {
    console_.line(fmt::format(
        "step {}: steps take much longer or shorter than when the strategy was chosen: looking again", progress_.step));
    is_searched_ = false;
  }
  if (engine_->decisions() == decisions_) return;
  if (trace_ && decisions_ == 0) trace_->start_at(progress_.step + kStepsBeforeTrace);
  decisions_ = engine_->decisions();
  is_searched_ = search != nullptr;
  record_plan();
}

void RankTrainer::record_plan() {
  if (!engine_->profile()) return;
  json record = {{"profile", *engine_->profile()}, {"plan", engine_->plan()}, {"step", progress_.step}};
  if (engine_->links()) record["links"] = *engine_->links();
  if (const StrategySearch* const search = engine_->search()) {
    record["search"] = describe_search(*search);
    for (const std::string& line : search_lines(*search)) console_.line(line);
  }
  if (!engine_->remark().empty()) {
    console_.line("note: " + engine_->remark());
    record["remark"] = engine_->remark();
  }
  records_.add("plan", std::move(record));
}

void RankTrainer::record_trace() {
  if (is_trace_written_) return;
  is_trace_written_ = true;
  engine_->settle();  // the communication thread is idle from here on
  RankTrace mine;
  mine.compute = trace_->compute_events();
  mine.communication = trace_->communication_events();
  if (nodes_.size() > 1) {
    // Steady clocks of machines count from different times. An offset that may as well be none is none.
    const ClockOffset offset = measure_clock_offsets(comm_)[static_cast<std::size_t>(comm_.rank())];
    if (std::abs(offset.steady_s) > offset.uncertainty_s) mine.clock_offset_ns = -std::llround(offset.steady_s * 1e9);
  }
  std::vector<RankTrace> ranks;
  for (const json& rank : gather(mine)) ranks.push_back(rank.get<RankTrace>());
  if (!is_first_) return;
  const StepBreakdown breakdown = break_down(ranks, engine_->plan(), engine_->links());
  if (breakdown.steps > 0) records_.add("explain", breakdown);
  if (options_.trace_file.empty()) return;
  if (breakdown.steps == 0) {
    console_.line(fmt::format(
        "note: the run ended before the plan had run for {} steps, after which a trace begins: {} is not written",
        kStepsBeforeTrace, options_.trace_file));
    return;
  }
  write_file_atomically(options_.trace_file, chrome_trace(ranks, engine_->plan()));
  console_.line(fmt::format("Trace of steps {} to {}: {}", breakdown.first_step + 1,
                            breakdown.first_step + breakdown.steps, options_.trace_file));
}

std::vector<json> RankTrainer::gather(const json& mine) const {
  engine_->drain();
  std::vector<json> all;
  for (const std::string& text : gather_texts(comm_, mine.dump())) all.push_back(json::parse(text));
  return all;
}

void RankTrainer::report_epoch(const RankTimes& times, double loss, int64_t samples) {
  json mine = times.describe();
  mine["samples"] = samples;
  mine["loss_sum"] = loss;
  EpochResult result;
  result.epoch = progress_.samples_in_epoch == 0 ? progress_.epoch : progress_.epoch + 1;
  result.step = progress_.step;
  result.ranks = gather(mine);
  result.test = tested_ ? &last_test_ : nullptr;
  result.nodes = nodes_;
  for (const std::string& line : epoch_lines(result)) console_.line(line);
  json record = epoch_record(result);
  record["step_s"] = step_s_;
  records_.add("epoch", std::move(record));
}

void RankTrainer::finish() {
  engine_->settle();
  if (trace_) record_trace();
  if (options_.evaluate && !tested_) {  // resumed at the very end
    epoch_times_ = {};
    test();
    total_times_.add(epoch_times_);
  }
  json mine = total_times_.describe();
  mine["weights_sha256"] = weights_sha256(*model_);
  mine["peak_rss_bytes"] = peak_rss_bytes();
  mine["optimizer_state_bytes"] = engine_->optimizer_state_bytes();
  mine["steady_s"] = steady_s_;
  const std::vector<json> ranks = gather(mine);
  for (std::size_t rank = 1; rank < ranks.size(); ++rank)
    if (ranks[rank].at("weights_sha256") != ranks[0].at("weights_sha256"))
      throw Error("rank {} ended with other weights than rank 0: do not use them, and please report this with {}", rank,
                  records_.path().string());
  if (!is_first_) return;

  json summary = summary_of_ranks(ranks, total_samples_, steady_samples_);
  summary.update({{"model", options_.model},
                  {"data", options_.data.name},
                  {"ranks", comm_.size()},
                  {"strategy", options_.strategy},
                  {"strategy_used", engine_->plan().strategy},
                  {"transport", comm_.name()},
                  {"nodes", describe_nodes(nodes_)},
                  {"device", device_.str()},
                  {"precision", options_.precision},
                  {"steps", progress_.step},
                  {"epochs", progress_.epoch},
                  {"warm_up_steps", warm_up_steps_},
                  {"run_folder", run_folder_.string()},
                  {"config", config_},
                  {"environment", describe_environment()}});
  const json results = test_results(last_test_);
  for (const auto& [name, value] : results.items()) summary[name] = tested_ ? value : json();
  const fs::path weights = run_folder_ / "model.safetensors";
  save_weights(weights, *model_);
  records_.add("summary", summary);
  if (!options_.summary_file.empty()) write_file_atomically(options_.summary_file, summary.dump(1) + "\n");
  std::string line = fmt::format("Done: {} steps in {:.1f} s of training, {:.1f} data/s", progress_.step - first_step_,
                                 summary.at("train_s").get<double>(), summary.at("samples_per_s").get<double>());
  if (tested_) line += ", " + test_headline(last_test_);
  console_.line(line);
  console_.line(fmt::format("Weights: {}  Records: {}", weights.string(), records_.path().string()));
}

}  // namespace tutti
