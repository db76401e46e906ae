#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/flat_space.h"

namespace tutti {

/// Calls back when backward has produced a parameter's gradient, on the thread that runs backward. The model may
/// outlive this object; its hooks then do nothing.
class GradientHooks {
 public:
  GradientHooks(const std::vector<FlatParameter>& parameters, std::function<void(std::size_t parameter)> callback);

 private:
  struct Target {
    std::function<void(std::size_t)> callback;
  };
  std::shared_ptr<Target> target_;
  std::vector<std::shared_ptr<void>> accumulators_;  // a hook lives as long as the node it hangs on
};

}  // namespace tutti
