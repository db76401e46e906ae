#pragma once

#include "options/option_table.h"
#include "options/train_options.h"
#include "tutti/tuned_engine.h"

namespace tutti {

/// What options may be that name something.
KnownNames known_names();

/// Throws UsageError for values that cannot work, before anything is started.
void check_options(const TrainOptions& options);

/// The part that is the engine's.
TuneOptions engine_options(const TrainOptions& options);

}  // namespace tutti
