#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace tutti {

/// Where element `to` of a sample comes from, when samples are stored channel after channel and wanted with the
/// channels of a pixel side by side; `channels` of 1 leaves everything in its place.
TUTTI_HOST_DEVICE inline int64_t source_element(int64_t to, int64_t elements, int64_t channels) {
  return (to % channels) * (elements / channels) + to / channels;
}

}  // namespace tutti
