#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace tutti::test {

/// How one rank of a test ended.
struct RankResult {
  bool ok = false;
  std::string text;  // why not
  int signal = 0;    // that killed its process
};

enum class RunAs { processes, threads };

/// Runs body(rank) for each rank at the same time, as processes forked from this one or as threads of it, and waits
/// for all. A rank is ok if its body returns and no EXPECT failed in it. To be called while this process has no other
/// threads. What takes longer than `limit` is killed (processes only).
std::vector<RankResult> run_ranks(RunAs run_as, int size, const std::function<void(int rank)>& body,
                                  std::chrono::seconds limit = std::chrono::seconds(60));

/// The texts of all ranks that failed, one line each; empty if none did. For EXPECT_EQ(failures(...), "").
std::string failures(const std::vector<RankResult>& results);

/// Throws with a text, which becomes the result of the rank.
void require(bool condition, const std::string& text);

/// Memory shared between this process and the ones it forks; zeroed.
class SharedPage {
 public:
  SharedPage();
  ~SharedPage();
  SharedPage(const SharedPage&) = delete;
  template <typename T>
  T& as() {
    return *static_cast<T*>(memory_);
  }

 private:
  void* memory_;
};

}  // namespace tutti::test
