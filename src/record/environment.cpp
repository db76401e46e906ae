#include <unistd.h>

#include <fstream>
#include <thread>

#include "base/build_info.h"
#include "tutti/records.h"

namespace tutti {
namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown";
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

}  // namespace

Environment this_environment(const std::string& libtorch) {
  Environment environment;
  environment.tutti = build_version();
  environment.commit = build_commit();
  environment.build = build_type();
  environment.compiler = build_compiler();
  environment.host = host_name();
  environment.cpu = cpu_model();
  environment.cores = static_cast<int>(std::thread::hardware_concurrency());
  environment.libtorch = libtorch;
  return environment;
}

}  // namespace tutti
