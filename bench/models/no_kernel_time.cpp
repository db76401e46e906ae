#include "kernel_time.h"

namespace tutti {

double kernel_time(const std::function<void()>&) { return 0; }

int64_t peak_memory() { return 0; }

}  // namespace tutti
