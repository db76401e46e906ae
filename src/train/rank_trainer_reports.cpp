// What a rank says of its training: its plan, its timeline, its epochs and its end.
#include <torch/version.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "comm/exchange.h"
#include "record/record_file.h"
#include "report/chrome_trace.h"
#include "report/step_breakdown.h"
#include "runlog/gathered_traces.h"
#include "runlog/node_report.h"
#include "runlog/run_report.h"
#include "runlog/search_report.h"
#include "status/status_board.h"
#include "train/failures.h"
#include "train/output_files.h"
#include "train/rank_setup.h"
#include "train/rank_trainer.h"
#include "train/same_weights.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Steps under the strategy's plan before they are traced: the first touches new memory.
constexpr int64_t kStepsBeforeTrace = 2;

/// Names in records are UTF-8.
std::vector<std::string> bad_samples(const TrainTest& data) {
  std::vector<std::string> names = data.train->bad_samples();
  for (const std::string& name : data.test->bad_samples()) names.push_back(name);
  for (std::string& name : names) name = valid_utf8(name);
  return names;
}

}  // namespace

template <typename T>
std::vector<T> RankTrainer::gather(const T& mine) const {
  engine_->drain();
  std::vector<T> all;
  for (const std::string& text : gather_texts(comm_, json(mine).dump())) all.push_back(json::parse(text).get<T>());
  return all;
}

void RankTrainer::follow_plan() {
  if (!is_capture_told_ && !captured_->remark().empty()) {
    console_.note(captured_->remark());
    is_capture_told_ = true;
  }
  const StrategySearch* const search = engine_->search();
  if (decisions_ > 0 && search == nullptr && is_searched_) {
    console_.line(fmt::format(
        "step {}: steps take much longer or shorter than when the strategy was chosen: looking again", progress_.step));
    is_searched_ = false;
  }
  if (engine_->decisions() == decisions_) return;
  if (trace_ && decisions_ == 0) trace_->start_at(progress_.step + kStepsBeforeTrace);
  decisions_ = engine_->decisions();
  StatusBoard::get().enter(RunPhase::training);
  is_searched_ = search != nullptr;
  record_plan();
}

void RankTrainer::record_plan() {
  if (!engine_->profile()) return;
  PlanRecord record;
  record.profile = *engine_->profile();
  record.plan = engine_->plan();
  record.step = progress_.step;
  record.links = engine_->links();
  if (const StrategySearch* const search = engine_->search()) {
    record.search = describe_search(*search);
    for (const std::string& line : search_lines(*search)) console_.line(line);
  }
  if (!engine_->remark().empty()) {
    console_.note(engine_->remark());
    record.remark = engine_->remark();
  }
  records_.add(record);
}

void RankTrainer::record_trace() {
  if (is_trace_written_) return;
  is_trace_written_ = true;
  engine_->settle();  // the communication thread is idle from here on
  const std::vector<RankTrace> ranks = gather_traces(*trace_, comm_, nodes_.size() > 1);
  if (!is_first_) return;
  const StepBreakdown breakdown = break_down(ranks, engine_->plan(), engine_->links());
  if (breakdown.steps > 0) records_.add(breakdown);
  if (options_.trace_file.empty()) return;
  if (breakdown.steps == 0) {
    console_.note(
        fmt::format("the run ended before the plan had run for {} steps, after which a trace begins: {} is not written",
                    kStepsBeforeTrace, options_.trace_file));
    return;
  }
  const std::string text = chrome_trace(ranks, engine_->plan());
  if (const std::string problem = problem_of_writing(options_.trace_file, text); !problem.empty())
    console_.note(fmt::format("there is no trace: {}", problem));
  else
    console_.line(fmt::format("Trace of steps {} to {}: {}", breakdown.first_step + 1,
                              breakdown.first_step + breakdown.steps, options_.trace_file));
}

