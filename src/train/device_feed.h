#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <optional>

#include "data/loader.h"
#include "train/evaluation.h"

namespace tutti {

/// A loader's batches on the device. On a GPU, the next one can travel on a stream of its own while a step runs.
/// Borrows the loader.
class DeviceFeed {
 public:
  DeviceFeed(Loader& loader, const BatchPlace& place);

  /// The next batch. Work that the calling thread queues from now on starts after it has arrived.
  Batch next();
  /// Starts the copy of the batch that next() will give, if there is one more; waits for the loader, not for the copy.
  /// Nothing on a CPU.
  void fetch_ahead();

 private:
  struct Ahead {
    Batch batch;
    c10::Event arrived;
  };

  Loader& loader_;
  const BatchPlace place_;
  std::optional<c10::Stream> copies_;  // on a GPU
  std::optional<Ahead> ahead_;
};

}  // namespace tutti
