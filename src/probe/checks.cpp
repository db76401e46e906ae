#include "probe/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/files.h"

namespace tutti {
namespace {

// Wall clocks further apart make logs and records of several nodes hard to lay side by side.
constexpr double kClocksApart = 0.1;              // seconds
constexpr double kMuchSteal = 3, kMuchBusy = 25;  // percent
constexpr int64_t kLittleDisk = int64_t{1} << 30, kLittleShm = int64_t{64} << 20;
constexpr std::size_t kShownDigits = 12;

std::vector<std::string> hosts_of(const std::vector<RankFacts>& ranks) {
  std::vector<std::string> hosts;
  hosts.reserve(ranks.size());
  for (const RankFacts& facts : ranks) hosts.push_back(facts.host);
  return hosts;
}

std::string shown(const std::string& text) { return text.empty() ? "none" : text; }

struct Comparison {
  std::string about;  // "libtorch"
  Severity if_differs = Severity::problem;
  std::string advice;
  std::function<std::string(const RankFacts&)> value;
  std::function<std::string(const RankFacts&)> words = {};  // how to show it; as it is
};

/// One finding: the value that all have, or each value and who has it.
Finding compare(const std::vector<RankFacts>& ranks, const Comparison& what) {
  std::vector<std::pair<std::string, std::vector<int>>> values;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::string value = what.value(ranks[rank]);
    auto known = std::find_if(values.begin(), values.end(), [&](const auto& entry) { return entry.first == value; });
    if (known == values.end()) known = values.insert(values.end(), {value, {}});
    known->second.push_back(static_cast<int>(rank));
  }
  const auto words = [&](std::size_t i) {
    return shown((what.words ? what.words : what.value)(ranks[static_cast<std::size_t>(values[i].second[0])]));
  };
  if (values.size() == 1) return {Severity::ok, what.about, fmt::format("{}: {}", what.about, words(0))};
  std::string list;
  for (std::size_t i = 0; i < values.size(); ++i)
    list += fmt::format("{}{} on {}", i == 0 ? "" : ", ", words(i), places(values[i].second, ranks));
  return {what.if_differs, what.about, fmt::format("{} differs: {}. {}", what.about, list, what.advice)};
}

/// A finding that names the nodes for which `value` is bad, or says `fine`.
Finding look_for(const std::vector<RankFacts>& ranks, const std::string& about, Severity severity,
                 const std::function<std::string(const RankFacts&)>& complaint, const std::string& fine) {
  std::string list;
  for (const Node& node : group_by_host(hosts_of(ranks))) {
    const std::string text = complaint(ranks[static_cast<std::size_t>(node.ranks[0])]);
    if (!text.empty()) list += fmt::format("{}{}: {}", list.empty() ? "" : "; ", node.host, text);
  }
  if (list.empty()) return {Severity::ok, about, fmt::format("{}: {}", about, fine)};
  return {severity, about, fmt::format("{}: {}", about, list)};
}

template <typename Get>
auto least(const std::vector<RankFacts>& ranks, Get get) {
  auto value = get(ranks.at(0));
  for (const RankFacts& facts : ranks) value = std::min(value, get(facts));
  return value;
}

std::string bytes(int64_t number) { return readable_bytes(static_cast<uint64_t>(std::max<int64_t>(0, number))); }

}  // namespace

const char* name_of(Severity severity) {
  return severity == Severity::ok ? "ok" : severity == Severity::warning ? "warning" : "problem";
}

std::string line_of(const Finding& finding) { return fmt::format("{}: {}", name_of(finding.severity), finding.text); }

std::string places(const std::vector<int>& ranks, const std::vector<RankFacts>& facts) {
  std::vector<std::string> hosts;
  hosts.reserve(ranks.size());
  for (const int rank : ranks) hosts.push_back(facts[static_cast<std::size_t>(rank)].host);
  std::string text;
  for (const Node& node : group_by_host(hosts)) {
    std::string numbers;
    for (const int index : node.ranks)
      numbers += fmt::format("{}{}", numbers.empty() ? "" : ", ", ranks[static_cast<std::size_t>(index)]);
    text += fmt::format("{}{} (rank{} {})", text.empty() ? "" : ", ", node.host, node.ranks.size() == 1 ? "" : "s",
                        numbers);
  }
  return text;
}

