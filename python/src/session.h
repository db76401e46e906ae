#pragma once

#include <torch/types.h>
#include <tutti/job.h>
#include <tutti/run_log.h>
#include <tutti/tuned_engine.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "meeting.h"

namespace tutti::python {

/// Whether a backward pass failed because of another rank: PyTorch makes a plain RuntimeError of that.
bool has_peer_failed();

/// How a model of Python's is trained.
struct SessionOptions {
  TuneOptions tune;
  RunInfo run;
  bool share_buffers = true;  // of rank 0 with all, in every step in which the communicator is free
  int64_t number = 0;         // of this session among those of the job
};

/// An engine under a model of Python's: counts passes, steps and samples, and records the run. Backward is always
/// Python's. Where the engine does not update, a step ends with its last backward pass, and the next one begins there.
/// Otherwise the optimizer's step() ends it. A rank without batches takes part in the steps of others: see Meeting.
class Session {
 public:
  Session(Job& job, Meeting& meeting, const TrainedTensors& tensors, const SessionOptions& options);

  /// Before a forward pass that backward will follow. `samples` of it are in this step, which will have these learning
  /// rates, one for each group, where the engine updates.
  void begin_forward(int64_t samples, const std::vector<double>& rates);
  /// Whether the passes from now on end their step, or are added up for a later one.
  void synchronize(bool on);
  /// A step ends with so many passes.
  void set_passes(int64_t passes);
  /// The end of a step: by the optimizer, or without any pass on a rank that has nothing to bring.
  void finish_step(const std::vector<double>& rates);
  /// The same, of gradients that are scaled: see Engine::scale_gradients(). Whether the step was left out.
  bool finish_scaled_step(const std::vector<double>& rates, double inverse_scale);
  /// A step of other ranks', with nothing.
  void take_part(const std::vector<double>& rates);
  /// Gives all ranks the parameters of one. A collective, between steps.
  void take_values(int root);
  void set_options(std::size_t group, const OptimizerOptions& options);

  /// Losses of this rank's steps, for the records.
  void add_losses(double sum, int64_t count) { log_.add_losses(sum, count); }

  /// Makes the communicator free for others. Throws Error where it cannot be.
  void drain();
  /// And gives all ranks rank 0's buffers. A collective.
  void settle();
  /// At the end of the run. A collective.
  void finish();
  /// Throws Error where a parameter is not where the engine has put it.
  void check_places() const;

  Engine& engine() { return engine_.engine(); }
  const TunedEngine& tuned() const { return engine_; }
  const std::string& folder() const { return log_.folder(); }
  int64_t steps() const { return engine_.engine().steps_done(); }

 private:
  void pass_done();
  void expect();
  void step_opens();
  TuneOptions with_parts(TuneOptions options, Job& job);

  Communicator& comm_;
  Meeting& meeting_;
  const SessionOptions options_;
  RunLog log_;
  TunedEngine engine_;
  bool synchronizes_ = true;
  int64_t passes_ = 1, passes_done_ = 0;
  int64_t samples_ = 0, batch_ = 0;
  std::vector<double> rates_;  // of the step that is about to begin
  bool takes_part_ = false;    // the step that opens now is that of others
  bool is_scaled_ = false;     // the step that ends now has scaled gradients
};

}  // namespace tutti::python
