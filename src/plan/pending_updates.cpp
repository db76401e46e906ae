#include "plan/pending_updates.h"

#include <algorithm>

namespace tutti {

PendingUpdates::PendingUpdates(const Plan& plan, int64_t piece)
    : plan_(&plan), piece_(piece), left_(plan.transfers.size(), 0) {}

void PendingUpdates::add(std::size_t transfer) {
  const Transfer& slice = plan_->transfers[transfer];
  for (int64_t begin = slice.begin; begin < slice.end; begin += piece_, ++left_[transfer])
    pieces_.push_back({transfer, begin, begin + std::min(piece_, slice.end - begin)});
}

UpdatePiece PendingUpdates::take_most_urgent() {
  // The flat space lies in the order of backward, which is about that of forward from behind.
  const auto first = std::max_element(pieces_.begin(), pieces_.end(),
                                      [](const UpdatePiece& a, const UpdatePiece& b) { return a.begin < b.begin; });
  const UpdatePiece piece = *first;
  pieces_.erase(first);
  return piece;
}

UpdatePiece PendingUpdates::take_oldest() {
  const UpdatePiece piece = pieces_.front();
  pieces_.pop_front();
  return piece;
}

void PendingUpdates::clear() {
  pieces_.clear();
  std::fill(left_.begin(), left_.end(), 0);
}

}  // namespace tutti
