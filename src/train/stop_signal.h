#pragma once

#include <atomic>
#include <thread>

namespace tutti {

/// What a run exits with that saved a checkpoint and stopped because a signal asked for it: start it again.
inline constexpr int kExitSaved = 85;

/// From now on SIGTERM and SIGUSR1 (what Slurm sends before it takes a job's machines away) end nothing: they are
/// noted, and do not interrupt this thread or those it starts later. Call it early, before threads that compute.
void note_stop_signals();
/// The signal that has come, or 0.
int stop_signal();

/// While it lives, such a signal ends this process at once, with kExitSaved: for a run that is still loading, and has
/// nothing to save. After note_stop_signals().
class EndsAtStopSignal {
 public:
  /// `speaks`: says so, for all ranks.
  explicit EndsAtStopSignal(bool speaks);
  ~EndsAtStopSignal();
  EndsAtStopSignal(const EndsAtStopSignal&) = delete;
  EndsAtStopSignal& operator=(const EndsAtStopSignal&) = delete;

 private:
  void watch(bool speaks) const;

  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

}  // namespace tutti
