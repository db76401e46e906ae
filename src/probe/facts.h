#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tutti {

/// What a program that knows libtorch adds to the facts, in words; "" where there is nothing to say.
struct TorchFacts {
  std::string libtorch;                 // its version
  std::vector<std::string> gpus;        // their names
  std::string model;                    // its name, where one was asked for
  std::vector<std::string> parameters;  // of the model: "conv1.weight 64×3×7×7"
};

/// What one rank says of itself and its machine.
struct RankFacts {
  std::string host;
  // What must be the same everywhere.
  std::string binary;  // SHA-256 of the executable
  std::string commit, build_type;
  TorchFacts torch;
  std::string torch_library;  // build id of the libtorch that is loaded, which a version does not tell
  std::string mpi;            // "" where the job does not use it
  // What had better be the same.
  std::string kernel, cpu;
  int cores = 0;  // that this rank may use
  // What changes.
  double load = 0;          // processes that want a core, over the last minute
  double steal = 0;         // percent of the time that went to other virtual machines
  double busy = 0;          // percent of the time that the machine computed while all ranks slept
  int64_t free_disk = 0;    // bytes in the folder of the runs; -1: it cannot be written to
  int64_t free_shm = 0;     // bytes in /dev/shm
  std::string runs_folder;  // what free_disk speaks of
};

void to_json(nlohmann::json& json, const RankFacts& facts);
void from_json(const nlohmann::json& json, RankFacts& facts);

/// The facts that say whether two ranks run the same program. Reads the executable once: some 10 ms.
RankFacts own_build(const TorchFacts& torch);

/// All facts; sleeps for a moment to see how busy the machine is without the ranks, so all ranks call it together.
RankFacts own_facts(const TorchFacts& torch, const std::filesystem::path& runs_folder);

/// The GNU build id of a loaded library whose file name begins so, in hexadecimal; "" when there is none.
std::string loaded_build_id(const std::string& name);

/// Of names and shapes, in hexadecimal.
std::string hash_of(const std::vector<std::string>& parameters);

}  // namespace tutti
