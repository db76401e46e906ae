#include "plan/partitions.h"

#include <algorithm>
#include <numeric>

namespace tutti {

std::vector<Transfer> cut(const Transfer& transfer, int64_t bytes) {
  const int64_t longest =
      std::max(kSlotAlignment, bytes / static_cast<int64_t>(sizeof(float)) / kSlotAlignment * kSlotAlignment);
  const int64_t pieces = (transfer.elements() + longest - 1) / longest;
  std::vector<Transfer> parts;
  for (int64_t piece = 0; piece < pieces; ++piece) {
    Transfer part = transfer;
    part.begin = transfer.begin + piece * longest;
    part.end = std::min(transfer.end, part.begin + longest);
    if (pieces > 1) part.name += "[" + std::to_string(piece + 1) + "/" + std::to_string(pieces) + "]";
    parts.push_back(part);
  }
  return parts;
}

int partitions_in_flight(int64_t credit_bytes, int64_t partition_bytes) {
  if (credit_bytes <= 0) return kUsuallyUnderWay;
  return static_cast<int>(std::clamp<int64_t>(credit_bytes / partition_bytes, 2, 64));
}

void place_on_servers(Plan& plan, int servers) {
  std::vector<std::size_t> by_size(plan.transfers.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(), [&](std::size_t a, std::size_t b) {
    return plan.transfers[a].elements() > plan.transfers[b].elements();
  });
  std::vector<int64_t> load(static_cast<std::size_t>(servers), 0);
  for (const std::size_t i : by_size) {
    const auto least = std::min_element(load.begin(), load.end());
    plan.transfers[i].operation = Operation::push_pull;
    plan.transfers[i].server = static_cast<int>(least - load.begin());
    *least += plan.transfers[i].elements();
  }
  plan.servers = servers;
}

}  // namespace tutti
