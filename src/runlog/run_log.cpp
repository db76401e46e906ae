#include "tutti/run_log.h"

#include <torch/version.h>

#include <ctime>
#include <filesystem>
#include <limits>

#include "base/clock.h"
#include "base/files.h"
#include "base/folder_lock.h"
#include "base/sha256.h"
#include "base/trace.h"
#include "comm/exchange.h"
#include "comm/nodes.h"
#include "engine/flat_space.h"
#include "record/record_file.h"
#include "report/step_breakdown.h"
#include "runlog/gathered_traces.h"
#include "runlog/node_report.h"
#include "runlog/run_report.h"
#include "runlog/search_report.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Steps under the strategy's plan before they are traced: the first touches new memory.
constexpr int64_t kUntracedSteps = 2;
// Left out of the steady throughput: the first steps warm caches and measure the profile.
constexpr int64_t kWarmUpSteps = 10;
constexpr int64_t kLogEvery = 20;

std::string name_of_now(const std::string& model) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
  return fmt::format("{}-{}", stamp, model);
}

std::string sha256_of(const FlatSpace& space) {
  const torch::NoGradGuard no_grad;
  Sha256 hash;
  for (const FlatParameter& parameter : space.parameters()) {
    const torch::Tensor values = parameter.tensor.detach().to(torch::kCPU).contiguous();
    hash.update(parameter.name);
    hash.update(values.data_ptr(), values.nbytes());
  }
  return hash.hex();
}

template <typename T>
std::vector<T> gather(Communicator& comm, const T& mine) {
  std::vector<T> all;
  for (const std::string& text : gather_texts(comm, json(mine).dump())) all.push_back(json::parse(text).get<T>());
  return all;
}

}  // namespace

RunLog::RunLog(Communicator& comm, const RunInfo& info) : comm_(comm), info_(info) {
  if (!records() || info.trace_steps == 0) return;
  // From shortly after the plan is decided on.
  trace_ = std::make_unique<Trace>(TraceWindow{std::numeric_limits<int64_t>::max() / 2, info.trace_steps});
}

RunLog::~RunLog() = default;

void RunLog::begin(const TunedEngine& engine) {
  is_begun_ = true;
  const std::vector<Node> nodes = find_nodes(comm_);
  nodes_ = describe_nodes(nodes);
  const torch::Device device = engine.engine().space().gradients().device();
  info_.config.update({{"model", info_.model}, {"transport", comm_.name()}});
  info_.config = config_record(info_.config, comm_.size(), device.str());
  if (comm_.rank() == 0) open_folder();
  const std::string holder = gather_texts(comm_, lock_ ? lock_->holder() : "")[0];
  if (!holder.empty())
    throw Error("the run '{}' is in use by {}: wait until that has ended, or give another name", info_.name, holder);
  if (comm_.rank() != 0) return;
  records_.add_sink(json_lines((fs::path(folder_) / kRecordsFile).string()));
  records_.add(RunRecord{info_.config, nodes_, this_environment(TORCH_VERSION), info_.launcher, 0});
}

void RunLog::open_folder() {
  const std::string name = info_.name.empty() ? name_of_now(info_.model) : info_.name;
  fs::path folder = fs::path(info_.runs_folder) / name;
  for (int again = 2; info_.name.empty() && fs::exists(folder); ++again)
    folder = fs::path(info_.runs_folder) / fmt::format("{}-{}", name, again);
  make_folders(folder);
  folder_ = folder.string();
  lock_ = std::make_unique<FolderLock>(folder);
}

void RunLog::add_losses(double sum, int64_t count) {
  loss_sum_ += sum;
  losses_ += count;
}

