#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tutti/records.h"

namespace tutti {

constexpr const char* kTensorboardFolder = "tensorboard";  // of a run, in its folder

/// Writes what has a course as TensorBoard's scalars, and the options as its text, into a new event file in this
/// folder. What earlier files there have of steps after `steps_done` is taken back: a run that went on from a
/// checkpoint has gone another way since. Throws Error when the file cannot be made. When it cannot be written later,
/// it ends there, and `on_problem` is told once: nobody trains for the sake of a figure.
std::unique_ptr<RecordSink> tensorboard_events(const std::filesystem::path& folder, int64_t steps_done,
                                               std::function<void(const std::string& problem)> on_problem);

/// CRC-32C (Castagnoli), as event files have it.
uint32_t crc32c(std::string_view bytes);

}  // namespace tutti
