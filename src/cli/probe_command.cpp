#include "cli/probe_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/cpu_times.h"
#include "base/files.h"
#include "base/gnuplot.h"
#include "base/names.h"
#include "cli/json_output.h"
#include "cli/rank_arguments.h"
#include "comm/connect.h"
#include "comm/exchange.h"
#include "comm/mpi/mpi.h"
#include "probe/links_report.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

struct ProbeArguments {
  RankArguments ranks;
  double max_mb = 64, seconds = 0.2, link_gbps = 0;
  int repeats = 2000;
  std::vector<std::string> ops;
  std::string links_file = "links.json", plot_file;
  bool as_json = false;
};

void check_folder(const char* option, const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  if (!folder.empty() && !fs::is_directory(folder))
    throw UsageError("{} {}: there is no folder {}", option, file, folder.string());
}

ProbeOptions probe_options(const ProbeArguments& arguments) {
  if (arguments.max_mb < 0.001 || arguments.max_mb > 1024)
    throw UsageError("--max-mb is {}: it must be from 0.001 to 1024", arguments.max_mb);
  if (arguments.seconds <= 0 || arguments.seconds > 600)
    throw UsageError("--seconds is {}: it must be above 0, and 600 at most", arguments.seconds);
  if (arguments.repeats < 1) throw UsageError("--repeats is {}: it must be 1 or more", arguments.repeats);
  if (arguments.link_gbps < 0) throw UsageError("--link-gbps is {}: it must be 0 or more", arguments.link_gbps);
  const std::string ending = fs::path(arguments.plot_file).extension().string();
  if (!arguments.plot_file.empty() && ending != ".svg" && ending != ".png")
    throw UsageError("--plot {}: the name must end in .svg or .png", arguments.plot_file);
  check_folder("--plot", arguments.plot_file);
  check_folder("--links", arguments.links_file);
  ProbeOptions options;
  options.sizes = probe_sizes(std::max<int64_t>(1024, static_cast<int64_t>(arguments.max_mb * (1 << 18)) * 4));
  options.runs.seconds = arguments.seconds;
  options.runs.most = arguments.repeats;
  options.runs.least = std::min(options.runs.least, options.runs.most);
  if (arguments.ops.empty()) return options;
  options.ops.clear();
  std::vector<std::string> names;
  for (const ProbeOp op : probe_ops()) names.emplace_back(name_of(op));
  for (const std::string& wanted : arguments.ops) {
    const auto at = std::find(names.begin(), names.end(), wanted);
    if (at == names.end()) throw UsageError("{}", unknown_name("operation", wanted, names));
    options.ops.push_back(probe_ops()[static_cast<std::size_t>(at - names.begin())]);
  }
  return options;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

/// On a terminal one line that changes, else a line for each level only.
void show_progress(const ProbedLevel& level, ProbeOp op, int64_t bytes) {
  if (::isatty(STDERR_FILENO) == 1)
    fmt::print(stderr, "\r\033[Kmeasuring {} over {}: {} of {}", level.name, level.transport, name_of(op),
               readable_bytes(static_cast<uint64_t>(bytes)));
  else if (bytes == 1024)
    fmt::print(stderr, "measuring {} over {}: {}\n", level.name, level.transport, name_of(op));
}

LinksReport measure(Communicator& comm, const ProbeArguments& arguments, ProbeOptions options, const std::string& job,
                    int gpu, RankFacts mine) {
  const auto start = Clock::now();
  LinksReport report;
  report.transport = arguments.ranks.on_gpus() ? arguments.ranks.transport : comm.name();
  report.date = utc_now();
  report.nodes = find_nodes(comm);
  const CpuTimes before = read_cpu_times();
  if (!arguments.ranks.on_gpus()) report.pairs = measure_pairs(comm, report.nodes, {});
  report.levels = levels_to_probe(report.nodes, report.transport);
  for (ProbedLevel& level : report.levels) {
    options.progress = [&level](ProbeOp op, int64_t bytes) { show_progress(level, op, bytes); };
    probe_level(comm, job, gpu, level, options);
  }
  if (comm.rank() == 0 && ::isatty(STDERR_FILENO) == 1) fmt::print(stderr, "\r\033[K");
  mine.steal = load_between(before, read_cpu_times()).steal;
  for (const std::string& text : gather_texts(comm, nlohmann::json(mine).dump()))
    report.ranks.push_back(nlohmann::json::parse(text));
  for (const RankFacts& facts : report.ranks) report.steal = std::max(report.steal, facts.steal);
  // Without `send` among the operations, pairs are all there is to know a link by.
  set_link_bandwidths(report.levels, arguments.link_gbps);
  for (ProbedLevel& level : report.levels)
    if (level.link_bytes_per_s == 0)
      level.link_bytes_per_s = median_bandwidth(report.pairs, report.nodes, level.name != "node");
  report.seconds = seconds_since(start);
  return report;
}

/// False where no plot was asked for, or none can be made.
bool draw(const LinksReport& report, const ProbeArguments& arguments) {
  if (arguments.plot_file.empty()) return false;
  if (draw_with_gnuplot(gnuplot_program(report.levels, arguments.plot_file))) return true;
  fmt::print(stderr, "tutti: there is no gnuplot, so no {}: the bars have to do (apt-get install gnuplot-nox)\n",
             arguments.plot_file);
  return false;
}

void show(const LinksReport& report, const ProbeArguments& arguments) {
  write_file_atomically(arguments.links_file, to_json(report).dump(1) + "\n");
  if (arguments.as_json) {
    print_json(to_json(report));
    draw(report, arguments);
    return;
  }
  for (const ProbedLevel& level : report.levels)
    if (!level.ops.empty()) fmt::print("{}\n", describe(level));
  for (const SlowLink& slow : find_slow_links(report.pairs, report.nodes, arguments.link_gbps * 1e9 / 8))
    fmt::print("warning: {}\n", slow.text);
  if (report.steal > 3)
    fmt::print("warning: {:.0f} % of the time went to other virtual machines (steal): figures are too low\n",
               report.steal);
  for (const Node& node : report.nodes) {
    const double busy = report.ranks[static_cast<std::size_t>(node.ranks[0])].busy;
    if (busy > 25)
      fmt::print("warning: others used {:.0f} % of the cores of {} before this began: figures are too low\n", busy,
                 node.host);
  }
  if (std::string(report.ranks.at(0).build_type) == "Debug") fmt::print("warning: this is a debug build\n");
  fmt::print("{:.0f} s; all figures are in {}\n", report.seconds, arguments.links_file);
  if (draw(report, arguments)) fmt::print("plot: {}\n", arguments.plot_file);
}

int run(const ProbeArguments& arguments, const AskTorch& ask_torch) {
  const ProbeOptions options = probe_options(arguments);
  const LaunchEnv env = read_launch_env();
  if (const auto code = arguments.ranks.launch_unless_rank(env)) return *code;
  if (env.size < 2)
    throw UsageError("one rank has nobody to talk to: --ranks 2, --hosts a:2,b:2, or mpirun -np 2 tutti probe");
  const std::unique_ptr<Communicator> comm = arguments.ranks.connect(env);
  const TorchFacts torch = ask_torch("");
  comm->barrier()->wait();  // all look at the machine while all sleep
  RankFacts mine = own_facts(torch, ".");
  if (find_transport(comm->name()).started_by_mpirun) mine.mpi = start_mpi().library;
  const int gpu = arguments.ranks.on_gpus() ? arguments.ranks.own_gpu(env, static_cast<int>(torch.gpus.size())) : 0;
  const LinksReport report = measure(*comm, arguments, options, env.job, gpu, std::move(mine));
  if (comm->rank() == 0) show(report, arguments);
  std::fflush(stdout);
  comm->barrier()->wait();  // nobody leaves while others still need them
  return 0;
}

}  // namespace

