// What comes of it when somebody else is where rank 0 should be, or comes as a rank.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <thread>

#include "comm/shm/greeting.h"
#include "comm/shm/shm.h"
#include "comm/shm/socket.h"
#include "support/ranks.h"

namespace tutti::test {
namespace {

using shm::Answer;
using shm::proof_of;
using ::testing::HasSubstr;

constexpr uid_t kNobody = 65534;

class Strangers : public ::testing::Test {
 protected:
  ShmOptions rank(int number) const {
    ShmOptions options;
    options.rank = number;
    options.size = 2;
    options.job = job_;
    options.connect_timeout = std::chrono::seconds(20);
    options.progress_thread = false;
    return options;
  }
  std::string refusal(int number) const {
    try {
      make_shm_communicator(rank(number));
    } catch (const CommFailed& error) {
      return error.what();
    }
    return "";
  }
  /// What rank 1 says when this answers it in rank 0's place.
  std::string refusal_of(const Answer& answer, const std::vector<int>& fds) const {
    auto listener = shm::listen_at(shm::socket_name(job_));
    if (!listener) return "the name is taken";
    std::thread false_rank_0([&] {
      if (!shm::wait_readable({listener->get()}, Clock::now() + std::chrono::seconds(20))) return;
      const auto guest = shm::accept_from(*listener);
      if (!guest) return;
      shm::receive_message(*guest);
      shm::send_message(*guest, &answer, sizeof answer, fds);
    });
    std::string text = refusal(1);
    false_rank_0.join();
    return text;
  }
  Answer accepting() const {
    Answer answer;
    answer.accepted = 1;
    answer.proof = proof_of(job_, "host");
    return answer;
  }

  const std::string job_ = fmt::format("strangers-{}-{}", ::getpid(), counter_++);
  static int counter_;
};
int Strangers::counter_ = 0;

/// A process of another user that listens under a name, until this goes.
class Squatter {
 public:
  explicit Squatter(const std::string& name) {
    int ready[2];
    if (::pipe(ready) != 0) throw Error("no pipe");
    child_ = ::fork();
    if (child_ == 0) {
      if (::setuid(kNobody) != 0) ::_exit(1);
      const auto listener = shm::listen_at(name);
      if (!listener || ::write(ready[1], "x", 1) != 1) ::_exit(1);
      while (true) ::pause();
    }
    char ignored = 0;
    ::close(ready[1]);
    is_there_ = ::read(ready[0], &ignored, 1) == 1;
    ::close(ready[0]);
  }
  Squatter(const Squatter&) = delete;
  ~Squatter() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  bool is_there() const { return is_there_; }

 private:
  pid_t child_ = 0;
  bool is_there_ = false;
};

TEST_F(Strangers, OfAnotherUserGetNothingOfARankAlthoughTheyHoldItsName) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  const Squatter squatter(shm::socket_name(job_));
  ASSERT_TRUE(squatter.is_there());
  EXPECT_THAT(refusal(1), HasSubstr(fmt::format("user {} has taken the name", kNobody)));
  EXPECT_THAT(refusal(0), HasSubstr(fmt::format("user {} has taken the name", kNobody)));
}

TEST_F(Strangers, OfAnotherUserCannotComeAsARank) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  const std::string name = shm::socket_name(job_);
  const auto results = run_ranks(RunAs::processes, 3, [&](int process) {
    if (process < 2) {
      // Rank 1 comes when the stranger has been there.
      if (process == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
      make_shm_communicator(rank(process))->barrier()->wait();
      return;
    }
    require(::setuid(kNobody) == 0, "cannot be another user");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    const Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    int status = -1;
    for (int i = 0; i < 100 && status != 0; ++i) {
      status = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length);
      if (status != 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    if (status != 0) return;  // too late; the ranks have met
    shm::Hello hello;
    hello.rank = 1;
    hello.size = 2;
    hello.proof = proof_of(job_, "guest");
    try {
      shm::send_message(socket, &hello, sizeof hello, {socket.get()});
    } catch (const CommFailed&) {
      return;  // closed already
    }
    require(!shm::receive_message(socket), "another user was answered");
  });
  EXPECT_EQ(failures(results), "");
}

TEST_F(Strangers, WhoDoNotKnowTheWholeNameAreNoRanks) {
  const auto results = run_ranks(RunAs::processes, 3, [&](int process) {
    if (process < 2) {
      // Rank 1 comes when the stranger has been there.
      if (process == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
      make_shm_communicator(rank(process))->barrier()->wait();
      return;
    }
    std::optional<Fd> socket;
    for (int i = 0; i < 100 && !socket; ++i) {
      socket = shm::connect_to(shm::socket_name(job_));
      if (!socket) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    if (!socket) return;  // too late; the ranks have met
    shm::Hello hello;
    hello.rank = 1;
    hello.size = 2;
    hello.pid = ::getpid();
    hello.proof = proof_of("another job", "guest");
    shm::send_message(*socket, &hello, sizeof hello, {socket->get()});
    const auto message = shm::receive_message(*socket);
    if (!message) return;
    Answer answer;
    require(message->data.size() == sizeof answer && message->fds.empty(), "a stranger was given something");
    std::memcpy(&answer, message->data.data(), sizeof answer);
    require(answer.accepted == 0, "a stranger was taken for a rank");
  });
  EXPECT_EQ(failures(results), "");
}

TEST_F(Strangers, AnAnswerOfOneWhoDoesNotKnowTheNameIsRefused) {
  Answer answer = accepting();
  answer.proof = proof_of("another job", "host");
  EXPECT_THAT(refusal_of(answer, {0, 0, 0}), HasSubstr("does not know its name"));
}

TEST_F(Strangers, ATextWithoutAnEndIsReadToTheEndOfItsPlace) {
  Answer answer;
  std::memset(answer.text, 'x', sizeof answer.text);
  std::memset(answer.proof.data(), 'y', answer.proof.size());
  EXPECT_EQ(refusal_of(answer, {}), std::string(sizeof answer.text, 'x'));
}

TEST_F(Strangers, MemoryThatCanShrinkOrIsTooSmallIsNotUsed) {
  const Fd unsealed(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), off_t{1} << 30), 0);
  EXPECT_THAT(refusal_of(accepting(), {unsealed.get(), 0, 0}), HasSubstr("shared memory"));
  const Fd small(::memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(small.get(), 4096), 0);
  ASSERT_EQ(::fcntl(small.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_THAT(refusal_of(accepting(), {small.get(), 0, 0}), HasSubstr("shared memory"));
}

}  // namespace
}  // namespace tutti::test
