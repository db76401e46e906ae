#include "sweep/sweep_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/files.h"
#include "tutti/error.h"

namespace tutti::sweep {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The processes of a sweep that was killed end a moment after it.
constexpr double kLockSeconds = 5;

/// Whether the process that has written its number to the lock still lives. On another machine: no.
bool is_holder_alive(const fs::path& lock) {
  const int pid = std::atoi(read_file(lock).c_str());
  return pid > 0 && (::kill(pid, 0) == 0 || errno == EPERM);
}

int take_lock(const fs::path& folder) {
  const fs::path file = folder / "lock";
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) throw Error("cannot open {}: {}", file.string(), std::strerror(errno));
  for (const auto start = Clock::now(); ::flock(fd, LOCK_EX | LOCK_NB) != 0;) {
    const int reason = errno;
    if (reason == EINTR) continue;
    if (reason == EWOULDBLOCK && !is_holder_alive(file) && seconds_since(start) < kLockSeconds) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      continue;
    }
    ::close(fd);
    if (reason == EWOULDBLOCK)
      throw Error("another `tutti bench` is at work in {}: wait until it has ended, or stop it", folder.string());
    throw Error("cannot lock {}: {}", file.string(), std::strerror(reason));
  }
  const std::string pid = std::to_string(::getpid());
  // On a full disk it stays empty, which only means that others wait a little before they complain.
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, pid.data(), pid.size(), 0) < 0) return fd;
  return fd;
}

/// A process killed while it wrote may have left half a line, which the next one would be glued to.
void drop_half_line(const fs::path& file) {
  const std::string text = read_file(file);
  const std::size_t end = text.rfind('\n');
  const std::size_t whole = end == std::string::npos ? 0 : end + 1;
  if (whole < text.size()) fs::resize_file(file, whole);
}

}  // namespace

double shown_rate(const json& record) {
  if (!record.contains("step_s") || !record.contains("samples_per_step")) return 0;
  std::vector<double> times = record.at("step_s").get<std::vector<double>>();
  const std::size_t warmup = record.value("warmup_steps", std::size_t{0});
  if (times.size() > warmup) times.erase(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(warmup));
  if (times.empty()) return 0;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle > 0 ? record.at("samples_per_step").get<double>() / *middle : 0;
}

SweepFolder::SweepFolder(fs::path path, int lock) : path_(std::move(path)), lock_(lock) {}

SweepFolder::SweepFolder(SweepFolder&& other) noexcept
    : path_(std::move(other.path_)),
      lock_(std::exchange(other.lock_, -1)),
      plan_(std::move(other.plan_)),
      cells_(std::move(other.cells_)),
      outcomes_(std::move(other.outcomes_)),
      records_(std::move(other.records_)) {}

SweepFolder::~SweepFolder() {
  if (lock_ >= 0) ::close(lock_);
}

SweepFolder SweepFolder::create(const fs::path& path, const json& plan) {
  make_folders(path);
  {
    const SweepFolder folder(path, take_lock(path));
    if (fs::exists(path / "sweep.json"))
      throw UsageError(
          "there is a sweep in {} already: go on with it, `tutti bench --resume {}`, or choose another folder",
          path.string(), path.string());
    write_file_atomically(path / "sweep.json", plan.dump(1) + "\n");
  }
  return open(path);
}

SweepFolder SweepFolder::open(const fs::path& path) {
  if (!fs::exists(path / "sweep.json")) throw UsageError("{} is no sweep: there is no sweep.json in it", path.string());
  SweepFolder folder(path, take_lock(path));
  try {
    folder.plan_ = json::parse(read_file(path / "sweep.json"));
    folder.cells_ = folder.plan_.at("cells").get<std::vector<SweepCell>>();
  } catch (const json::exception& error) {
    throw Error("{} cannot be read: {}", (path / "sweep.json").string(), error.what());
  }
  make_folders(path / "cells");
  folder.records_ = RecordFile(path / "cells.jsonl");
  folder.read_outcomes();
  return folder;
}

void SweepFolder::read_outcomes() {
  const fs::path file = path_ / "cells.jsonl";
  drop_half_line(file);
  const std::string text = read_file(file);
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    ++number;
    try {
      const json record = json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                      text.begin() + static_cast<std::ptrdiff_t>(end));
      CellOutcome& outcome = outcomes_[record.at("cell").get<std::string>()];
      if (outcome.state != CellState::done) {
        const bool is_done = record.at("status") == "done";
        outcome = {is_done ? CellState::done : CellState::failed, record.value("wall_s", 0.0), shown_rate(record),
                   record.value("error", "")};
      }
    } catch (const json::exception& error) {
      throw Error("{}:{} is no cell record: {}", file.string(), number, error.what());
    }
    begin = end + 1;
  }
}

const CellOutcome& SweepFolder::outcome(const std::string& id) const {
  static const CellOutcome pending;
  const auto found = outcomes_.find(id);
  return found == outcomes_.end() ? pending : found->second;
}

void SweepFolder::add(json record) {
  const std::string id = record.at("cell");
  const bool is_done = record.at("status") == "done";
  const CellOutcome outcome = {is_done ? CellState::done : CellState::failed, record.value("wall_s", 0.0),
                               shown_rate(record), record.value("error", "")};
  records_.add("cell", std::move(record));
  flush_to_disk(records_.path());
  outcomes_[id] = outcome;
}

fs::path newest_sweep(const fs::path& runs, const std::string& name) {
  fs::path newest;
  fs::file_time_type begun;
  std::error_code error;
  for (fs::directory_iterator entry(runs, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code none;
    const auto time = fs::last_write_time(entry->path() / "sweep.json", none);  // written once, when it begins
    if (none || (!newest.empty() && time < begun)) continue;
    if (!name.empty()) {
      const json plan = json::parse(read_file(entry->path() / "sweep.json"), nullptr, /*allow_exceptions=*/false);
      if (!plan.is_object() || plan.value("name", "") != name) continue;
    }
    newest = entry->path();
    begun = time;
  }
  if (newest.empty())
    throw UsageError("there is no sweep{} in {} to go on with; `tutti bench --resume FOLDER` names another place",
                     name.empty() ? "" : " '" + name + "'", runs.string());
  return newest;
}

fs::path new_sweep_path(const fs::path& runs, const std::string& name) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
  const std::string base = fmt::format("{}-bench-{}", stamp, name);
  fs::path path = runs / base;
  for (int again = 2; fs::exists(path); ++again) path = runs / fmt::format("{}-{}", base, again);
  return path;
}

}  // namespace tutti::sweep