std::string RankTrainer::step_of_run() const {
  return fmt::format("step {}/{}", progress_.step, progress_.step + course_->steps_left(progress_));
}

void RankTrainer::report_step(double samples_per_s, double loss) {
  ProgressRecord record{progress_.step, progress_.epoch, samples_per_s, learning_rate(), loss};
  record.loss_smoothed = smoothed_loss_.value();
  record.gradient_norm = gradient_norm_;
  if (console_.wants_detail())
    console_.detail(fmt::format("{}: {:.1f} data/s, loss {:.4f} (smoothed {:.4f}), lr {:.3g}{}", step_of_run(),
                                samples_per_s, loss, record.loss_smoothed.value_or(loss), record.lr,
                                gradient_norm_ ? fmt::format(", gradient norm {:.3g}", *gradient_norm_) : ""));
  records_.add(record);
}

std::string RankTrainer::progress_text(double samples_per_s) const {
  // What matters least comes last: it may not fit.
  std::string text = fmt::format("epoch {}{}  {}", progress_.epoch + 1,
                                 options_.steps > 0 ? "" : fmt::format("/{}", options_.epochs), step_of_run());
  const auto left_s = time_left_.seconds(course_->steps_left(progress_),
                                         options_.evaluate ? course_->tests_left(progress_, options_.eval_every) : 0);
  if (left_s) text += fmt::format("  {} left", readable_duration(*left_s));
  if (const auto smoothed = smoothed_loss_.value())
    text += fmt::format("  loss {:.4f} (last {:.4f})", *smoothed, last_loss_);
  text += fmt::format("  {:.0f} data/s  lr {:.3g}", samples_per_s, learning_rate());
  if (gradient_norm_) text += fmt::format("  gradient norm {:.3g}", *gradient_norm_);
  return text;
}

void RankTrainer::record_end(const EndRecord& end) noexcept {
  if (!is_first_) return;
  try {
    records_.add(end);
  } catch (const std::exception&) {
    // A full disk may be why it ends: what is said of that is enough.
  }
}

EpochRecord RankTrainer::trained_epoch(double loss, int64_t samples) {
  EpochRecord record;
  record.epoch = progress_.samples_in_epoch == 0 ? progress_.epoch : progress_.epoch + 1;
  record.step = progress_.step;
  record.ranks = gather(RankEpoch{epoch_times_, samples, loss, medians_of_thirds(own_step_s_)});
  record.step_s = step_s_;
  return record;
}

void RankTrainer::report_epoch(EpochRecord record) {
  if (tested_) {
    record.test = test_results(last_test_);
    // A resumed run may have another number of ranks than the epoch had.
    const auto test_s = gather_numbers(comm_, {std::llround(epoch_times_.test_s * 1e9)});
    for (std::size_t i = 0; i < std::min(test_s.size(), record.ranks.size()); ++i)
      record.ranks[i].test_s = static_cast<double>(test_s[i][0]) * 1e-9;
  }
  sum_up(record, static_cast<int>(record.ranks.size()) == comm_.size() ? nodes_ : std::vector<Node>());
  for (const std::string& line : epoch_lines(record, test_headline(last_test_), console_.is_verbose()))
    console_.line(line);
  tell_stragglers(record);
  records_.add(record);
}

void RankTrainer::tell_stragglers(const EpochRecord& epoch) {
  for (const int rank : epoch.stragglers) {
    if (std::find(told_stragglers_.begin(), told_stragglers_.end(), rank) != told_stragglers_.end()) continue;
    told_stragglers_.push_back(rank);
    const std::size_t third = epoch.ranks[0].own_step_s.size() / 2;
    console_.note(fmt::format(
        "rank {} is slow: its own part of a step takes {:.0f} % longer than the others', who wait for it. Look "
        "for other programs where it runs, or a slower machine (tutti explain says more)",
        rank, 100 * extra_time(epoch.ranks, static_cast<std::size_t>(rank), third)));
  }
}

