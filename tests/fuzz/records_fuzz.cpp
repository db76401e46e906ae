// Records and a trace of a run go in; out comes what every command makes of them.
#include "fuzz/command.h"
#include "sim/written_run.h"

namespace tutti::fuzz {

static std::string fuzz_records(std::string_view input) {
  write_input(input, {"runs/one/records.jsonl", "runs/one/trace.json"});
  const std::string runs = (command_folder() / "runs").string(), run = runs + "/one";
  return command_outcome({"report", run, "--json"}) + command_outcome({"report", run, "--md"}) +
         command_outcome({"explain", run}) + command_outcome({"plan", run}) + command_outcome({"calibrate", runs}) +
         command_outcome({"report", "--compare", run, run});
}

static std::vector<std::string> records_seeds() {
  const test::TempFolder folder;
  write_run(folder.path(), "auto", 0.1);
  const std::string written = read_file(folder.path() / "records.jsonl");
  const std::string trace =
      R"({"traceEvents":[{"ph":"X","pid":0,"tid":1,"cat":"step","name":"step 1","ts":1,"dur":2,"args":{"step":1}},)"
      R"({"ph":"M","name":"thread_name","pid":0,"tid":1,"args":{"name":"c"}}],"otherData":{"strategy":"bsp"}})";
  return {read_file(std::string(TUTTI_OLD_RECORDS) + "/run_of_0.1.jsonl"),
          written,
          written + std::string(kNextFile) + trace,
          "\"ranks\":64",
          "\"strategy\":\"x\\nEND\\n!touch pwned\\n#\"",
          "1e308",
          "-1",
          "null",
          "[[[[[[[["};
}

static const Target kRecords("records", fuzz_records, records_seeds);

}  // namespace tutti::fuzz
