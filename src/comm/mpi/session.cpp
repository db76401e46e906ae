#include "comm/mpi/session.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>

#include "base/exit_note.h"
#include "comm/mpi/deadline.h"
#include "comm/nodes.h"

namespace tutti::mpi {
namespace {

// A rank that ends badly waits so long, for the others to say what they saw: mpirun kills them when the first one ends.
constexpr std::chrono::milliseconds kLastWords{700};

// Processes may take so long to be started, on busy machines and from slow disks, whatever else a time-out is set to.
constexpr std::chrono::minutes kSlowStart{1};

std::string stuck(const char* what, std::chrono::milliseconds limit) {
  return fmt::format(
      "MPI did not {} on {} within {:g} s: a process of the job has stopped or has not come. Those that "
      "have come say so; look after the others.",
      what, this_host(), std::chrono::duration<double>(limit).count());
}

MPI_Comm copy(MPI_Comm comm) {
  MPI_Comm result = MPI_COMM_NULL;
  check(MPI_Comm_dup(comm, &result), "MPI_Comm_dup");
  return result;
}

int tag_bits_of(MPI_Comm comm) {
  int* largest = nullptr;
  int has_it = 0;
  check(MPI_Comm_get_attr(comm, MPI_TAG_UB, &largest, &has_it), "MPI_Comm_get_attr");
  int bits = 15;  // what the standard promises
  while (has_it != 0 && bits < 30 && *largest >= (int64_t{1} << (bits + 1)) - 1) ++bits;
  return bits;
}

/// Open MPI's TCP asks the receiver before it sends a message of more than 64 KB, and the answer queues up behind what
/// the other way carries. Collectives cut their messages shorter than that; those to parameter servers have a receiver
/// waiting for them, so that none need be asked for. What a person has set stays; other kinds of MPI do not look at it.
void send_without_asking() {
  const std::string most = std::to_string((4 << 20) + (64 << 10));  // a partition of the usual size, and its header
  for (const char* limit : {"eager_limit", "rndv_eager_limit", "max_send_size"})
    ::setenv((std::string("OMPI_MCA_btl_tcp_") + limit).c_str(), most.c_str(), 0);
  // Buffers of that size are made two at a time, instead of 32.
  for (const char* count : {"free_list_num", "free_list_inc"})
    ::setenv((std::string("OMPI_MCA_btl_tcp_") + count).c_str(), "2", 0);
}

}  // namespace

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw CommFailed("{}: {}", what, std::string(text, static_cast<std::size_t>(length)));
}

Session& Session::get(std::chrono::milliseconds timeout) {
  static Session session(timeout);
  return session;
}

Session::Session(std::chrono::milliseconds timeout)
    : limit_(timeout.count() == 0 ? timeout : std::max<std::chrono::milliseconds>(timeout, kSlowStart)) {
  int is_running = 0, provided = 0;
  MPI_Initialized(&is_running);
  if (is_running == 0) {
    send_without_asking();
    const Deadline deadline(limit_, kExitPeerFailed, stuck("start", limit_));
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
    is_ours_ = true;
  } else {
    MPI_Query_thread(&provided);
  }
  // Servers beside workers, and progress beside computation, are threads that call MPI at the same time.
  if (provided < MPI_THREAD_MULTIPLE)
    throw UsageError("this MPI does not allow several threads at once (MPI_THREAD_MULTIPLE), which Tutti needs");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

Session::~Session() {
  int is_over = 0;
  MPI_Finalized(&is_over);
  if (!is_ours_ || is_over != 0) return;
  // MPI_Finalize waits for all processes, which after a failure may be for ever.
  if (given_up_)
    std::this_thread::sleep_for(kLastWords);
  else {
    const Deadline deadline(limit_, kExitPeerFailed, stuck("end", limit_));
    MPI_Finalize();
  }
}

std::shared_ptr<RankGroup> Session::join(const std::string& job, const std::vector<int>& processes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (auto known = groups_[job].lock()) return known;

  std::vector<int> members(processes);
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
  const Deadline deadline(limit_, kExitPeerFailed, stuck("join all processes", limit_));
  auto group = std::make_shared<RankGroup>();
  group->in_job = processes;
  std::vector<int> seen(members.size(), 0);
  for (const int process : processes) {
    const auto index =
        static_cast<std::size_t>(std::lower_bound(members.begin(), members.end(), process) - members.begin());
    if (process < 0 || process >= size_ || seen[index] == 2)
      throw Error("a group of ranks cannot have process {} (for the {}th time) among {} processes", process,
                  seen[index] + 1, size_);
    group->process_of.push_back(static_cast<int>(index));
    group->is_second.push_back(seen[index]++);
  }
  MPI_Group world = MPI_GROUP_NULL, wanted = MPI_GROUP_NULL;
  check(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
  check(MPI_Group_incl(world, static_cast<int>(members.size()), members.data(), &wanted), "MPI_Group_incl");
  const int tag = static_cast<int>(std::hash<std::string>{}(job) % 32749);
  check(MPI_Comm_create_group(MPI_COMM_WORLD, wanted, tag, &group->collectives), "MPI_Comm_create_group");
  MPI_Group_free(&world);
  MPI_Group_free(&wanted);
  MPI_Comm_set_errhandler(group->collectives, MPI_ERRORS_RETURN);  // the copies inherit it
  group->control = copy(group->collectives);
  group->messages[0] = copy(group->collectives);
  group->messages[1] = copy(group->collectives);
  group->tag_bits = tag_bits_of(group->collectives);
  groups_[job] = group;
  return group;
}

}  // namespace tutti::mpi