std::vector<Finding> compare_builds(const std::vector<RankFacts>& ranks) {
  const auto binary = [](const RankFacts& facts) {
    return fmt::format("SHA-256 {}… of commit {}, {}", facts.binary.substr(0, kShownDigits), facts.commit,
                       facts.build_type);
  };
  const auto libtorch = [](const RankFacts& facts) {
    if (facts.torch_library.empty()) return facts.torch.libtorch;
    return fmt::format("{} (build id {})", facts.torch.libtorch, facts.torch_library.substr(0, kShownDigits));
  };
  return {
      compare(ranks, {"binary", Severity::problem, "Copy one build of Tutti to all nodes.",
                      [](const RankFacts& facts) { return facts.binary; }, binary}),
      compare(ranks, {"libtorch", Severity::problem, "Install the same on all nodes.",
                      [](const RankFacts& facts) { return facts.torch.libtorch + facts.torch_library; }, libtorch})};
}

std::vector<Finding> compare_models(const std::vector<RankFacts>& ranks) {
  const auto& first = ranks.at(0).torch;
  const bool has_none =
      std::all_of(ranks.begin(), ranks.end(), [](const RankFacts& f) { return f.torch.model.empty(); });
  if (has_none) return {};
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    const auto& other = ranks[rank].torch;
    if (other.model == first.model && other.parameters == first.parameters) continue;
    std::size_t i = 0;
    while (i < first.parameters.size() && i < other.parameters.size() && first.parameters[i] == other.parameters[i])
      ++i;
    const auto at = [i](const TorchFacts& torch) {
      return i < torch.parameters.size() ? fmt::format("'{}'", torch.parameters[i]) : std::string("nothing");
    };
    return {{Severity::problem, "model",
             fmt::format("model differs: parameter {} is {} in {} on {}, but {} in {} on {}.", i, at(first),
                         shown(first.model), places({0}, ranks), at(other), shown(other.model),
                         places({static_cast<int>(rank)}, ranks))}};
  }
  return {{Severity::ok, "model",
           fmt::format("model: {}, {} parameter tensors, hash {}", first.model, first.parameters.size(),
                       hash_of(first.parameters).substr(0, kShownDigits))}};
}

