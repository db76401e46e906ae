// A sweep's folder goes in: its description and its cells. `tutti bench --resume` and `tutti report` read it; no cell
// may lie outside of it.
#include <stdexcept>

#include "fuzz/command.h"
#include "record/sweep_plan.h"

namespace tutti::fuzz {

static std::string fuzz_sweep_folder(std::string_view input) {
  write_input(input, {"sweep/sweep.json", "sweep/cells.jsonl"});
  const std::filesystem::path sweep = command_folder() / "sweep";
  const std::string resumed = command_outcome({"bench", "--resume", sweep.string(), "--dry-run"});
  if (resumed == "ok") {
    for (const sweep::SweepCell& cell : sweep::read_sweep_plan(sweep / "sweep.json").cells) {
      const std::filesystem::path place = (sweep / "cells" / cell.id).lexically_normal();
      if (place.parent_path() != sweep / "cells" || place.filename().empty())
        throw std::logic_error("a cell lies outside of its sweep");
    }
  }
  return resumed + command_outcome({"report", sweep.string(), "--md"}) +
         command_outcome({"report", sweep.string(), "--json"});
}

static std::vector<std::string> sweep_folder_seeds() {
  const std::string plan =
      R"({"name":"mine","title":"t","quick":false,"command":"tutti bench x","file":"axes: {}","axes":{"ranks":["1","2"]},)"
      R"("axis_order":["ranks"],"compare":"ranks","baseline":{"ranks":1},"repeats":2,"warmup_steps":1,)"
      R"("timeout_minutes":0.5,"keep_weights":false,"cells":[{"id":"ranks2.1","label":"ranks2","settings":{"ranks":"2"},)"
      R"("config":{"ranks":2},"options":{"model":"mnist-cnn"},"repeat":1,"baseline":false,"ranks":2,"nodes":1,)"
      R"("servers":0,"trace":true,"network":{"name":"slow","gbps":1.5,"startup_us":20,"note":"n"}},)"
      R"({"id":"ranks4.1","ranks":4,"nodes":2}]})";
  const std::string cells = read_file(std::string(TUTTI_OLD_RECORDS) + "/cells_of_0.1.jsonl");
  return {plan,
          plan + std::string(kNextFile) + cells,
          plan + std::string(kNextFile) +
              R"({"record":"cell","cell":"ranks2.1","repeat":1,"status":"failed","error":"e"})" + "\n",
          "\"id\":\"../../victim\"",
          "\"options\":{\"hosts\":\"-o\"}",
          "\"nodes\":-1",
          "99999999999"};
}

static const Target kSweepFolder("sweep_folder", fuzz_sweep_folder, sweep_folder_seeds);

}  // namespace tutti::fuzz
