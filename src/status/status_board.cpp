#include "status/status_board.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <utility>

#include "base/files.h"
#include "base/proc_files.h"
#include "comm/nodes.h"

namespace tutti {
namespace {

constexpr int kWriteMs = 500;
constexpr std::chrono::seconds kRateWindow{10};

volatile std::sig_atomic_t wake_fd = -1;
volatile std::sig_atomic_t is_asked = 0;

/// Runs only in threads that were there before the signal was blocked, such as OpenBLAS's own; see stop_signal.cpp.
void note_question(int) {
  const int saved = errno;
  is_asked = 1;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = ::write(wake_fd, &one, sizeof one);
  errno = saved;
}

/// Of all threads of this process.
double cpu_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

sigset_t only_quit() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGQUIT);
  return set;
}

}  // namespace

StatusBoard& StatusBoard::get() {
  static StatusBoard board;
  return board;
}

StatusBoard::~StatusBoard() {
  if (thread_.joinable()) close(1, "the process ended without a word");
}

void StatusBoard::open(const std::filesystem::path& file, const RankStatus& who) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    known_ = who;
    known_.host = this_host();
    known_.pid = ::getpid();
    if (const auto stat = process_stat(known_.pid)) known_.process_start = stat->start_time;
    known_.started = known_.phase_since = wall_seconds();
  }
  file_ = file;
  try {
    make_folders(file_.parent_path(), Readers::owner);
  } catch (const std::exception&) {
    // The file will not be written either.
  }
  wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  wake_fd = wake_.get();
  struct sigaction action = {};
  action.sa_handler = note_question;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGQUIT, &action, nullptr);
  const sigset_t set = only_quit();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this] { run(); });
}

void StatusBoard::close(int exit_code, const std::string& error) {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    known_.exit_code = exit_code;
    known_.error = error;
  }
  stopping_ = true;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = ::write(wake_.get(), &one, sizeof one);
  thread_.join();
  if (exit_code != 0) {
    write();
    return;
  }
  std::error_code ignored;
  std::filesystem::remove(file_, ignored);
  std::filesystem::remove(file_.parent_path(), ignored);                // where this was the last of the job
  std::filesystem::remove(file_.parent_path().parent_path(), ignored);  // and there is no other job
}

void StatusBoard::enter(RunPhase phase) {
  if (phase_.exchange(phase, std::memory_order_relaxed) == phase) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  known_.phase_since = wall_seconds();
}

void StatusBoard::set_run(const std::string& folder) {
  const std::lock_guard<std::mutex> lock(mutex_);
  known_.run = folder;
}

void StatusBoard::set_transport(const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  known_.transport = name;
}

void StatusBoard::be_server(int workers) {
  enter(RunPhase::serving);
  const std::lock_guard<std::mutex> lock(mutex_);
  known_.ranks = workers;
  known_.is_server = true;
}

void StatusBoard::saved_checkpoint(int64_t step) {
  const std::lock_guard<std::mutex> lock(mutex_);
  known_.checkpoint_step = step;
  known_.checkpoint_time = wall_seconds();
}

void StatusBoard::name_transfers(std::vector<std::string> names) {
  const std::lock_guard<std::mutex> lock(mutex_);
  transfers_ = std::move(names);
}

StatusBoard::Watch::Watch(StatusBoard& board, std::function<Awaited()> awaited) : board_(board) {
  const std::lock_guard<std::mutex> lock(board_.mutex_);
  place_ = board_.watched_.insert(board_.watched_.end(), std::move(awaited));
}

StatusBoard::Watch::~Watch() {
  const std::lock_guard<std::mutex> lock(board_.mutex_);
  board_.watched_.erase(place_);
}

double StatusBoard::rate() {
  const auto now = Clock::now();
  const int64_t samples = samples_.load(std::memory_order_relaxed);
  if (made_.empty() || made_.back().second != samples) made_.emplace_back(now, samples);
  while (made_.size() > 2 && made_.back().first - made_.front().first > kRateWindow) made_.pop_front();
  const double seconds = std::chrono::duration<double>(made_.back().first - made_.front().first).count();
  return seconds > 0 ? static_cast<double>(made_.back().second - made_.front().second) / seconds : 0;
}

RankStatus StatusBoard::now() {
  const std::lock_guard<std::mutex> lock(mutex_);
  RankStatus status = known_;
  status.phase = word(phase_.load(std::memory_order_relaxed));
  status.step = step_.load(std::memory_order_relaxed);
  status.steps = steps_.load(std::memory_order_relaxed);
  status.data_per_s = rate();
  status.cpu_s = cpu_seconds();
  status.updated = wall_seconds();
  for (const auto& awaited : watched_) {
    status.awaited = awaited();
    if (!status.awaited.call.empty()) break;
  }
  const std::ptrdiff_t index = transfer_.load(std::memory_order_relaxed);
  if (!status.awaited.call.empty() && index >= 0 && index < static_cast<std::ptrdiff_t>(transfers_.size()))
    status.transfer = transfers_[static_cast<std::size_t>(index)];
  return status;
}

void StatusBoard::run() {
  const sigset_t set = only_quit();
  const Fd signals(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  while (!stopping_) {
    write();
    std::array<pollfd, 2> polled = {{{wake_.get(), POLLIN, 0}, {signals.get(), POLLIN, 0}}};
    ::poll(polled.data(), polled.size(), kWriteMs);
    uint64_t woken = 0;
    [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &woken, sizeof woken);
    signalfd_siginfo info{};
    const bool has_come = ::read(signals.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info);
    if (std::exchange(is_asked, 0) != 0 || has_come) print();
  }
}

void StatusBoard::print() {
  const RankStatus status = now();
  std::string line = fmt::format("{} (pid {}): {}", name_of(status), status.pid, describe(status));
  if (status.checkpoint_step >= 0)
    line += fmt::format("; checkpoint of step {}, {} ago", status.checkpoint_step,
                        readable_time(status.updated - status.checkpoint_time));
  line += '\n';
  [[maybe_unused]] const ssize_t put = ::write(STDERR_FILENO, line.data(), line.size());
}

void StatusBoard::write() {
  // A reader may see it while it is written, so it keeps its length or grows; blanks at its end mean nothing.
  std::string text = nlohmann::json(now()).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() < written_) text.resize(written_, ' ');
  written_ = text.size();
  // Opened each time: on a network file system others see what was written once it is closed.
  const Fd file(::open(file_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (file) [[maybe_unused]]
    const ssize_t put = ::pwrite(file.get(), text.data(), text.size(), 0);
}

}  // namespace tutti
