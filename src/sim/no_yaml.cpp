// Stands in for cluster_yaml.cpp in a build without yaml-cpp.

#include "sim/cluster.h"
#include "tutti/error.h"

namespace tutti {

Cluster parse_cluster(const std::string&, const std::string& file) {
  throw UsageError(
      "{}: this build cannot read cluster files: yaml-cpp was not there when it was configured (Debian: "
      "libyaml-cpp-dev)",
      file);
}

}  // namespace tutti
