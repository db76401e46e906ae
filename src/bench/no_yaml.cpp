#include "base/error.h"
#include "bench/sweep.h"

namespace tutti::bench {

Sweep parse_sweep(const std::string&, const std::string& file, bool, const std::vector<std::string>&) {
  throw UsageError("{}: this build cannot read sweeps; install libyaml-cpp-dev and build again", file);
}

}  // namespace tutti::bench
