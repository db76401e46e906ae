#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/dataset.h"

namespace tutti {

struct LoaderOptions {
  int workers = 1;      // threads that load; 0: load in next(), on the caller's thread
  int prefetch = 4;     // batches loaded ahead at most; never fewer than one per worker
  bool pinned = false;  // page-locked memory, for copies to a GPU
  int64_t epoch = 0;    // of the picks: what is drawn at random for a sample varies with it
};

/// Delivers the batches of one epoch in order, loaded ahead by worker threads. The order and content do not depend on
/// the number of workers. One calling thread. The destructor stops the workers wherever they are.
class Loader {
 public:
  /// `batches[i]` holds the sample indices of batch i; empty ones are delivered as a Batch of size 0.
  Loader(std::shared_ptr<const Dataset> data, std::vector<std::vector<int64_t>> batches, const LoaderOptions& options);
  ~Loader();

  bool has_next() const;
  /// The next batch; waits for it if necessary. An error in a worker is thrown here, in the batch's turn.
  Batch next();
  /// Seconds that next() has waited so far.
  double waited_s() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tutti
