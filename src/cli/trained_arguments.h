#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "options/train_options.h"

namespace tutti {

struct TrainedModel;

/// What commands that use trained weights share: RUN, and the options of `tutti train` that say what it was made for.
class TrainedArguments {
 public:
  explicit TrainedArguments(CLI::App& command);

  const TrainOptions& given() const { return options_; }
  /// What was asked for, with everything that its run tells. On --device cpu where `on_cpu`.
  TrainedModel open(bool on_cpu = false) const;

 private:
  const CLI::App& command_;
  std::string run_;
  TrainOptions options_;
};

}  // namespace tutti
