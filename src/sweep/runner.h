#pragma once

#include "sweep/cell_command.h"
#include "sweep/child.h"
#include "sweep/progress.h"
#include "sweep/sweep_folder.h"

namespace tutti::sweep {

/// How a sweep, or this part of it, ended.
struct SweepResult {
  CellCounts counts;
  int stop_signal = 0;  // the one that stopped it; 0: everything was tried
};

/// Runs what is not done, failed cells too, in order. A cell counts as done only with its record on the disk; one that
/// is interrupted stays pending. Throws Error when the disk is full, or the folder cannot be written to for another
/// reason; what has been recorded stays valid. Call it from the main thread.
SweepResult run_sweep(SweepFolder& folder, const Place& place);

}  // namespace tutti::sweep
