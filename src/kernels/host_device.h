#pragma once

/// Before a function that kernels call and that tests run on a CPU as well.
#ifdef __CUDACC__
#define TUTTI_HOST_DEVICE __host__ __device__
#else
#define TUTTI_HOST_DEVICE
#endif
