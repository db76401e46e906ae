#include "launch/slurm_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <regex>

#include "tutti/error.h"

namespace tutti {
namespace {

// Slurm looks at the clock once a minute, and rather sends a signal early than late.
constexpr long kSignalEarly = 60;
constexpr int kMostSignalSeconds = 65535;  // Slurm's own limit
constexpr int kCheckpointMinutes = 10;
// From the first rank that ends to the end of those that did not notice.
constexpr int kWaitForOthers = 30;

using Words = std::vector<std::string>;

// ---- the command ----

/// Whether an option is among the words, as `--name run1` or `--name=run1`.
bool has_option(const Words& words, const std::string& option) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return word == option || word.compare(0, option.size() + 1, option + "=") == 0;
  });
}

/// The value of an option; of the last one, as when tutti reads them.
std::optional<std::string> option_value(const Words& words, const std::string& option) {
  for (std::size_t i = words.size(); i-- > 0;) {
    if (words[i] == option && i + 1 < words.size()) return words[i + 1];
    if (words[i].compare(0, option.size() + 1, option + "=") == 0) return words[i].substr(option.size() + 1);
  }
  return std::nullopt;
}

int number_or(const std::optional<std::string>& text, int otherwise) {
  int value = 0;
  if (!text) return otherwise;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  return error == std::errc() && end == text->data() + text->size() ? value : otherwise;
}

/// A sweep starts the ranks of its cells itself: it runs once, in the job's first node.
bool is_bench(const SlurmJob& job) { return job.command.front() == "bench"; }
bool is_train(const SlurmJob& job) { return job.command.front() == "train"; }

void check_train(const SlurmJob& job) {
  if (has_option(job.command, "--hosts"))
    throw UsageError("--hosts names machines, but in a job Slurm chooses them: leave it out");
  if (has_option(job.command, "--resume"))
    throw UsageError(
        "--resume always starts from the same place, but a job may be started again: leave it out and name the run "
        "with --name, then each start goes on where the last one stopped");
  const int servers = number_or(option_value(job.command, "--servers"), 0);
  const int ranks = number_or(option_value(job.command, "--ranks"), 0);
  if (ranks > 0 && ranks + servers != count_ranks(job))
    throw UsageError("train --ranks {}{} contradicts the job's {} ranks: leave it out, srun says how many there are",
                     ranks, servers > 0 ? fmt::format(" with --servers {}", servers) : "", count_ranks(job));
}

// ---- checks ----

void check_word(const char* option, const std::string& value) {
  const auto is_odd = [](unsigned char c) { return c <= ' ' || c == 127 || c == '"' || c == '\'' || c == '\\'; };
  if (std::any_of(value.begin(), value.end(), is_odd))
    throw UsageError("{} '{}': no spaces, quotes or backslashes, please; Slurm reads them in its own way", option,
                     value);
}

void check_name(const char* option, const std::string& value) {
  static const std::regex plain("[A-Za-z0-9_][A-Za-z0-9_.,+-]*");
  if (!value.empty() && !std::regex_match(value, plain))
    throw UsageError("{} '{}': letters, digits and _ . , + - are possible", option, value);
}

void check_sizes(const SlurmJob& job) {
  if (job.nodes < 1) throw UsageError("--nodes {}: at least one is needed", job.nodes);
  if (job.ranks_per_node < 0) throw UsageError("--ranks-per-node {}: at least one is needed", job.ranks_per_node);
  if (job.ranks < 0) throw UsageError("--ranks {}: at least one is needed", job.ranks);
  if (job.ranks > 0 && job.ranks_per_node > 0)
    throw UsageError("--ranks is for all nodes together and --ranks-per-node for each: give one of them");
  if (job.ranks > 0 && job.ranks < job.nodes)
    throw UsageError("--ranks {} on --nodes {}: each node needs one at least", job.ranks, job.nodes);
  if (job.cpus_per_rank < 0) throw UsageError("--cpus-per-rank {}: at least one is needed", job.cpus_per_rank);
  if (job.gpus_per_node < 0) throw UsageError("--gpus-per-node {}: 0 or more are possible", job.gpus_per_node);
}

