#include "comm/shm/rendezvous.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>

#include "comm/shm/greeting.h"

namespace tutti::shm {
namespace {

// Rank 0 decides that the time is up and tells the others; they give it this much longer.
constexpr std::chrono::seconds kGrace{3};

// Who has said it, in a Proof.
constexpr const char* kOfGuest = "guest";
constexpr const char* kOfHost = "host";

struct Pipe {
  Fd read_end, write_end;
};

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw_errno("cannot create a pipe");
  return {Fd(ends[0]), Fd(ends[1])};
}

Hello own_hello(const ShmOptions& options) {
  Hello hello;
  hello.rank = options.rank;
  hello.size = options.size;
  hello.pid = getpid();
  sched_getaffinity(0, sizeof hello.cpus, &hello.cpus);
  hello.proof = proof_of(options.job, kOfGuest);
  return hello;
}

/// Rank 0's side.
class Host {
 public:
  explicit Host(const ShmOptions& options)
      : options_(options), deadline_(Clock::now() + options.connect_timeout), guests_(options.size) {}

  Meeting run() {
    if (options_.size == 1) return hand_out();
    auto listener = listen_at(socket_name(options_.job));
    if (!listener) {
      refuse_strangers();
      throw CommFailed(
          "another rank 0 of job \"{}\" is waiting for its ranks on this machine: give each run its own job name.",
          options_.job);
    }
    listener_ = std::move(*listener);
    while (present_ < options_.size) wait_for_somebody();
    // Closed before the answers go out: a rank that already comes for the next group must not end up here.
    listener_.close();
    return hand_out();
  }

 private:
  struct Guest {
    Fd socket;
    Fd lifeline;
    Hello hello;
    bool present() const { return static_cast<bool>(socket); }
  };

  /// Another user can take a name that can be guessed.
  void refuse_strangers() {
    try {
      connect_to(socket_name(options_.job));
    } catch (const ForeignPeer& peer) {
      throw CommFailed("rank 0 cannot meet its ranks: {}", peer.what());
    }
  }

  void wait_for_somebody() {
    std::vector<int> fds{listener_.get()};
    for (const Fd& socket : strangers_) fds.push_back(socket.get());
    for (const Guest& guest : guests_) {
      if (guest.present()) fds.push_back(guest.socket.get());
    }
    if (!wait_readable(fds, deadline_)) refuse_all(missing_text());
    const auto is_ready = [](const Fd& fd) { return wait_readable({fd.get()}, Clock::now()); };
    if (is_ready(listener_)) {
      if (auto stranger = accept_from(listener_)) strangers_.push_back(std::move(*stranger));
    }
    for (std::size_t i = strangers_.size(); i-- > 0;) {
      if (!is_ready(strangers_[i])) continue;
      Fd stranger = std::move(strangers_[i]);
      strangers_.erase(strangers_.begin() + static_cast<std::ptrdiff_t>(i));
      welcome(std::move(stranger));
    }
    for (const Guest& guest : guests_) {
      // A guest says nothing after its hello: it is gone.
      if (guest.present() && is_ready(guest.socket)) {
        refuse_all(fmt::format("rank {} of {} (pid {}) went away before all ranks had come.", guest.hello.rank,
                               options_.size, guest.hello.pid));
      }
    }
  }

  void welcome(Fd socket) {
    std::optional<Message> message = receive_message(socket);
    if (!message || message->data.size() < 2 * sizeof(uint32_t)) return;
    Hello hello;
    std::memcpy(&hello, message->data.data(), std::min(sizeof hello, message->data.size()));
    if (hello.magic != kMagic) return;
    const auto refuse = [&](const std::string& text) {
      send_refusal(socket, text);
      refuse_all(text);
    };
    if (hello.version != kVersion || message->data.size() != sizeof hello || message->fds.size() != 1) {
      refuse(fmt::format("a rank of job \"{}\" is another version of Tutti ({}) than rank 0 ({}).", options_.job,
                         hello.version, kVersion));
    }
    if (hello.proof != proof_of(options_.job, kOfGuest)) {
      // Whoever this is, the job goes on without it.
      send_refusal(socket, fmt::format("pid {} came to job \"{}\" without knowing its name.", hello.pid, options_.job));
      return;
    }
    if (hello.size != options_.size || hello.rank < 1 || hello.rank >= options_.size) {
      refuse(fmt::format("pid {} came as rank {} of {}, but rank 0 (pid {}) was started for {} ranks.", hello.pid,
                         hello.rank, hello.size, getpid(), options_.size));
    }
    Guest& guest = guests_[static_cast<std::size_t>(hello.rank)];
    if (guest.present()) {
      refuse(fmt::format("two processes came as rank {} of {}: pids {} and {}.", hello.rank, options_.size,
                         guest.hello.pid, hello.pid));
    }
    guest.hello = hello;
    guest.lifeline = std::move(message->fds[0]);
    guest.socket = std::move(socket);
    ++present_;
  }