void RunLog::step_done(TunedEngine& engine, const StepTimes& times, int64_t samples) {
  if (!records()) return;
  if (!is_begun_) {
    engine.drain();
    begin(engine);
    last_ = logged_ = Clock::now();
  }
  const auto now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - last_).count();
  last_ = now;
  ++steps_;
  samples_ += samples;
  times_.train_s += seconds;
  times_.comm_s += times.comm_busy_s;
  times_.comm_exposed_s += times.comm_exposed_s;
  if (steps_ > kWarmUpSteps) {
    steady_s_ += seconds;
    steady_samples_ += samples;
  }
  if (comm_.rank() == 0) step_s_.push_back(seconds);
  if (engine.decisions() != decisions_) {
    if (trace_ && decisions_ == 0) trace_->start_at(engine.engine().steps_done() + kUntracedSteps);
    decisions_ = engine.decisions();
    record_plan(engine);
  }
  if (trace_ && trace_->is_over()) record_trace(engine);
  if (steps_ % kLogEvery == 0) {
    const double since = std::chrono::duration<double>(now - logged_).count();
    const auto all = static_cast<double>((samples_ - logged_samples_) * comm_.size());  // others' are taken to be alike
    ProgressRecord record{steps_, 0, all / std::max(since, 1e-9), info_.config.value("lr", 0.0), std::nullopt};
    if (losses_ > logged_losses_)
      record.loss = (loss_sum_ - logged_loss_sum_) / static_cast<double>(losses_ - logged_losses_);
    records_.add(record);
    logged_ = now;
    logged_samples_ = samples_;
    logged_loss_sum_ = loss_sum_;
    logged_losses_ = losses_;
  }
}

void RunLog::record_plan(const TunedEngine& engine) {
  if (!engine.profile()) return;
  PlanRecord record;
  record.profile = *engine.profile();
  record.plan = engine.plan();
  record.step = steps_;
  record.links = engine.links();
  if (engine.search() != nullptr) record.search = describe_search(*engine.search());
  record.remark = engine.remark();
  records_.add(record);
}

void RunLog::record_trace(TunedEngine& engine) {
  if (is_trace_written_) return;
  is_trace_written_ = true;
  engine.settle();  // the communication thread is idle from here on
  const std::vector<RankTrace> ranks = gather_traces(*trace_, comm_, nodes_.size() > 1);
  if (comm_.rank() != 0) return;
  const StepBreakdown breakdown = break_down(ranks, engine.plan(), engine.links());
  if (breakdown.steps > 0) records_.add(breakdown);
}

void RunLog::finish(TunedEngine& engine) {
  if (!is_begun_ || is_finished_) return;
  is_finished_ = true;
  engine.settle();
  if (trace_) record_trace(engine);
  const std::vector<RankSummary> ranks =
      gather(comm_, RankSummary{times_, sha256_of(engine.engine().space()), peak_rss_bytes(),
                                engine.engine().optimizer_state_bytes(), steady_s_});
  const auto all_samples = gather_numbers(comm_, {samples_, steady_samples_, losses_});
  const std::vector<double> loss_sums = gather(comm_, loss_sum_);
  const bool outer = info_.config.value("outer_optimizer", false);
  for (std::size_t rank = 1; rank < ranks.size(); ++rank)
    if (ranks[rank].weights_sha256 != ranks[0].weights_sha256)
      throw Error("rank {} ended with other weights than rank 0{}", rank,
                  outer
                      ? ": every rank has to make the same updates, of the same parameters, with the same learning rate"
                      : ": do not use them, and please report this");
  if (comm_.rank() != 0) return;
  EpochRecord epoch;
  epoch.epoch = 1;
  epoch.step = steps_;
  int64_t samples = 0, steady_samples = 0;
  bool has_losses = true;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    samples += all_samples[rank][0];
    steady_samples += all_samples[rank][1];
    // Records have sums over samples, of which a program's losses are means.
    const int64_t losses = all_samples[rank][2];
    has_losses = has_losses && losses > 0;
    const double mean = loss_sums[rank] / static_cast<double>(std::max<int64_t>(losses, 1));
    epoch.ranks.push_back({ranks[rank], all_samples[rank][0], mean * static_cast<double>(all_samples[rank][0]), {}});
  }
  epoch.step_s = step_s_;
  sum_up(epoch, {});
  if (!has_losses) epoch.train_loss.reset();
  records_.add(epoch);
  SummaryRecord summary = summary_of_ranks(ranks, samples, steady_samples);
  summary.model = info_.model;
  summary.ranks = comm_.size();
  summary.strategy = info_.config.value("strategy", "");
  summary.strategy_used = engine.plan().strategy;
  summary.transport = comm_.name();
  summary.nodes = nodes_;
  summary.device = engine.engine().space().gradients().device().str();
  summary.precision = info_.config.value("precision", "");
  summary.steps = steps_;
  summary.warm_up_steps = kWarmUpSteps;
  summary.run_folder = folder_;
  summary.config = info_.config;
  summary.environment = this_environment(TORCH_VERSION);
  records_.add(summary);
}

}  // namespace tutti
