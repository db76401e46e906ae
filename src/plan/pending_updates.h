#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "tutti/plan.h"

namespace tutti {

/// A part of a transfer's slice: elements of the flat space.
struct UpdatePiece {
  std::size_t transfer = 0;
  int64_t begin = 0, end = 0;
};

/// Slices whose last transfer is done and whose parameters are to be updated (see updates_parameters), once backward no
/// longer reads them: in pieces, by whichever thread has time first. Engine and simulator both own one. Borrows the
/// plan.
class PendingUpdates {
 public:
  /// Elements that take a fraction of a millisecond, by which a thread that helps while it waits may be late.
  static constexpr int64_t kPiece = 1 << 18;

  explicit PendingUpdates(const Plan& plan, int64_t piece = kPiece);

  /// A transfer that updates parameters, and has been carried.
  void add(std::size_t transfer);
  bool empty() const { return pieces_.empty(); }
  /// Whoever takes a piece updates it, and says so. The one that the next forward needs first:
  UpdatePiece take_most_urgent();
  UpdatePiece take_oldest();
  /// True when nothing of the piece's transfer is left.
  bool done(const UpdatePiece& piece) { return --left_[piece.transfer] == 0; }
  void clear();

 private:
  const Plan* plan_;
  int64_t piece_;
  std::deque<UpdatePiece> pieces_;
  std::vector<int> left_;  // by transfer: pieces that are not done
};

}  // namespace tutti
