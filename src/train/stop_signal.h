#pragma once

namespace tutti {

/// What a run exits with that saved a checkpoint and stopped because a signal asked for it: start it again.
inline constexpr int kExitSaved = 85;

/// From now on SIGTERM and SIGUSR1 (what Slurm sends before it takes a job's machines away) end nothing: they are
/// noted, and do not interrupt this thread or those it starts later. Call it early, before threads that compute.
void note_stop_signals();
/// The signal that has come, or 0.
int stop_signal();

}  // namespace tutti
