#include "record/sweep_plan.h"

#include "base/files.h"
#include "record/schemas.h"

namespace tutti::sweep {

using nlohmann::json;

const Schema<EmulatedNetwork>& schema(const EmulatedNetwork*) {
  static const auto result = Schema<EmulatedNetwork>()
                                 .add("gbps", &EmulatedNetwork::gbps)
                                 .add("startup_us", &EmulatedNetwork::startup_us)
                                 .add("note", &EmulatedNetwork::note);
  return result;
}

const Schema<SweepCell>& schema(const SweepCell*) {
  static const char* const kName = "name";
  static const auto result = Schema<SweepCell>()
                                 .add("id", &SweepCell::id)
                                 .add("label", &SweepCell::label)
                                 .add("settings", &SweepCell::settings)
                                 .add("config", &SweepCell::config)
                                 .add("options", &SweepCell::options)
                                 .add("repeat", &SweepCell::repeat)
                                 .add("baseline", &SweepCell::is_baseline)
                                 .add("ranks", &SweepCell::ranks)
                                 .add("nodes", &SweepCell::nodes)
                                 .add("servers", &SweepCell::servers)
                                 .add("trace", &SweepCell::trace)
                                 .add(
                                     "network",
                                     [](JsonText& text, const std::string& key, SweepCell& to) {
                                       json network = json::object();
                                       read_value(text, key, network);
                                       to.network = network.value(kName, "");
                                       to.emulated = read_text<EmulatedNetwork>(network.dump());
                                     },
                                     [](json& record, const std::string& key, const SweepCell& from) {
                                       if (from.network.empty()) return;
                                       record[key] = write_value(from.emulated);
                                       record[key][kName] = from.network;
                                     });
  return result;
}

const Schema<SweepPlan>& schema(const SweepPlan*) {
  static const auto result = Schema<SweepPlan>()
                                 .add("name", &SweepPlan::name)
                                 .add("title", &SweepPlan::title)
                                 .add("quick", &SweepPlan::is_quick)
                                 .add("command", &SweepPlan::command)
                                 .add("file", &SweepPlan::file)
                                 .add("axes", &SweepPlan::axes)
                                 .add("axis_order", &SweepPlan::axis_order)
                                 .add("compare", &SweepPlan::compare)
                                 .add("baseline", &SweepPlan::baseline)
                                 .add("repeats", &SweepPlan::repeats)
                                 .add("warmup_steps", &SweepPlan::warmup_steps)
                                 .add("timeout_minutes", &SweepPlan::timeout_minutes)
                                 .add("keep_weights", &SweepPlan::keep_weights)
                                 .add("environment", &SweepPlan::environment)
                                 .add("cells", &SweepPlan::cells);
  return result;
}

void to_json(json& to, const SweepCell& cell) { to = schema(&cell).write(cell); }
void from_json(const json& from, SweepCell& cell) { cell = read_text<SweepCell>(from.dump()); }

SweepPlan read_sweep_plan(const std::filesystem::path& file) {
  try {
    return read_text<SweepPlan>(read_file(file));
  } catch (const std::exception& problem) {
    throw Error("{} is not a sweep's description: {}", file.string(), problem.what());
  }
}

void write_sweep_plan(const std::filesystem::path& file, const SweepPlan& plan) {
  write_file_atomically(file, schema(&plan).write(plan).dump(1) + "\n");
}

}  // namespace tutti::sweep
