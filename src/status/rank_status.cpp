#include "status/rank_status.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>

namespace tutti {

using nlohmann::json;

const char* word(RunPhase phase) {
  switch (phase) {
    case RunPhase::starting:
      return "starting";
    case RunPhase::set_up:
      return "set-up";
    case RunPhase::profile:
      return "profile";
    case RunPhase::training:
      return "training";
    case RunPhase::evaluation:
      return "evaluation";
    case RunPhase::checkpoint:
      return "checkpoint";
    case RunPhase::finishing:
      return "finishing";
    case RunPhase::serving:
      return "serving";
  }
  return "?";
}

void to_json(json& to, const RankStatus& from) {
  to = {{"run", from.run},
        {"rank", from.rank},
        {"ranks", from.ranks},
        {"is_server", from.is_server},
        {"host", from.host},
        {"pid", from.pid},
        {"process_start", from.process_start},
        {"transport", from.transport},
        {"started", from.started},
        {"updated", from.updated},
        {"phase", from.phase},
        {"phase_since", from.phase_since},
        {"step", from.step},
        {"steps", from.steps},
        {"data_per_s", from.data_per_s},
        {"cpu_s", from.cpu_s}};
  if (from.checkpoint_step >= 0) {
    to["checkpoint_step"] = from.checkpoint_step;
    to["checkpoint_time"] = from.checkpoint_time;
  }
  if (!from.awaited.call.empty())
    to["waits"] = {{"in", from.awaited.call},
                   {"for_ranks", from.awaited.ranks},
                   {"seconds", from.awaited.seconds},
                   {"transfer", from.transfer}};
  if (from.exit_code) {
    to["exit_code"] = *from.exit_code;
    to["error"] = from.error;
  }
}

void from_json(const json& from, RankStatus& to) {
  to.run = from.at("run");
  to.rank = from.at("rank");
  to.ranks = from.at("ranks");
  to.is_server = from.at("is_server");
  to.host = from.at("host");
  to.pid = from.at("pid");
  to.process_start = from.at("process_start");
  to.transport = from.at("transport");
  to.started = from.at("started");
  to.updated = from.at("updated");
  to.phase = from.at("phase");
  to.phase_since = from.at("phase_since");
  to.step = from.at("step");
  to.steps = from.at("steps");
  to.data_per_s = from.at("data_per_s");
  to.cpu_s = from.value("cpu_s", 0.0);
  to.checkpoint_step = from.value("checkpoint_step", int64_t{-1});
  to.checkpoint_time = from.value("checkpoint_time", 0.0);
  if (from.contains("waits")) {
    const json& waits = from.at("waits");
    to.awaited.call = waits.at("in");
    to.awaited.ranks = waits.at("for_ranks").get<std::vector<int>>();
    to.awaited.seconds = waits.at("seconds");
    to.transfer = waits.at("transfer");
  }
  if (from.contains("exit_code")) {
    to.exit_code = from.at("exit_code").get<int>();
    to.error = from.at("error");
  }
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string readable_time(double seconds) {
  if (seconds < 100) return fmt::format("{:.1f} s", seconds);
  if (seconds < 100 * 60) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string describe(const RankStatus& status) {
  std::string text = status.phase;
  if (status.steps > 0) text += fmt::format(", step {} of {}", status.step, status.steps);
  if (status.data_per_s > 0) text += fmt::format(", {:.1f} data/s", status.data_per_s);
  const Awaited& waits = status.awaited;
  if (waits.call.empty()) return text;
  const std::string whom = waits.ranks.empty() ? ""
                                               : fmt::format(" for rank{} {}", waits.ranks.size() == 1 ? "" : "s",
                                                             fmt::join(waits.ranks, ", "));
  text += fmt::format("; waits {}{} in {}", readable_time(waits.seconds), whom, waits.call);
  if (!status.transfer.empty()) text += fmt::format(" ({})", status.transfer);
  return text;
}

std::string name_of(const RankStatus& status) {
  return status.is_server ? fmt::format("parameter server {}", status.rank - status.ranks)
                          : fmt::format("rank {} of {}", status.rank, status.ranks);
}

}  // namespace tutti
