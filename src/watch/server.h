#pragma once

#include <memory>
#include <string>

#include "watch/watch.h"

namespace tutti {

struct WatchServerOptions {
  std::string address = "127.0.0.1";
  int port = 0;       // 0: a free one
  std::string token;  // whoever has it may look; see access.h
};

/// Answers browsers, on threads of its own: "/" is the page, "/api/state" and "/api/timeline" what it asks for. Whoever
/// lacks the token is sent away, and so is, on a loopback address, who asks for another host. Connections are closed
/// after each answer, so pages that stay open hold no thread.
class WatchServer {
 public:
  /// `watch` outlives it. Throws Error where it cannot listen, or this build has no web server.
  WatchServer(Watch& watch, const WatchServerOptions& options);
  /// Ends what is under way, and stops.
  ~WatchServer();

  int port() const;
  /// False when it has stopped by itself.
  bool is_running() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tutti