void check_times(const SlurmJob& job) {
  if (job.signal_seconds < 1 || job.signal_seconds > kMostSignalSeconds)
    throw UsageError("--signal-seconds {}: 1 to {} are possible", job.signal_seconds, kMostSignalSeconds);
  if (job.time.empty()) return;
  const long seconds = slurm_seconds(job.time);
  if (seconds >= 0 && seconds <= job.signal_seconds + kSignalEarly)
    throw UsageError(
        "--time {} is {} s, but --signal-seconds {} before its end, and up to {} s earlier than that, the job is told "
        "to stop: it would never get anywhere. Give it more time",
        job.time, seconds, job.signal_seconds, kSignalEarly);
}

void check_command(const SlurmJob& job) {
  if (job.command.empty() || job.command.front().empty() || job.command.front().front() == '-')
    throw UsageError("what shall the job run? Put it after --: `tutti slurm --nodes 2 -- train --model mnist-cnn`");
  for (const std::string& word : job.command) {
    if (word.find('\0') != std::string::npos) throw UsageError("a word of the command has a zero byte in it");
  }
  if (is_train(job)) check_train(job);
}

void check(const SlurmJob& job) {
  check_command(job);
  check_sizes(job);
  check_times(job);
  check_name("--partition", job.partition);
  check_name("--job-name", job.name);
  check_name("--mpi", job.mpi);
  if (job.mpi.empty()) throw UsageError("--mpi needs a name; `srun --mpi=list` shows those of a cluster");
  check_word("--log", job.log);
  for (const std::string& line : job.lines) {
    static const std::regex option("(--)?[a-z][a-z-]*(=.+)?");
    check_word("--sbatch", line);
    if (!std::regex_match(line, option)) throw UsageError("--sbatch '{}': write OPTION=VALUE, as account=lab", line);
  }
}

// ---- the text ----

std::string job_name(const SlurmJob& job) {
  if (!job.name.empty()) return job.name;
  static const std::regex plain("[A-Za-z0-9_][A-Za-z0-9_.+-]*");
  const std::string run = is_train(job) ? option_value(job.command, "--name").value_or("") : "";
  return std::regex_match(run, plain) ? run : "tutti";
}

/// The command as the shell gets it: words quoted, one option with its values a line.
std::string command_text(const SlurmJob& job) {
  std::string text = "  " + shell_quote(job.program);
  for (const std::string& word : job.command)
    text += (word.compare(0, 2, "--") == 0 ? " \\\n    " : " ") + shell_quote(word);
  if (!is_train(job)) return text;
  // The job's number stays the same when it is started again, and no other job of the cluster has it.
  if (!has_option(job.command, "--name")) text += fmt::format(" \\\n    --name {}-\"$SLURM_JOB_ID\"", job_name(job));
  if (!has_option(job.command, "--checkpoint-minutes") && !has_option(job.command, "--checkpoint-steps"))
    text += fmt::format(" \\\n    --checkpoint-minutes {}", kCheckpointMinutes);
  if (!has_option(job.command, "--auto-resume")) text += " \\\n    --auto-resume";
  return text;
}

std::string sbatch_lines(const SlurmJob& job) {
  std::string text = fmt::format("#SBATCH --job-name={}\n#SBATCH --nodes={}\n", job_name(job), job.nodes);
  text += job.ranks > 0 ? fmt::format("#SBATCH --ntasks={}\n", job.ranks)
                        : fmt::format("#SBATCH --ntasks-per-node={}\n", std::max(1, job.ranks_per_node));
  if (job.cpus_per_rank > 0) text += fmt::format("#SBATCH --cpus-per-task={}\n", job.cpus_per_rank);
  if (job.gpus_per_node > 0) text += fmt::format("#SBATCH --gpus-per-node={}\n", job.gpus_per_node);
  if (!job.time.empty()) text += fmt::format("#SBATCH --time={}\n", job.time);
  if (!job.partition.empty()) text += fmt::format("#SBATCH --partition={}\n", job.partition);
  for (const std::string& line : job.lines)
    text += fmt::format("#SBATCH {}{}\n", line.compare(0, 2, "--") == 0 ? "" : "--", line);
  text += fmt::format(
      "\n"
      "# What it prints, from all its starts: %x is the job's name, %j its number.\n"
      "#SBATCH --output={}\n"
      "#SBATCH --open-mode=append\n"
      "\n"
      "# The job may be started again: after it was pre-empted, after a node failed, or by itself, see below.\n"
      "#SBATCH --requeue\n"
      "\n"
      "# {} SIGUSR1 so many seconds before the job's time is over (Slurm may be up to {} s early): {}\n"
      "#SBATCH --signal={}USR1@{}\n",
      job.log.empty() ? "%x-%j.log" : job.log, is_bench(job) ? "This script gets" : "The ranks get", kSignalEarly,
      is_bench(job) ? "it\n# stops the sweep." : "they\n# save a checkpoint and stop.", is_bench(job) ? "B:" : "",
      job.signal_seconds);
  return text;
}

