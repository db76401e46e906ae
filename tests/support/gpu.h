#pragma once

#include <gtest/gtest.h>
#include <torch/cuda.h>

/// First line of a test that runs on a GPU alone.
#define TUTTI_NEEDS_GPU() \
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU on this machine"
