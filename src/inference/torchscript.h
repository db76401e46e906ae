#pragma once

#include <filesystem>

#include "inference/trained_model.h"

namespace tutti {

/// Writes a file that torch.jit.load() reads, in Python or C++, without Tutti: forward(x) takes a batch of any size, as
/// the data set makes it, and returns the model's first output, logits. Its state_dict() has the model's own names.
/// What was written is loaded again and compared with the model before the file appears. For a model on the CPU. Throws
/// UsageError for models of masked text, Error where the two differ, as with a network that looks at values.
void save_torchscript(const std::filesystem::path& file, const TrainedModel& trained);

}  // namespace tutti