/// Words of a command line, one option with its values a line.
std::string lines_of_words(const std::string& program, const Words& words) {
  std::string text = shell_quote(program);
  for (const std::string& word : words) text += (word.compare(0, 2, "--") == 0 ? " \\\n    " : " ") + shell_quote(word);
  return text;
}

/// The part of the file that runs a sweep. Each start of the job goes on with the sweep's folder.
std::string bench_text(const SlurmJob& job) {
  std::optional<std::string> given = option_value(job.command, "--output");
  if (!given) given = option_value(job.command, "-o");
  const bool resumes = has_option(job.command, "--resume");
  const std::string folder =
      given ? shell_quote(*given)
            : fmt::format("{}/{}-\"$SLURM_JOB_ID\"", shell_quote(option_value(job.command, "--runs").value_or("runs")),
                          job_name(job));
  const std::string first =
      lines_of_words(job.program, job.command) + (given || resumes ? "" : " \\\n    --output \"$folder\"");
  const std::string command = resumes ? fmt::format("{} &\n", first)
                                      : fmt::format(
                                            "# The sweep's folder; a later start of the job goes on with it.\n"
                                            "folder={}\n"
                                            "if [ -e \"$folder/sweep.json\" ]; then\n"
                                            "  {} bench --resume \"$folder\" &\n"
                                            "else\n"
                                            "  {} &\n"
                                            "fi\n",
                                            folder, shell_quote(job.program), first);
  return fmt::format(
      "# SIGTERM comes when somebody ends the job (scancel) or Slurm takes its nodes for another (pre-emption): what\n"
      "# becomes of the job is then decided already. SIGUSR1 says that its time is nearly over.\n"
      "is_ended=no\n"
      "sweep=\n"
      "stop_sweep() {{ [ -z \"$sweep\" ] || kill -TERM \"$sweep\"; }}\n"
      "trap 'is_ended=yes; stop_sweep' TERM\n"
      "trap stop_sweep USR1\n"
      "\n"
      "echo \"Job $SLURM_JOB_ID, start $((${{SLURM_RESTART_COUNT:-0}} + 1)): a sweep on\" \\\n"
      "  \"$SLURM_JOB_NUM_NODES nodes: $SLURM_JOB_NODELIST\"\n"
      "\n"
      "export SLURM_PMIX_FENCE=\"${{SLURM_PMIX_FENCE:-{fence}}}\" SLURM_MPI_TYPE=\"${{SLURM_MPI_TYPE:-{mpi}}}\"\n"
      "# Once, in this node, and not by srun: it starts the ranks of each cell itself.\n"
      "{command}"
      "sweep=$!\n"
      "# A signal ends `wait`, but not yet the sweep.\n"
      "while kill -0 \"$sweep\" 2>/dev/null; do wait \"$sweep\"; done\n"
      "wait \"$sweep\"\n"
      "code=$?\n"
      "\n"
      "# 143: the sweep was stopped by SIGTERM. Back into the queue; it goes on with the cells that are left.\n"
      "if [ \"$code\" -eq 143 ] && [ \"$is_ended\" = no ]; then\n"
      "  echo \"Job $SLURM_JOB_ID has stopped its sweep and goes back into the queue\"\n"
      "  scontrol requeue \"$SLURM_JOB_ID\"\n"
      "fi\n"
      "exit \"$code\"\n",
      fmt::arg("fence", kSlurmFence), fmt::arg("mpi", job.mpi), fmt::arg("command", command));
}

