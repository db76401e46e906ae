#include "engine/step_graph.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace tutti {

ComputeStream::ComputeStream(torch::Device device) {
  if (!device.is_cuda()) return;
  const c10::impl::VirtualGuardImpl gpu(device.type());
  const torch::Device exact(device.type(), device.has_index() ? device.index() : gpu.getDevice().index());
  guard_.reset_stream(gpu.getStreamFromGlobalPool(exact));
}

}  // namespace tutti
