#include "record/sweep_plan.h"

#include "base/files.h"
#include "base/names.h"
#include "record/schemas.h"

namespace tutti::sweep {

using nlohmann::json;

const Schema<EmulatedNetwork>& schema(const EmulatedNetwork*) {
  using R = EmulatedNetwork;
  static const Schema<R> result = {{"gbps", &R::gbps}, {"startup_us", &R::startup_us}, {"note", &R::note}};
  return result;
}

const Schema<SweepCell>& schema(const SweepCell*) {
  static const char* const kName = "name";
  using R = SweepCell;
  static const Schema<R> result = {{"id", &R::id},
                                   {"label", &R::label},
                                   {"settings", &R::settings},
                                   {"config", &R::config},
                                   {"options", &R::options},
                                   {"repeat", &R::repeat},
                                   {"baseline", &R::is_baseline},
                                   {"ranks", &R::ranks},
                                   {"nodes", &R::nodes},
                                   {"servers", &R::servers},
                                   {"trace", &R::trace},
                                   {"network",
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
                                    }}};
  return result;
}

const Schema<SweepPlan>& schema(const SweepPlan*) {
  using R = SweepPlan;
  static const Schema<R> result = {{"name", &R::name},
                                   {"title", &R::title},
                                   {"quick", &R::is_quick},
                                   {"command", &R::command},
                                   {"file", &R::file},
                                   {"axes", &R::axes},
                                   {"axis_order", &R::axis_order},
                                   {"compare", &R::compare},
                                   {"baseline", &R::baseline},
                                   {"repeats", &R::repeats},
                                   {"warmup_steps", &R::warmup_steps},
                                   {"timeout_minutes", &R::timeout_minutes},
                                   {"keep_weights", &R::keep_weights},
                                   {"environment", &R::environment},
                                   {"cells", &R::cells}};
  return result;
}

void to_json(json& to, const SweepCell& cell) { to = schema(&cell).write(cell); }
void from_json(const json& from, SweepCell& cell) { cell = read_text<SweepCell>(from.dump()); }

SweepPlan read_sweep_plan(const std::filesystem::path& file) {
  try {
    SweepPlan plan = read_text<SweepPlan>(read_file(file));
    for (const SweepCell& cell : plan.cells)
      if (const std::string problem = problem_of_folder_name(cell.id); !problem.empty())
        throw Error("the id '{}' of a cell cannot name its folder: {}", cell.id, problem);
    return plan;
  } catch (const std::exception& problem) {
    throw Error("{} is not a sweep's description: {}", file.string(), problem.what());
  }
}

void write_sweep_plan(const std::filesystem::path& file, const SweepPlan& plan) {
  write_file_atomically(file, schema(&plan).write(plan).dump(1) + "\n", Readers::owner);
}

}  // namespace tutti::sweep