/// The part of the file that runs one process per rank.
std::string ranks_text(const SlurmJob& job) {
  return fmt::format(
      "# SIGTERM comes when somebody ends the job (scancel) or Slurm takes its nodes for another (pre-emption): what\n"
      "# becomes of the job is then decided already.\n"
      "is_ended=no\n"
      "trap 'is_ended=yes' TERM\n"
      "# For the ranks, not for this script: `scancel --full --signal=USR1` sends it to both.\n"
      "trap : USR1\n"
      "\n"
      "echo \"Job $SLURM_JOB_ID, start $((${{SLURM_RESTART_COUNT:-0}} + 1)): $SLURM_NTASKS ranks on\" \\\n"
      "  \"$SLURM_JOB_NUM_NODES nodes: $SLURM_JOB_NODELIST\"\n"
      "\n"
      "# Slurm's other way of meeting, a tree, lets ranks start before all have come, which may crash those.\n"
      "export SLURM_PMIX_FENCE=\"${{SLURM_PMIX_FENCE:-{fence}}}\"\n"
      "# One process per rank; --mpi={mpi} is how they find each other. When one has ended, those that do not\n"
      "# notice are ended {wait} s later.\n"
      "code=0\n"
      "srun --mpi={mpi} --wait={wait}{cpus} \\\n"
      "{command} ||\n"
      "  code=$?\n"
      "\n"
      "# {saved}: the run has saved a checkpoint because it was told to stop. Back into the queue; it goes on from "
      "there.\n"
      "if [ \"$code\" -eq {saved} ] && [ \"$is_ended\" = no ]; then\n"
      "  echo \"Job $SLURM_JOB_ID has saved and goes back into the queue\"\n"
      "  scontrol requeue \"$SLURM_JOB_ID\"\n"
      "fi\n"
      "exit \"$code\"\n",
      fmt::arg("mpi", job.mpi), fmt::arg("wait", kWaitForOthers), fmt::arg("fence", kSlurmFence),
      // Since 22.05 srun does not take it over from the job.
      fmt::arg("cpus", job.cpus_per_rank > 0 ? fmt::format(" --cpus-per-task={}", job.cpus_per_rank) : ""),
      fmt::arg("command", command_text(job)), fmt::arg("saved", job.saved_code));
}

}  // namespace

int count_ranks(const SlurmJob& job) { return job.ranks > 0 ? job.ranks : job.nodes * std::max(1, job.ranks_per_node); }

long slurm_seconds(const std::string& time) {
  if (time == "infinite" || time == "INFINITE" || time == "unlimited" || time == "UNLIMITED") return -1;
  // Days-hours[:minutes[:seconds]], or minutes, minutes:seconds, hours:minutes:seconds.
  static const std::regex with_days("([0-9]{1,4})-([0-9]{1,4})(?::([0-9]{1,4})(?::([0-9]{1,4}))?)?");
  static const std::regex without_days("(?:([0-9]{1,6}):)?([0-9]{1,6}):([0-9]{1,6})|([0-9]{1,6})");
  std::smatch part;
  const auto number = [&part](std::size_t i) { return part[i].matched ? std::stol(part[i].str()) : 0; };
  long seconds = 0;
  if (std::regex_match(time, part, with_days)) {
    seconds = ((number(1) * 24 + number(2)) * 60 + number(3)) * 60 + number(4);
  } else if (std::regex_match(time, part, without_days)) {
    seconds = part[4].matched ? number(4) * 60 : (number(1) * 60 + number(2)) * 60 + number(3);
  } else {
    throw UsageError(
        "--time '{}': write minutes (90), minutes:seconds, hours:minutes:seconds (1:30:00), days-hours (2-12) or "
        "days-hours:minutes",
        time);
  }
  if (seconds == 0) throw UsageError("--time {}: more than 0 is needed; `infinite` if it shall have no limit", time);
  return seconds;
}

std::string shell_quote(const std::string& word) {
  static const std::string plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string slurm_file(const SlurmJob& job) {
  check(job);
  return fmt::format(
             "#!/bin/bash\n"
             "# Written by `tutti slurm`. Start it with `sbatch THIS_FILE`, look at it with `squeue`, end it with "
             "`scancel`.\n"
             "\n"
             "{}"
             "\n"
             "set -u\n"
             "\n",
             sbatch_lines(job)) +
         (is_bench(job) ? bench_text(job) : ranks_text(job));
}

}  // namespace tutti
