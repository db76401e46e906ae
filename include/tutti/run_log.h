#pragma once

#include <tutti/communicator.h>
#include <tutti/records.h>
#include <tutti/tuned_engine.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tutti {

class FolderLock;

/// What a program says of its run.
struct RunInfo {
  std::string name = "";             // of the run, and of its folder; "": made of the time and `model`
  std::string runs_folder = "runs";  // "": nothing is recorded
  std::string model = "model";       // what it trains, for people
  int64_t trace_steps = 20;          // of which a timeline is recorded, for `tutti explain`; 0: none
  std::string launcher = "";         // what started the ranks
  /// Its options, by the names that those of `tutti train` have ("batch", "optimizer", "lr", …), as far as it has them.
  nlohmann::json config = nlohmann::json::object();
};

/// Records the run of a program with a training loop of its own, as `tutti train` records its runs: `tutti explain`,
/// `plan`, `report` read both. A run of that name that is there already gets another part.
///
///   tutti::RunLog log(job.communicator(), info);
///   options.trace = log.trace();
///   tutti::TunedEngine engine(…, options);
///   … { …; log.step_done(engine, engine.finish_step(rate), samples); }
///   log.finish(engine);
///
/// Rank 0 writes. Outlives the engine; borrows the communicator.
class RunLog {
 public:
  RunLog(Communicator& comm, const RunInfo& info);
  ~RunLog();

  /// For EngineOptions; null where nothing is recorded.
  Trace* trace() { return trace_.get(); }
  /// Where it records to; "" where it does not, and before the first step.
  const std::string& folder() const { return folder_; }

  /// Before the first step_done(): options that were not known when the run began.
  void add_config(const nlohmann::json& options) { info_.config.update(options); }

  /// Losses of this rank's steps, for the records that follow.
  void add_losses(double sum, int64_t count);

  /// After each step, on every rank: in some steps a collective. `samples`: this rank's in the step.
  void step_done(TunedEngine& engine, const StepTimes& times, int64_t samples);
  /// At the end. A collective. Throws Error when ranks have other weights.
  void finish(TunedEngine& engine);

 private:
  bool records() const { return !info_.runs_folder.empty(); }
  void begin(const TunedEngine& engine);
  void open_folder();
  void record_plan(const TunedEngine& engine);
  void record_trace(TunedEngine& engine);

  Communicator& comm_;
  RunInfo info_;
  std::unique_ptr<Trace> trace_;
  bool is_trace_written_ = false;
  std::string folder_;
  std::unique_ptr<FolderLock> lock_;  // of it, on rank 0
  RecordWriter records_;
  std::vector<NodeRanks> nodes_;
  bool is_begun_ = false, is_finished_ = false;
  int decisions_ = 0;
  int64_t steps_ = 0, samples_ = 0, steady_samples_ = 0, logged_samples_ = 0;
  double loss_sum_ = 0, logged_loss_sum_ = 0;
  int64_t losses_ = 0, logged_losses_ = 0;
  RankTimes times_;
  double steady_s_ = 0;
  std::vector<double> step_s_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now(), logged_ = last_;
};

}  // namespace tutti
