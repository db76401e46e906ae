// All-reduce of float32 over Tutti's shared memory, and the floor that memory itself sets. Ranks are forked processes.
//   allreduce_bench WHAT RANKS BUDGET_S BYTES...      or, with WHAT mpi:  mpirun … allreduce_bench mpi RANKS BUDGET_S
//   BYTES...
// WHAT: shm (memory from allocate()), staged (ordinary memory), thread (allocate(), with the progress thread), fresh
// (like shm, but each rank has just written its data, so that no rank has what it needs in its cache from the
// all-reduce before), or floor. Checks the result first, then prints one line of JSON per size: see timing.h.

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "comm/mpi/mpi.h"
#include "comm/shm/shm.h"
#include "timing.h"

namespace {

using namespace bench;
using tutti::Communicator;
using tutti::DataType;

constexpr int kBatches = 5;

struct Job {
  std::string what;
  int ranks = 2;
  double budget_s = 0.1;
  std::vector<std::size_t> bytes;
};

[[noreturn]] void fail(const std::string& text) {
  std::fprintf(stderr, "allreduce_bench: %s\n", text.c_str());
  _exit(1);
}

/// Each rank on a processor of its own, if there are enough.
void pin(int rank, int ranks) {
  cpu_set_t all;
  sched_getaffinity(0, sizeof all, &all);
  if (CPU_COUNT(&all) < ranks) return;
  int seen = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &all) || seen++ != rank) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

/// Time per operation of each batch, as the slowest rank saw it. `operation` is a collective or works on its own.
template <typename Operation>
std::vector<double> measure(Communicator& comm, double budget_s, const Operation& operation) {
  const auto slowest = [&](double mine) {
    std::vector<int64_t> all(static_cast<std::size_t>(comm.size()), 0);
    all[static_cast<std::size_t>(comm.rank())] = static_cast<int64_t>(mine * 1e12);
    comm.all_reduce_sum({all.data(), all.size(), DataType::i64})->wait();
    return static_cast<double>(*std::max_element(all.begin(), all.end())) * 1e-12;
  };
  for (int i = 0; i < 3; ++i) operation();
  comm.barrier()->wait();
  const double begin = now_s();
  for (int i = 0; i < 3; ++i) operation();
  // All ranks agree on the number, because they agree on the time.
  const int times = repetitions(slowest((now_s() - begin) / 3), budget_s / kBatches);
  std::vector<double> samples;
  for (int batch = 0; batch < kBatches; ++batch) {
    comm.barrier()->wait();
    const double start = now_s();
    for (int i = 0; i < times; ++i) operation();
    samples.push_back(slowest((now_s() - start) / times));
  }
  return samples;
}

/// Only the all-reduces are timed, not the writing before each.
std::vector<double> measure_fresh(Communicator& comm, double budget_s, tutti::Span span) {
  double spent = 0;
  const auto operation = [&] {
    std::memset(span.data, 0, span.bytes());
    comm.barrier()->wait();
    const double start = now_s();
    comm.all_reduce_sum(span)->wait();
    spent += now_s() - start;
  };
  for (int i = 0; i < 3; ++i) operation();
  int64_t one_ns = static_cast<int64_t>(spent / 3 * 1e9);
  comm.broadcast({&one_ns, 1, DataType::i64}, 0)->wait();
  const int times = repetitions(static_cast<double>(one_ns) * 1e-9, budget_s / kBatches / 2);
  std::vector<double> samples;
  for (int batch = 0; batch < kBatches; ++batch) {
    spent = 0;
    for (int i = 0; i < times; ++i) operation();
    samples.push_back(spent / times);  // ranks begin and end together, so that rank 0 sees what the slowest does
  }
  return samples;
}

void check_and_measure(Communicator& comm, const Job& job, float* data, std::size_t bytes) {
  const std::size_t count = bytes / sizeof(float);
  const tutti::Span span{data, count, DataType::f32};
  for (std::size_t i = 0; i < count; ++i) data[i] = input_at(comm.rank(), i);
  comm.all_reduce_sum(span)->wait();
  for (std::size_t i = 0; i < count; ++i) {
    if (data[i] != sum_at(comm.size(), i)) fail("wrong sum at element " + std::to_string(i));
  }
  std::memset(data, 0, bytes);  // sums of zeros stay finite however often they are repeated
  const auto samples = job.what == "fresh" ? measure_fresh(comm, job.budget_s, span)
                                           : measure(comm, job.budget_s, [&] { comm.all_reduce_sum(span)->wait(); });
  if (comm.rank() == 0) print_result(job.what.c_str(), comm.size(), bytes, samples);
}

