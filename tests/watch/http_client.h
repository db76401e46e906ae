#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <string>

#include "base/fd.h"

namespace tutti {

struct HttpAnswer {
  int status = 0;  // 0: none came
  std::string head, body;
};

/// A connection to a port of 127.0.0.1; empty where there is none.
inline Fd connect_to(int port) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) return {};
  return socket;
}

/// Sends a request as it stands and reads what comes until the other side closes.
inline HttpAnswer talk(int port, const std::string& request) {
  const Fd socket = connect_to(port);
  if (!socket) return {};
  ::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL);
  std::string text;
  std::array<char, 65536> buffer;
  for (ssize_t got = 0; (got = ::recv(socket.get(), buffer.data(), buffer.size(), 0)) > 0;)
    text.append(buffer.data(), static_cast<std::size_t>(got));
  const std::size_t end = text.find("\r\n\r\n");
  if (text.rfind("HTTP/1.1 ", 0) != 0 || end == std::string::npos) return {};
  return {std::stoi(text.substr(9, 3)), text.substr(0, end), text.substr(end + 4)};
}

inline HttpAnswer get(int port, const std::string& path, const std::string& headers = "Host: 127.0.0.1\r\n") {
  return talk(port, "GET " + path + " HTTP/1.1\r\n" + headers + "\r\n");
}

}  // namespace tutti