std::vector<Finding> compare_machines(const std::vector<RankFacts>& ranks) {
  std::vector<Finding> findings;
  const bool uses_mpi = std::any_of(ranks.begin(), ranks.end(), [](const RankFacts& f) { return !f.mpi.empty(); });
  if (uses_mpi)
    findings.push_back(compare(ranks, {"MPI", Severity::problem, "Install the same on all nodes.",
                                       [](const RankFacts& facts) { return facts.mpi; }}));
  findings.push_back(compare(ranks, {"kernel", Severity::warning, "This is rarely a reason to worry.",
                                     [](const RankFacts& facts) { return facts.kernel; }}));
  findings.push_back(compare(ranks, {"CPU", Severity::warning, "The slowest rank sets the pace of all.",
                                     [](const RankFacts& facts) { return facts.cpu; }}));
  findings.push_back(
      compare(ranks, {"GPUs", Severity::warning, "The slowest rank sets the pace of all.", [](const RankFacts& facts) {
                        std::string names;
                        for (const std::string& name : facts.torch.gpus) names += (names.empty() ? "" : " + ") + name;
                        return names;
                      }}));
  std::string crowded;
  for (const Node& node : group_by_host(hosts_of(ranks))) {
    const int cores = ranks[static_cast<std::size_t>(node.ranks[0])].cores;
    if (static_cast<int>(node.ranks.size()) > cores)
      crowded += fmt::format("{}{} has {} ranks on {} core{}", crowded.empty() ? "" : "; ", node.host,
                             node.ranks.size(), cores, cores == 1 ? "" : "s");
  }
  if (crowded.empty())
    findings.push_back({Severity::ok, "cores", "cores: at least one for every rank"});
  else
    findings.push_back({Severity::warning, "cores", fmt::format("cores: {}", crowded)});
  findings.push_back(look_for(
      ranks, "time", Severity::warning,
      [](const RankFacts& facts) -> std::string {
        if (facts.steal > kMuchSteal)
          return fmt::format("{:.0f} % of it goes to other virtual machines (steal)", facts.steal);
        if (facts.busy > kMuchBusy)
          return fmt::format("others use {:.0f} % of the cores (load {:.1f})", facts.busy, facts.load);
        return "";
      },
      "the machines are idle"));
  findings.push_back(look_for(
      ranks, "disk", Severity::problem,
      [](const RankFacts& facts) -> std::string {
        return facts.free_disk < 0 ? fmt::format("{} cannot be written to", facts.runs_folder) : "";
      },
      fmt::format("{} free for runs, or more", bytes(least(ranks, [](const RankFacts& f) { return f.free_disk; })))));
  if (findings.back().severity == Severity::ok)
    findings.back() = look_for(
        ranks, "disk", Severity::warning,
        [](const RankFacts& facts) -> std::string {
          return facts.free_disk < kLittleDisk
                     ? fmt::format("only {} free in {}", bytes(facts.free_disk), facts.runs_folder)
                     : "";
        },
        findings.back().text.substr(std::string("disk: ").size()));
  findings.push_back(look_for(
      ranks, "shared memory", Severity::warning,
      [](const RankFacts& facts) -> std::string {
        return facts.free_shm < kLittleShm ? fmt::format("only {} free in /dev/shm", bytes(facts.free_shm)) : "";
      },
      fmt::format("{} free in /dev/shm, or more", bytes(least(ranks, [](const RankFacts& f) { return f.free_shm; })))));
  return findings;
}

std::vector<Finding> judge_clocks(const std::vector<ClockOffset>& clocks, const std::vector<RankFacts>& ranks) {
  std::size_t first = 0, last = 0;
  double uncertainty_s = 0;
  for (std::size_t rank = 0; rank < clocks.size(); ++rank) {
    if (clocks[rank].wall_s < clocks[first].wall_s) first = rank;
    if (clocks[rank].wall_s > clocks[last].wall_s) last = rank;
    uncertainty_s = std::max(uncertainty_s, clocks[rank].uncertainty_s);
  }
  if (clocks.size() < 2) return {};
  const double apart_s = clocks[last].wall_s - clocks[first].wall_s;
  const std::string text = fmt::format("{:.3f} ms apart at most (± {:.3f} ms)", apart_s * 1e3, uncertainty_s * 1e3);
  // Two estimates that are off by all they can be may look this far apart.
  if (apart_s <= kClocksApart + 2 * uncertainty_s) return {{Severity::ok, "clocks", "clocks: " + text}};
  return {{Severity::warning, "clocks",
           fmt::format("clocks: {}: {} is ahead of {}. Set them by NTP, or times in logs of several nodes mislead.",
                       text, places({static_cast<int>(last)}, ranks), places({static_cast<int>(first)}, ranks))}};
}

std::vector<Finding> judge_links(const std::vector<PairFigures>& pairs, const std::vector<Node>& nodes,
                                 double expected_bytes_per_s) {
  std::vector<Finding> findings;
  for (const bool between_nodes : {false, true}) {
    const double bandwidth = median_bandwidth(pairs, nodes, between_nodes);
    if (bandwidth == 0) continue;
    findings.push_back(
        {Severity::ok, "links",
         fmt::format("{}: {:.1f} µs, {:.3g} Gbit/s (medians)", between_nodes ? "between nodes" : "inside a node",
                     median_latency(pairs, nodes, between_nodes) * 1e6, bandwidth * 8e-9)});
  }
  for (const SlowLink& slow : find_slow_links(pairs, nodes, expected_bytes_per_s))
    findings.push_back({Severity::warning, "links", slow.text});
  return findings;
}

bool has_problem(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.severity == Severity::problem; });
}

}  // namespace tutti
