// A line of cells.jsonl. What is read is written and read again, with the same result; and what is no JSON is refused.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "fuzz/fuzz.h"
#include "report/report.h"

namespace tutti::fuzz {

static std::string fuzz_cell(std::string_view input) {
  return outcome([&] {
    CellSet set;
    set.cells.push_back(parse_cell(input));
    const auto written = [](const Cell& cell) {
      return nlohmann::json(cell).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    };
    const std::string once = written(set.cells[0]);
    if (written(parse_cell(once)) != once) std::abort();
    terminal_text(build_report(set), 10);
  });
}

static std::vector<std::string> cell_seeds() {
  return {
      R"({"record":"cell","cell":"a","repeat":2,"status":"done","source":"simulated","baseline":true,"load":1.5})",
      R"({"config":{"model":"m","batch":64,"ranks":"2","width":8,"other":"x"},"environment":{"cores":2}})",
      R"({"samples_per_step":128,"step_s":[0.1,2e-3,1,1,1,1,1,1,1,1,1,1],"warmup_steps":1,"steps":3,"run_s":9})",
      R"({"throughput":{"mean":5,"deviation":0.5},"nodes":[{"name":"n","ranks":2,"gpu":"x"}],"node_list":"n[1-2]"})",
      R"({"epochs":[{"epoch":1,"train_s":3,"test_s":1,"test_accuracy":0.5,"loss":1,"data_per_s":[{"step":2,"value":7}],"ranks":[{"rank":0,"node":"n","train_s":3,"comm_s":1}]}]})",
      R"({"breakdown":{"compute_s":1,"exposed":{"bandwidth":0.25},"data_wait_s":2,"optimizer_s":3}})",
      R"({"stated":{"speedup":1.5,"epochs":2,"average":true},"error":"\u00e9\ud83d\ude00\n\"\\"})",
      "null",
      "1e308",
      "-0",
      "[[[[",
      "\\ud800"};
}

static const Target kCell("cell", fuzz_cell, cell_seeds);

}  // namespace tutti::fuzz
