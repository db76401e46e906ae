#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "status/status_files.h"

namespace tutti {

/// A job for people: a line for the run, one for each rank, and whom they wait for.
std::string describe(const SeenJob& job);
nlohmann::json job_json(const SeenJob& job);

/// The one that trains a run, by the run's name or folder: the live one, or else the last that ended badly. Null: none.
const SeenJob* find_job(const std::vector<SeenJob>& jobs, const std::string& run,
                        const std::filesystem::path& runs_folder);

/// What is known of a run, by its name or folder; "": the newest live one, or else the last that ended badly. A run
/// that is over is described from its records. Throws Error when there is none.
std::string run_status(const std::string& run, const std::filesystem::path& runs_folder, bool as_json);

}  // namespace tutti
