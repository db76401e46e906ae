#include "base/malloc_tuning.h"

#include <cstdlib>  // defines __GLIBC__ where that is the C library

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace tutti {

void tune_malloc() {
#if defined(__GLIBC__)
  constexpr int kGiB = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, kGiB);
  mallopt(M_TRIM_THRESHOLD, kGiB);
  mallopt(M_TOP_PAD, 64 << 20);
#endif
}

}  // namespace tutti