std::function<int()> add_probe_command(CLI::App& program, AskTorch ask_torch) {
  auto arguments = std::make_shared<ProbeArguments>();
  CLI::App* command =
      program.add_subcommand("probe", "measure what messages between ranks cost, and write a links file");
  command->add_option("--max-mb", arguments->max_mb, "largest message, in MB; the smallest has 1 KB")
      ->capture_default_str();
  command->add_option("--seconds", arguments->seconds, "time for each operation and size; at least 5 runs")
      ->capture_default_str();
  command->add_option("--repeats", arguments->repeats, "most runs of each operation and size")->capture_default_str();
  command
      ->add_option("--ops", arguments->ops,
                   "only these: all_reduce, reduce_scatter, all_gather, broadcast, send; separated by commas")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option("--link-gbps", arguments->link_gbps,
                   "what a link carries, for the ring bound; 0: what two ranks were seen to exchange")
      ->capture_default_str();
  command->add_option("--links", arguments->links_file, "write everything to this file, as JSON")
      ->capture_default_str();
  command->add_option("--plot", arguments->plot_file, "draw bandwidth over message size: FILE.svg or FILE.png");
  add_json_flag(*command, arguments->as_json);
  arguments->ranks.add_to(*command);
  command->footer(
      "Started as the training will be:\n"
      "  tutti probe --ranks 2                       this machine, through shared memory\n"
      "  tutti probe --hosts node1:2,node2:2         several machines: inside a node, between nodes, all ranks\n"
      "  mpirun -np 4 --hostfile hosts tutti probe   the same by hand; also under srun\n"
      "  tutti probe --ranks 8 --transport nccl      between the GPUs of this machine\n"
      "algbw is size / time. busbw is what a link of a ring moved meanwhile, as nccl-tests count it: algbw × 2(p-1)/p\n"
      "for an all-reduce, (p-1)/p for its halves. The ring bound is the least time that a ring of such links takes;\n"
      "what does not go around a ring, such as shared memory, can be faster. spread: half the distance of the\n"
      "quartiles. fitted cost: start-up + bytes × per byte, and the fit's relative error.");
  return [arguments, ask = std::move(ask_torch)] { return run(*arguments, ask); };
}

}  // namespace tutti
