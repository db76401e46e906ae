#pragma once

#include <ATen/record_function.h>

#include <functional>
#include <unordered_map>
#include <vector>

#include "engine/flat_space.h"

namespace tutti {

/// Tells when forward first reads each parameter, without a hook in the model: it looks at the inputs of every operator
/// that the calling thread runs while it is alive.
class ForwardWatch {
 public:
  ForwardWatch(const std::vector<FlatParameter>& parameters, std::function<void(std::size_t parameter)> first_use);
  ~ForwardWatch();
  ForwardWatch(const ForwardWatch&) = delete;
  ForwardWatch& operator=(const ForwardWatch&) = delete;

 private:
  static std::unique_ptr<at::ObserverContext> on_operator(const at::RecordFunction& call);

  std::unordered_map<const void*, std::size_t> unseen_;
  std::function<void(std::size_t)> first_use_;
  at::CallbackHandle handle_;
};

}  // namespace tutti
