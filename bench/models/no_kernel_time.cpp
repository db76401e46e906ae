#include "kernel_time.h"

namespace tutti {

double kernel_time(const std::function<void()>&) { return 0; }

}  // namespace tutti
