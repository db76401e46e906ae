#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>

#include "netbox/state.h"

namespace tutti::netbox {

/// A connection from node to node, each end in its own network namespace. The test's other threads stay where they are.
class Connection {
 public:
  Connection(const BoxNode& from, const BoxNode& to) {
    const int listener = in(to, [] { return ::socket(AF_INET, SOCK_STREAM, 0); });
    sender_ = in(from, [] { return ::socket(AF_INET, SOCK_STREAM, 0); });
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    ::inet_pton(AF_INET, to.address.c_str(), &address.sin_addr);
    socklen_t length = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener, any, length), 0);
    EXPECT_EQ(::listen(listener, 1), 0);
    EXPECT_EQ(::getsockname(listener, any, &length), 0);
    EXPECT_EQ(::connect(sender_, any, length), 0);
    receiver_ = ::accept(listener, nullptr, nullptr);
    ::close(listener);
  }
  ~Connection() {
    ::close(sender_);
    ::close(receiver_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void send(std::size_t bytes) const {
    const std::string data(bytes, 'x');
    EXPECT_EQ(::send(sender_, data.data(), bytes, 0), static_cast<ssize_t>(bytes));
  }
  /// Whether so many bytes come in this time.
  bool receive(std::size_t bytes, double seconds) const {
    const auto micros = static_cast<suseconds_t>(seconds * 1e6);
    const timeval limit = {micros / 1'000'000, micros % 1'000'000};
    ::setsockopt(receiver_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    std::string buffer(1 << 16, ' ');
    while (bytes > 0) {
      const ssize_t got = ::recv(receiver_, buffer.data(), std::min(bytes, buffer.size()), 0);
      if (got <= 0) return false;
      bytes -= static_cast<std::size_t>(got);
    }
    return true;
  }

 private:
  static int in(const BoxNode& node, int (*make)()) {
    int made = -1;
    std::thread([&] {
      const int space = ::open(("/run/netns/" + node.net_namespace).c_str(), O_RDONLY);
      if (::setns(space, CLONE_NEWNET) == 0) made = make();
      ::close(space);
    }).join();
    return made;
  }
  int sender_ = -1;
  int receiver_ = -1;
};

}  // namespace tutti::netbox
