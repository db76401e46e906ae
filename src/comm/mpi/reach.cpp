#include <thread>

#include "base/clock.h"
#include "comm/mpi/deadline.h"
#include "comm/mpi/mpi.h"
#include "comm/mpi/session.h"
#include "comm/nodes.h"

namespace tutti {
namespace {

constexpr int kTag = 32750;  // above those that Session::join uses

std::string join_numbers(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

/// A word to and from one other process. Never freed when it stays unanswered: MPI may still write to it.
struct Greeting {
  int process = 0, sent = 0, received = 0;
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

}  // namespace

void reach_all_processes(std::chrono::milliseconds timeout) {
  const auto start = Clock::now();
  const double limit_s = std::chrono::duration<double>(timeout).count();
  const mpi::Deadline deadline(timeout * 2, 1,
                               fmt::format("MPI has not started on {} after {:g} s: a process of the job has "
                                           "not come. Those that have come say so; look after the others.",
                                           this_host(), 2 * limit_s));
  mpi::Session& session = mpi::Session::get();
  std::vector<Greeting*> open;
  for (int process = 0; process < session.size(); ++process) {
    if (process == session.rank()) continue;
    auto* const greeting = new Greeting();  // NOLINT(cppcoreguidelines-owning-memory): see there
    greeting->process = process;
    mpi::check(MPI_Irecv(&greeting->received, 1, MPI_INT, process, kTag, MPI_COMM_WORLD, &greeting->requests[0]),
               "MPI_Irecv");
    mpi::check(MPI_Isend(&greeting->sent, 1, MPI_INT, process, kTag, MPI_COMM_WORLD, &greeting->requests[1]),
               "MPI_Isend");
    open.push_back(greeting);
  }
  while (!open.empty()) {
    for (std::size_t i = 0; i < open.size();) {
      int is_done = 0;
      mpi::check(MPI_Testall(2, open[i]->requests, &is_done, MPI_STATUSES_IGNORE), "MPI_Testall");
      if (is_done != 0) {
        delete open[i];  // NOLINT(cppcoreguidelines-owning-memory)
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    if (open.empty()) break;
    if (seconds_since(start) > limit_s) {
      session.give_up();
      std::vector<int> missing;
      missing.reserve(open.size());
      for (const Greeting* greeting : open) missing.push_back(greeting->process);
      throw CommFailed(
          "rank {} of {} on {}: rank{} {} did not answer within {:g} s. Check that these run, and that no firewall "
          "stands between the machines.",
          session.rank(), session.size(), this_host(), missing.size() == 1 ? "" : "s", join_numbers(missing), limit_s);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace tutti
