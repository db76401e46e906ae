#include "tutti/communicator.h"

namespace tutti {

std::vector<std::size_t> even_split(std::size_t size, int parts) {
  const auto n = static_cast<std::size_t>(parts);
  std::vector<std::size_t> counts(n, size / n);
  for (std::size_t i = 0; i < size % n; ++i) ++counts[i];
  return counts;
}

}  // namespace tutti