void add_everywhere_generic(float* data, std::size_t count, float addend) {
  for (std::size_t i = 0; i < count; ++i) data[i] += addend;
}

#ifdef __x86_64__
__attribute__((target("avx2"))) void add_everywhere_avx2(float* data, std::size_t count, float addend) {
  for (std::size_t i = 0; i < count; ++i) data[i] += addend;
}
__attribute__((target("avx512f,prefer-vector-width=512"))) void add_everywhere_avx512(float* data, std::size_t count,
                                                                                      float addend) {
  for (std::size_t i = 0; i < count; ++i) data[i] += addend;
}
#endif

/// Reads and writes everything once, as fast as this machine can.
void add_everywhere(float* data, std::size_t count, float addend) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) return add_everywhere_avx512(data, count, addend);
  if (__builtin_cpu_supports("avx2")) return add_everywhere_avx2(data, count, addend);
#endif
  add_everywhere_generic(data, count, addend);
}

/// The least that any all-reduce in place can do: P·n bytes read and P·n written in all, so n read and n written by
/// each of P processes. Each rank reads and writes its own n bytes; nothing is exchanged and nobody waits.
void measure_floor(Communicator& comm, const Job& job, float* data, std::size_t bytes) {
  const std::size_t count = bytes / sizeof(float);
  std::memset(data, 0, bytes);
  float addend = 0;
  const auto samples = measure(comm, job.budget_s, [&] {
    asm volatile("" : "+m"(addend) : "r"(data) : "memory");  // not to be left out, nor merged with the next one
    add_everywhere(data, count, addend);
  });
  if (comm.rank() == 0) print_result(job.what.c_str(), comm.size(), bytes, samples);
}

void run_rank(const Job& job, Communicator& comm) {
  const std::size_t most = *std::max_element(job.bytes.begin(), job.bytes.end());
  // The same memory in all cases but one; "staged" must not lie in shared memory.
  std::vector<float> own(job.what == "staged" ? most / sizeof(float) : 0);
  float* const data = job.what == "staged" ? own.data() : static_cast<float*>(comm.allocate(most));
  for (const std::size_t bytes : job.bytes) {
    if (job.what == "floor")
      measure_floor(comm, job, data, bytes);
    else
      check_and_measure(comm, job, data, bytes);
  }
}

void run_shm_rank(const Job& job, int rank, pid_t parent) {
  pin(rank, job.ranks);
  tutti::ShmOptions options;
  options.rank = rank;
  options.size = job.ranks;
  options.job = "allreduce-bench-" + std::to_string(parent);
  options.progress_thread = job.what == "thread";
  run_rank(job, *tutti::make_shm_communicator(options));
}

int run_mpi_rank(const Job& job) {
  tutti::MpiOptions options;
  options.rank = tutti::start_mpi().rank;
  options.progress_thread = false;
  run_rank(job, *tutti::make_mpi_communicator(options));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
#ifndef NDEBUG
  std::fprintf(stderr, "allreduce_bench: WARNING: this is a debug build, its times mean nothing\n");
#endif
  if (argc < 5) fail("usage: allreduce_bench shm|staged|thread|floor|mpi RANKS BUDGET_S BYTES...");
  Job job{argv[1], std::atoi(argv[2]), std::atof(argv[3]), {}};
  for (int i = 4; i < argc; ++i) job.bytes.push_back(std::strtoull(argv[i], nullptr, 10));
  if (job.what == "mpi") return run_mpi_rank(job);
  const pid_t parent = getpid();
  std::vector<pid_t> children;
  for (int rank = 0; rank < job.ranks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      try {
        run_shm_rank(job, rank, parent);
      } catch (const std::exception& error) {
        fail(error.what());
      }
      _exit(0);
    }
    children.push_back(pid);
  }
  int verdict = 0;
  for (const pid_t pid : children) {
    int status = 0;
    waitpid(pid, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) verdict = 1;
  }
  return verdict;
}
