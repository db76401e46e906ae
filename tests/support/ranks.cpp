#include "support/ranks.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <thread>

#include "base/clock.h"

namespace tutti::test {
namespace {

std::string run_body(int rank, const std::function<void(int)>& body) {
  try {
    body(rank);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "threw something that is no std::exception";
  }
}

struct Child {
  pid_t pid = -1;
  int report = -1;  // read end of a pipe that carries its text
};

[[noreturn]] void be_rank(int rank, int report, const std::function<void(int)>& body) {
  std::string text = run_body(rank, body);
  if (text.empty() && testing::Test::HasFailure()) text = "an EXPECT failed, see above";
  std::fflush(nullptr);
  [[maybe_unused]] const auto written = write(report, text.data(), text.size());
  _exit(text.empty() ? 0 : 1);
}

std::vector<Child> fork_ranks(int size, const std::function<void(int)>& body) {
  std::vector<Child> children;
  std::fflush(nullptr);  // or each child would print it again
  for (int rank = 0; rank < size; ++rank) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("cannot create a pipe");
    const pid_t pid = fork();
    if (pid < 0) throw std::runtime_error("cannot fork");
    if (pid == 0) {
      close(ends[0]);
      for (const Child& sibling : children) close(sibling.report);
      be_rank(rank, ends[1], body);
    }
    close(ends[1]);
    children.push_back({pid, ends[0]});
  }
  return children;
}

std::vector<RankResult> run_processes(int size, const std::function<void(int)>& body, std::chrono::seconds limit) {
  std::vector<Child> children = fork_ranks(size, body);
  std::vector<RankResult> results(children.size());
  const auto deadline = Clock::now() + limit;
  bool is_late = false;
  for (std::size_t i = 0; i < children.size(); ++i) {
    char buffer[4096];
    while (true) {
      pollfd polled{children[i].report, POLLIN, 0};
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
      if (!is_late && poll(&polled, 1, static_cast<int>(std::max<int64_t>(left, 0))) == 0) {
        is_late = true;
        for (const Child& child : children) kill(child.pid, SIGKILL);
      }
      const ssize_t n = read(children[i].report, buffer, sizeof buffer);
      if (n <= 0) break;
      results[i].text.append(buffer, static_cast<std::size_t>(n));
    }
    close(children[i].report);
    int status = 0;
    waitpid(children[i].pid, &status, 0);
    results[i].ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (WIFSIGNALED(status)) {
      results[i].signal = WTERMSIG(status);
      results[i].text +=
          is_late ? "had not finished in time" : std::string("killed by ") + strsignal(results[i].signal);
    } else if (!results[i].ok && results[i].text.empty()) {
      results[i].text = "exited with " + std::to_string(WEXITSTATUS(status));
    }
  }
  return results;
}

std::vector<RankResult> run_threads(int size, const std::function<void(int)>& body) {
  std::vector<RankResult> results(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      RankResult& result = results[static_cast<std::size_t>(rank)];
      result.text = run_body(rank, body);
      result.ok = result.text.empty();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

}  // namespace

std::vector<RankResult> run_ranks(RunAs run_as, int size, const std::function<void(int)>& body,
                                  std::chrono::seconds limit) {
  return run_as == RunAs::processes ? run_processes(size, body, limit) : run_threads(size, body);
}

std::string failures(const std::vector<RankResult>& results) {
  std::string all;
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    if (!results[rank].ok) all += "rank " + std::to_string(rank) + ": " + results[rank].text + "\n";
  }
  return all;
}

void require(bool condition, const std::string& text) {
  if (!condition) throw std::runtime_error(text);
}

SharedPage::SharedPage() : memory_(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
  if (memory_ == MAP_FAILED) throw std::runtime_error("cannot map a page");
}

SharedPage::~SharedPage() { munmap(memory_, 4096); }

}  // namespace tutti::test
