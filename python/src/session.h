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

namespace tutti::python {

/// Whether a backward pass failed because of another rank: PyTorch makes a plain RuntimeError of that.
bool has_peer_failed();

/// How a model of Python's is trained.
struct SessionOptions {
  TuneOptions tune;
  RunInfo run;
  bool share_buffers = true;  // of rank 0 with all, in every step in which the communicator is free
};

/// An engine under a model of Python's: counts passes, steps and samples, and records the run. Backward is always
/// Python's. Where the engine does not update, a step ends with its last backward pass, and the next one begins there.
/// Otherwise the optimizer's step() ends it.
class Session {
 public:
  Session(Job& job, const TrainedTensors& tensors, const SessionOptions& options);

  /// Before a forward pass that backward will follow. `samples` of it are in this step.
  void begin_forward(int64_t samples);
  /// Whether the passes from now on end their step, or are added up for a later one.
  void synchronize(bool on);
  /// A step ends with so many passes.
  void set_passes(int64_t passes);
  /// The end of a step: by the optimizer, or without any pass on a rank that has nothing to bring.
  void finish_step(double learning_rate);

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

  Communicator& comm_;
  const SessionOptions options_;
  RunLog log_;
  TunedEngine engine_;
  bool synchronizes_ = true;
  int64_t passes_ = 1, passes_done_ = 0;
  int64_t samples_ = 0, batch_ = 0;
};

}  // namespace tutti::python
