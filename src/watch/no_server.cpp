#include "tutti/error.h"
#include "watch/server.h"

namespace tutti {

struct WatchServer::Impl {};

WatchServer::WatchServer(Watch&, const WatchServerOptions&) {
  throw Error(
      "this build of tutti has no web server. Install cpp-httplib (Debian: apt install libcpp-httplib-dev), and "
      "Chart.js for the curves (libjs-chart.js), then build again");
}

WatchServer::~WatchServer() = default;

int WatchServer::port() const { return 0; }
bool WatchServer::is_running() const { return false; }

}  // namespace tutti