  Meeting hand_out() {
    Meeting meeting;
    meeting.file = Segment::create_file(options_.size);
    Pipe own = make_pipe();
    guests_[0].hello = own_hello(options_);
    guests_[0].lifeline = std::move(own.read_end);
    meeting.own_lifeline = std::move(own.write_end);
    {
      Segment segment(Fd(dup(meeting.file.get())), 0, options_.size);
      for (const Guest& guest : guests_) {
        segment.state(guest.hello.rank).pid = guest.hello.pid;
        segment.state(guest.hello.rank).cpus = guest.hello.cpus;
      }
    }
    std::vector<int> fds{meeting.file.get()};
    for (const Guest& guest : guests_) fds.push_back(guest.lifeline.get());
    Answer answer;
    answer.accepted = 1;
    answer.proof = proof_of(options_.job, kOfHost);
    for (const Guest& guest : guests_) {
      // Somebody who is gone by now is noticed by its lifeline.
      if (guest.present()) send_message(guest.socket, &answer, sizeof answer, fds);
    }
    for (Guest& guest : guests_) meeting.lifelines.push_back(std::move(guest.lifeline));
    meeting.lifelines[0].close();
    return meeting;
  }

  std::string missing_text() const {
    std::string ranks;
    int count = 0;
    for (int r = 1; r < options_.size; ++r) {
      if (guests_[static_cast<std::size_t>(r)].present()) continue;
      ranks += fmt::format("{}{}", count++ == 0 ? "" : ", ", r);
    }
    return fmt::format("{} {} of {} did not come to job \"{}\" within {:.1f} s.", count == 1 ? "rank" : "ranks", ranks,
                       options_.size, options_.job, std::chrono::duration<double>(options_.connect_timeout).count());
  }

  static void send_refusal(const Fd& socket, const std::string& text) {
    Answer answer;
    std::strncpy(answer.text, text.c_str(), sizeof(answer.text) - 1);
    send_message(socket, &answer, sizeof answer, {});
  }

  [[noreturn]] void refuse_all(const std::string& text) {
    for (const Guest& guest : guests_) {
      if (guest.present()) send_refusal(guest.socket, text);
    }
    throw CommFailed(text);
  }

  const ShmOptions& options_;
  Clock::time_point deadline_;
  Fd listener_;
  std::vector<Fd> strangers_;  // connected, but have not said hello
  std::vector<Guest> guests_;  // by rank
  int present_ = 1;            // rank 0 itself
};

std::optional<Fd> connect_as_guest(const std::string& name, const ShmOptions& options) {
  try {
    return connect_to(name);
  } catch (const ForeignPeer& peer) {
    throw CommFailed("rank {} of {} cannot meet rank 0: {}", options.rank, options.size, peer.what());
  }
}

/// The side of all other ranks.
Meeting join(const ShmOptions& options) {
  const std::string name = socket_name(options.job);
  const auto deadline = Clock::now() + options.connect_timeout;
  Pipe own = make_pipe();
  const Hello hello = own_hello(options);
  while (true) {
    const std::optional<Fd> socket = connect_as_guest(name, options);
    if (socket && send_message(*socket, &hello, sizeof hello, {own.read_end.get()})) {
      if (!wait_readable({socket->get()}, Clock::now() + options.connect_timeout + kGrace)) {
        throw CommFailed("rank {} of {}: rank 0 of job \"{}\" took the connection but does not answer.", options.rank,
                         options.size, options.job);
      }
      std::optional<Message> message = receive_message(*socket);
      if (message && message->data.size() == sizeof(Answer)) {
        Answer answer;
        std::memcpy(&answer, message->data.data(), sizeof answer);
        if (answer.accepted == 0)
          throw CommFailed("{}", std::string(answer.text, strnlen(answer.text, sizeof answer.text)));
        if (answer.proof != proof_of(options.job, kOfHost)) {
          throw CommFailed("rank {} of {}: who answers for rank 0 of job \"{}\" does not know its name.", options.rank,
                           options.size, options.job);
        }
        if (message->fds.size() != static_cast<std::size_t>(options.size) + 1) {
          throw CommFailed("rank {} of {} was not given all file descriptors: raise the limit (ulimit -n).",
                           options.rank, options.size);
        }
        Meeting meeting;
        meeting.file = std::move(message->fds[0]);
        meeting.own_lifeline = std::move(own.write_end);
        for (std::size_t i = 1; i < message->fds.size(); ++i) meeting.lifelines.push_back(std::move(message->fds[i]));
        meeting.lifelines[static_cast<std::size_t>(options.rank)].close();
        return meeting;
      }
      // Closed without an answer: this was the end of an earlier group of the same name. Try again.
    }
    if (Clock::now() >= deadline) {
      throw CommFailed("rank {} of {}: rank 0 did not come to job \"{}\" within {:.1f} s.", options.rank, options.size,
                       options.job, std::chrono::duration<double>(options.connect_timeout).count());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace

Meeting meet(const ShmOptions& options) { return options.rank == 0 ? Host(options).run() : join(options); }

}  // namespace tutti::shm
