#include "base/environment.h"

#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/build_info.h"

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

nlohmann::json describe_environment(const std::string& libtorch) {
  nlohmann::json environment = {{"tutti", build_version()},
                                {"commit", build_commit()},
                                {"build", build_type()},
                                {"compiler", build_compiler()},
                                {"host", host_name()},
                                {"cpu", cpu_model()},
                                {"cores", std::thread::hardware_concurrency()}};
  if (!libtorch.empty()) environment["libtorch"] = libtorch;
  return environment;
}

}  // namespace tutti
