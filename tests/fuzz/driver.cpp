// A small fuzzer without a special compiler: deterministic mutations, for a given time.
//
//   fuzz idx                     for $TUTTI_FUZZ_SECONDS, or one second
//   fuzz idx FILE…               only these inputs: to see a crash again
//   TUTTI_FUZZ_SEED=7 fuzz idx   another sequence
//
// An input may take ten seconds and a gigabyte of memory; what a command prints goes nowhere.
//
// There is no coverage to steer by; instead inputs whose outcome (mostly an error's text) is new join the corpus. An
// input that breaks the target is written to NAME.crash in the current folder.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <csignal>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "base/files.h"
#include "data/random.h"
#include "fuzz/fuzz.h"

extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));  // NOLINT: its name

namespace tutti::fuzz {

MemoryFile::MemoryFile() : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
  path_ = "/proc/self/fd/" + std::to_string(descriptor_);
}

MemoryFile::~MemoryFile() { ::close(descriptor_); }

const std::string& MemoryFile::hold(std::string_view content) {
  if (::ftruncate(descriptor_, 0) != 0 ||
      ::pwrite(descriptor_, content.data(), content.size(), 0) != static_cast<ssize_t>(content.size()))
    throw std::runtime_error("cannot write to a file in memory");
  return path_;
}

namespace {

constexpr unsigned kMostSeconds = 10;
constexpr rlim_t kMostMemory = 1 << 30;
constexpr size_t kLargestInput = 1 << 16;
constexpr size_t kLargestCorpus = 2000;

std::map<std::string, const Target*>& targets() {
  static std::map<std::string, const Target*> all;
  return all;
}

// What a signal handler needs to save the input that is at fault.
std::string current_input;
std::string crash_path;

void save_input() {
  const int file = ::open(crash_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const char text[] = "\nfuzz: this input is at fault; see the .crash file in the current folder\n";
  if (file < 0 || ::write(file, current_input.data(), current_input.size()) < 0 ||
      ::write(STDERR_FILENO, text, sizeof text - 1) < 0)
    ::_exit(2);
  ::close(file);
}

void on_signal(int signal) {
  save_input();
  ::_exit(128 + signal);
}

void watch_for_crashes() {
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(save_input);
  for (const int signal : {SIGALRM, SIGABRT}) std::signal(signal, on_signal);
  if (__sanitizer_set_death_callback == nullptr)  // sanitizers have handlers of their own, which say more
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, on_signal);
}

/// The largest part of memory that this process has had so far.
rlim_t peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<rlim_t>(usage.ru_maxrss) * 1024;
}

/// More than that is std::bad_alloc, which is no orderly end. Sanitizers reserve far more, of which they use little.
void limit_memory() {
  if (__sanitizer_set_death_callback != nullptr) return;
  const rlimit limit{kMostMemory, kMostMemory};
  ::setrlimit(RLIMIT_DATA, &limit);
}

/// For the verdict, while what commands print goes nowhere.
FILE* keep_stdout() {
  FILE* const kept = ::fdopen(::dup(STDOUT_FILENO), "w");
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (kept == nullptr || nowhere < 0 || ::dup2(nowhere, STDOUT_FILENO) < 0) std::exit(2);
  ::close(nowhere);
  return kept;
}

std::string run_one(const Target& target, std::string input) {
  current_input = std::move(input);
  ::alarm(kMostSeconds);
  std::string result = target.run(current_input);
  ::alarm(0);
  if (peak_memory() > (__sanitizer_set_death_callback != nullptr ? 3 : 1) * kMostMemory) {
    std::fprintf(stderr, "fuzz: this took %llu MB of memory\n", static_cast<unsigned long long>(peak_memory() >> 20));
    std::abort();
  }
  return result;
}

/// One random change.
void mutate(std::string& input, const std::vector<std::string>& corpus, PortableRandom& random) {
  static constexpr uint32_t kTelling[] = {0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff};
  const auto place = [&random](size_t size) { return static_cast<size_t>(random.below(size + 1)); };
  const auto run_from = [&](size_t at) {
    return static_cast<size_t>(random.below(std::min<size_t>(input.size() - at, 64) + 1));
  };
  const size_t at = place(input.size());
  switch (random.below(8)) {
    case 0:
      if (at < input.size()) input[at] = static_cast<char>(input[at] ^ 1 << random.below(8));
      break;
    case 1:
      if (at < input.size()) input[at] = static_cast<char>(random.bits());
      break;
    case 2:  // a number, in either byte order
      for (size_t i = 0, reverse = random.below(2), value = kTelling[random.below(std::size(kTelling))]; i < 4; ++i)
        if (at + i < input.size()) input[at + i] = static_cast<char>(value >> 8 * (reverse != 0 ? 3 - i : i));
      break;
    case 3:
      input.erase(at, run_from(at));
      break;
    case 4:
      input.insert(at, input.substr(at, run_from(at)));
      break;
    case 5:
      input.resize(at);
      break;
    default: {  // a piece of another input
      const std::string& other = corpus[random.below(corpus.size())];
      const size_t from = place(other.size());
      input.insert(at, other.substr(from, 1 + random.below(64)));
    }
  }
}

int fuzz_for(const Target& target, double seconds, uint64_t seed, FILE* verdict) {
  const auto start = std::chrono::steady_clock::now();
  PortableRandom random(seed);
  std::vector<std::string> corpus = target.seeds();
  std::set<std::string> outcomes;
  for (const std::string& input : corpus) outcomes.insert(run_one(target, input));
  int64_t runs = 0;
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds) {
    std::string input = corpus[random.below(corpus.size())];
    for (uint64_t changes = 1 + random.below(6); changes > 0; --changes) mutate(input, corpus, random);
    if (input.size() > kLargestInput) input.resize(kLargestInput);
    ++runs;
    std::string result = run_one(target, input);
    if (corpus.size() < kLargestCorpus && outcomes.insert(std::move(result)).second) corpus.push_back(std::move(input));
  }
  std::fprintf(verdict, "%lld inputs, %zu different outcomes, no fault, %llu MB at most\n",
               static_cast<long long>(runs), outcomes.size(), static_cast<unsigned long long>(peak_memory() >> 20));
  std::fclose(verdict);
  return 0;
}

}  // namespace

Target::Target(const char* name, Run run, Seeds seeds) : run(run), seeds(seeds) { targets()[name] = this; }

}  // namespace tutti::fuzz

int main(int argc, char** argv) {
  using namespace tutti::fuzz;
  const auto found = targets().find(argc > 1 ? argv[1] : "");
  if (found == targets().end()) {
    std::fprintf(stderr, "usage: fuzz WHAT [FILE…], where WHAT is one of");
    for (const auto& target : targets()) std::fprintf(stderr, " %s", target.first.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  const Target& target = *found->second;
  crash_path = found->first + "_fuzz.crash";
  watch_for_crashes();
  limit_memory();
  FILE* const verdict = keep_stdout();
  for (int i = 2; i < argc; ++i)
    std::fprintf(verdict, "%s: %s\n", argv[i], run_one(target, tutti::read_file(argv[i])).c_str());
  if (argc > 2) return std::fclose(verdict);
  const char* const seconds = std::getenv("TUTTI_FUZZ_SECONDS");
  const char* const seed = std::getenv("TUTTI_FUZZ_SEED");
  return fuzz_for(target, seconds != nullptr ? std::atof(seconds) : 1,
                  seed != nullptr ? std::strtoull(seed, nullptr, 10) : 1, verdict);
}
