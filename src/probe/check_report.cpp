#include "probe/check_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/files.h"
#include "comm/exchange.h"
#include "comm/nccl/nccl.h"

namespace tutti {
namespace {

std::vector<RankFacts> gather_facts(Communicator& comm, const RankFacts& mine) {
  std::vector<RankFacts> all;
  for (const std::string& text : gather_texts(comm, nlohmann::json(mine).dump()))
    all.push_back(nlohmann::json::parse(text));
  return all;
}

void append(std::vector<Finding>& all, std::vector<Finding> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

/// "0-3,8": ranks of a node.
std::string ranges(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", ranks[i]);
    if (last > i) text += fmt::format("-{}", ranks[last]);
    i = last + 1;
  }
  return text;
}

/// Whether the ranks' GPUs can add something up.
Finding join_gpus(Communicator& comm, const CheckOptions& options) {
  const auto start = Clock::now();
  std::string failure;
  try {
    const auto gpus = make_nccl_communicator({comm.rank(), comm.size(), options.gpu,
                                              [&](const std::string& text) { return broadcast_text(comm, text); },
                                              options.gpu_timeout});
    std::vector<float> sum(1 << 18, 1);
    gpus->all_reduce_sum({sum.data(), sum.size(), DataType::f32})->wait();
    const auto wrong =
        std::find_if(sum.begin(), sum.end(), [&](float s) { return s != static_cast<float>(comm.size()); });
    if (wrong != sum.end()) failure = fmt::format("1 from each of {} ranks adds up to {}", comm.size(), *wrong);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  const std::vector<std::string> failures = gather_texts(comm, failure);
  for (std::size_t rank = 0; rank < failures.size(); ++rank)
    if (!failures[rank].empty())
      return {Severity::problem, "nccl",
              fmt::format("the GPUs do not work together: rank {}: {}", rank, failures[rank])};
  return {
      Severity::ok, "nccl",
      fmt::format("the ranks' GPUs add up 1 MB over NCCL {}, after {:.1f} s", nccl_version(), seconds_since(start))};
}

/// The fastest message between this node and others, or inside it where it is alone.
std::string best_link(const CheckReport& report, std::size_t node) {
  const auto node_of = node_of_ranks(report.nodes);
  const bool is_alone = report.nodes.size() == 1;
  double best = 0;
  for (const PairFigures& pair : report.pairs) {
    const std::size_t a = node_of[static_cast<std::size_t>(pair.from)], b = node_of[static_cast<std::size_t>(pair.to)];
    if ((a == node || b == node) && (a != b || is_alone)) best = std::max(best, pair.bytes_per_s);
  }
  return best == 0 ? "-" : fmt::format("{:.3g}", best * 8e-9);
}

std::string free_space(int64_t bytes) { return bytes < 0 ? "-" : readable_bytes(static_cast<uint64_t>(bytes)); }

}  // namespace

CheckReport run_check(Communicator& comm, const CheckOptions& options) {
  CheckReport report;
  comm.barrier()->wait();
  RankFacts mine = own_facts(options.torch, options.runs_folder);
  mine.mpi = options.mpi;
  report.ranks = gather_facts(comm, mine);
  report.nodes = find_nodes(comm);
  report.clocks = measure_clock_offsets(comm);
  report.pairs = measure_pairs(comm, report.nodes, {});

  report.findings.push_back(
      {Severity::ok, "ranks",
       fmt::format("{} rank{} on {} node{} answer over {}, after {:.1f} s", comm.size(), comm.size() == 1 ? "" : "s",
                   report.nodes.size(), report.nodes.size() == 1 ? "" : "s", comm.name(), options.connect_s)});
  append(report.findings, compare_builds(report.ranks));
  append(report.findings, compare_models(report.ranks));
  append(report.findings, compare_machines(report.ranks));
  if (options.gpu >= 0) report.findings.push_back(join_gpus(comm, options));
  append(report.findings, judge_clocks(report.clocks, report.ranks));
  append(report.findings, judge_links(report.pairs, report.nodes, options.link_gbps * 1e9 / 8));
  return report;
}

std::string describe(const CheckReport& report) {
  std::string text = fmt::format("{:<12} {:<8} {:>5} {:>6} {:>7} {:>6} {:>4} {:>11} {:>11} {:>18} {:>11}\n", "node",
                                 "ranks", "cores", "load", "steal", "busy", "GPUs", "free disk", "free shm", "clock",
                                 report.nodes.size() == 1 ? "Gbit/s in" : "Gbit/s out");
  for (std::size_t i = 0; i < report.nodes.size(); ++i) {
    const Node& node = report.nodes[i];
    const auto first = static_cast<std::size_t>(node.ranks[0]);
    const RankFacts& facts = report.ranks[first];
    const ClockOffset& clock = report.clocks[first];
    text += fmt::format(
        "{:<12} {:<8} {:>5} {:>6.2f} {:>5.1f} % {:>4.0f} % {:>4} {:>11} {:>11} {:>18} {:>11}\n", node.host,
        ranges(node.ranks), facts.cores, facts.load, facts.steal, facts.busy, facts.torch.gpus.size(),
        free_space(facts.free_disk), free_space(facts.free_shm),
        first == 0 ? "-" : fmt::format("{:+.3f} ± {:.3f} ms", clock.wall_s * 1e3, clock.uncertainty_s * 1e3),
        best_link(report, i));
  }
  text += "\n";
  for (const Finding& finding : report.findings) text += line_of(finding) + "\n";
  return text;
}

nlohmann::json to_json(const CheckReport& report) {
  nlohmann::json json = {{"ranks", report.ranks}, {"pairs", report.pairs}};
  for (const Node& node : report.nodes) json["nodes"].push_back({{"host", node.host}, {"ranks", node.ranks}});
  json["clocks"] = nlohmann::json::array();
  for (const ClockOffset& clock : report.clocks) json["clocks"].push_back(clock);
  for (const Finding& finding : report.findings)
    json["findings"].push_back(
        {{"severity", name_of(finding.severity)}, {"about", finding.about}, {"text", finding.text}});
  return json;
}

void require_same_build(Communicator& comm, const TorchFacts& torch) {
  const std::vector<RankFacts> ranks = gather_facts(comm, own_build(torch));
  for (const Finding& finding : compare_builds(ranks)) {
    if (finding.severity != Severity::problem) continue;
    finish_together(comm);
    if (comm.rank() != 0) throw RefusedByAll("rank 0 refused to start");
    throw UsageError("the {} `tutti check` shows all differences.", finding.text);
  }
}

}  // namespace tutti