void RankTrainer::finish() {
  engine_->settle();
  if (trace_) record_trace();
  if (options_.evaluate && !tested_) {  // resumed at the very end
    epoch_times_ = {};
    test();
    if (is_stopped_) {
      console_.result(fmt::format("Stopped by a signal during the last test; to go on: tutti train --resume {}",
                                  run_folder_.string()));
      return;
    }
    total_times_.add(epoch_times_);
  }
  require_same_weights(*model_, comm_, fmt::format("after step {}", progress_.step), where_to_go_on());
  const NamedTensors weights = is_first_ ? weights_of(*model_) : NamedTensors();
  const std::vector<RankSummary> ranks =
      gather(RankSummary{total_times_, weights_sha256(*model_), peak_rss_bytes(),
                         engine_->engine().optimizer_state_bytes(), steady_s_, bad_samples(data_)});
  first_rank_alone(comm_, [&] { write_results(ranks, weights); });
}

void RankTrainer::write_results(const std::vector<RankSummary>& ranks, const NamedTensors& tensors) {
  if (const std::string name = find_not_finite(*model_); !name.empty())
    throw TrainingFailed(kExitNotFinite, "the weights '{}' are not finite at step {}. {}", name, progress_.step,
                         where_to_go_on());
  const fs::path records = run_folder_ / kRecordsFile;
  SummaryRecord summary = summary_of_ranks(ranks, total_samples_, steady_samples_);
  summary.model = options_.model;
  summary.data = options_.data.name;
  summary.ranks = comm_.size();
  summary.strategy = options_.strategy;
  summary.strategy_used = engine_->plan().strategy;
  summary.transport = comm_.name();
  summary.nodes = describe_nodes(nodes_);
  summary.device = device_.str();
  summary.precision = options_.precision;
  summary.steps = progress_.step;
  summary.epochs = progress_.epoch;
  summary.warm_up_steps = warm_up_steps_;
  summary.run_folder = run_folder_.string();
  summary.config = config_;
  summary.environment = this_environment(TORCH_VERSION);
  summary.is_tested = tested_;
  summary.test = test_results(last_test_);
  if (best_.has_any()) {
    summary.best_metric = best_.metric();
    summary.best_value = best_.value();
    summary.best_step = best_.step();
    summary.best_epoch = best_.epoch();
    summary.is_stopped_early = is_out_of_patience();
  }
  const fs::path weights = run_folder_ / kWeightsFile;
  save_weights(weights, tensors);
  records_.add(summary);
  std::string problem;
  if (!options_.summary_file.empty()) problem = problem_of_writing(options_.summary_file, json(summary).dump(1) + "\n");
  std::string line = fmt::format("Done: {} steps in {:.1f} s of training, {:.1f} data/s", progress_.step - first_step_,
                                 summary.train_s, summary.samples_per_s);
  if (tested_) line += ", " + test_headline(last_test_);
  if (summary.is_stopped_early)
    console_.result(fmt::format("Ended early: {} test{} without a better one (--patience {})", best_.tests_since(),
                                best_.tests_since() == 1 ? "" : "s", options_.patience));
  console_.result(line);
  if (best_.has_any()) {
    const fs::path kept = run_folder_ / kBestFolder / kWeightsFile;  // not there yet in a run that goes on from another
    console_.result(fmt::format("Best: {}{}", best_.text(), fs::exists(kept) ? ": " + kept.string() : ""));
  }
  if (!summary.bad_samples.empty())
    console_.note(
        fmt::format("samples that could not be read and were replaced: {} ({}{}); the summary in {} names all",
                    summary.bad_samples.size(), printable(summary.bad_samples[0]),
                    summary.bad_samples.size() > 1 ? ", …" : "", records.string()));
  if (!problem.empty()) console_.note(fmt::format("the summary is the last of the records alone: {}", problem));
  console_.result(fmt::format("Weights: {}  Records: {}", weights.string(), records.string()));
}

}  // namespace tutti
