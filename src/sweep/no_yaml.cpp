#include "sweep/sweep.h"
#include "tutti/error.h"

namespace tutti::sweep {

Sweep parse_sweep(const std::string&, const std::string& file, bool, const std::vector<std::string>&,
                  const ProblemOfOption&) {
  throw UsageError("{}: this build cannot read sweeps; install libyaml-cpp-dev and build again", file);
}

}  // namespace tutti::sweep
