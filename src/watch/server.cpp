#include "watch/server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <string_view>
#include <thread>

#include "base/build_info.h"
#include "report/page_assets.h"
#include "tutti/error.h"
#include "watch/access.h"
#include "watch/watch_assets.h"

namespace tutti {
namespace {

using httplib::Request;
using httplib::Response;
using nlohmann::json;

constexpr int kUnauthorized = 401, kForbidden = 403, kNotFound = 404, kSeeOther = 303, kServerError = 500;
// A browser keeps connections ready that it may not use; each holds a thread until it is closed.
constexpr int kThreads = 16, kSilentS = 1, kReadS = 3, kMostWaiting = 512;

const httplib::Headers kHeaders = {
    // Everything comes from this server, and nothing runs or is drawn that does not come as a file.
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
     "form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cache-Control", "no-store"}};

void answer(Response& response, const json& value) {
  // Names of hosts and files need not be UTF-8.
  response.set_content(value.dump(-1, ' ', false, json::error_handler_t::replace), "application/json");
}

void refuse(Response& response, int status, const std::string& why) {
  response.status = status;
  response.set_content(why + "\n", "text/plain; charset=utf-8");
}

/// What the page asks for: "run" and "have" as often as it shows runs, in the same order.
std::vector<Watch::Wanted> wanted_runs(const Request& request) {
  std::vector<Watch::Wanted> wanted;
  for (std::size_t i = 0; i < request.get_param_value_count("run"); ++i)
    wanted.push_back({request.get_param_value("run", i),
                      parse_held_rows(i < request.get_param_value_count("have") ? request.get_param_value("have", i)
                                                                                : std::string())});
  return wanted;
}

std::string bearer_of(const Request& request) {
  const std::string header = request.get_header_value("Authorization"), prefix = "Bearer ";
  return header.rfind(prefix, 0) == 0 ? header.substr(prefix.size()) : "";
}

}  // namespace

struct WatchServer::Impl {
  Impl(Watch& watched, const WatchServerOptions& wanted) : watch(watched), options(wanted) {}

  /// Whether the request may go on; otherwise it has been answered.
  bool admit(const Request& request, Response& response) const {
    if (is_loopback(options.address) && !names_loopback(request.get_header_value("Host"))) {
      refuse(response, kForbidden, "this server is for this machine alone: ask for 127.0.0.1 or localhost");
      return false;
    }
    const std::string in_url = request.get_param_value("token");
    if (!in_url.empty() && is_token(in_url, options.token)) {
      response.set_header("Set-Cookie",
                          fmt::format("{}={}; HttpOnly; SameSite=Lax; Path=/", cookie_name(), options.token));
      if (request.path != "/") return true;
      response.status = kSeeOther;  // so that it does not stay in the address bar
      response.set_header("Location", "./");
      return false;
    }
    for (const std::string& given : {cookie_of(request.get_header_value("Cookie"), cookie_name()), bearer_of(request)})
      if (!given.empty() && is_token(given, options.token)) return true;
    refuse(response, kUnauthorized, "open the address that `tutti watch` has printed: it ends in ?token=…");
    return false;
  }

  /// Cookies do not tell ports apart.
  std::string cookie_name() const { return fmt::format("tutti-watch-{}", port); }

  void set_up() {
    server.set_default_headers(kHeaders);
    server.set_keep_alive_max_count(1);
    server.set_keep_alive_timeout(kSilentS);
    server.set_read_timeout(kReadS);
    server.set_payload_max_length(0);
    server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    // By default two servers could share a port, and a browser would talk to either.
    server.set_socket_options([this](socket_t socket) {
      listening = socket;
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    server.set_pre_routing_handler([this](const Request& request, Response& response) {
      return admit(request, response) ? httplib::Server::HandlerResponse::Unhandled
                                      : httplib::Server::HandlerResponse::Handled;
    });
    const auto file = [this](const char* path, std::string_view text, const char* type) {
      server.Get(path, [text, type](const Request&, Response& response) {
        response.set_content(text.data(), text.size(), type);
      });
    };
    file("/", kWatchPage, "text/html; charset=utf-8");
    file("/watch\\.css", kWatchStyle, "text/css; charset=utf-8");
    file("/watch\\.js", kWatchScript, "text/javascript; charset=utf-8");
    file("/chart\\.js", kChartLibrary, "text/javascript; charset=utf-8");
    server.Get("/api/state", [this](const Request& request, Response& response) {
      json state = watch.state(wanted_runs(request));
      state["version"] = build_version();
      answer(response, state);
    });
    server.Get("/api/timeline", [this](const Request& request, Response& response) {
      try {
        answer(response, watch.timeline(request.get_param_value("run")));
      } catch (const tutti::Error& problem) {
        refuse(response, kNotFound, problem.what());
      }
    });
    server.set_exception_handler([](const Request&, Response& response, const std::exception_ptr& problem) {
      try {
        std::rethrow_exception(problem);
      } catch (const std::exception& error) {
        refuse(response, kServerError, error.what());
      } catch (...) {
        refuse(response, kServerError, "something went wrong");
      }
    });
  }

  void listen() {
    errno = 0;
    port = options.port == 0 ? server.bind_to_any_port(options.address) : options.port;
    if (port <= 0 || (options.port != 0 && !server.bind_to_port(options.address, port)))
      throw tutti::Error(
          "cannot listen on {} port {}{}. Is it taken, or not this machine's? Try --port 0 for a free one",
          options.address, options.port, errno == 0 ? "" : fmt::format(": {}", std::strerror(errno)));
    // The library lets five wait; many pages that ask at once would be turned away, and try again seconds later.
    ::listen(listening, kMostWaiting);
    thread = std::thread([this] {
      server.listen_after_bind();
      is_over = true;
    });
  }

  Watch& watch;
  const WatchServerOptions options;
  httplib::Server server;
  socket_t listening = -1;  // the server's
  int port = 0;
  std::atomic<bool> is_over{false};
  std::thread thread;  // last: it uses the others
};

WatchServer::WatchServer(Watch& watch, const WatchServerOptions& options)
    : impl_(std::make_unique<Impl>(watch, options)) {
  impl_->set_up();
  impl_->listen();
}

WatchServer::~WatchServer() {
  // It cannot be stopped before it has begun.
  while (!impl_->server.is_running() && !impl_->is_over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  impl_->server.stop();
  impl_->thread.join();
}

int WatchServer::port() const { return impl_->port; }
bool WatchServer::is_running() const { return !impl_->is_over; }

}  // namespace tutti
