#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/data_options.h"

namespace tutti {

/// Samples that go through the model together. `inputs` and `target` have `size` entries in their first dimension.
struct Batch {
  std::vector<torch::Tensor> inputs;
  torch::Tensor target;
  int64_t size = 0;
};

/// Which sample, and in which pass over the data. What is drawn at random for it (augmentation, masked words) follows
/// from both, so it varies between epochs but not with the threads that load, nor after a resume.
struct Pick {
  int64_t index = 0;
  int64_t epoch = 0;
  Pick(int64_t of_index, int64_t in_epoch = 0) : index(of_index), epoch(in_epoch) {}  // NOLINT: an index is a pick
};

/// A fixed list of samples. A sample depends on its Pick alone. Calls from several threads at once are fine.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual const std::string& name() const = 0;
  virtual int64_t size() const = 0;
  virtual SampleTraits traits() const = 0;
  /// Whether a sample is another in another epoch; if not, it can be kept once it was loaded.
  virtual bool varies() const { return true; }
  /// Batch tensors, uninitialized, for `count` samples on the CPU, as traits() says; `pinned` for fast copies to a GPU.
  virtual Batch make_batch(int64_t count, bool pinned) const;
  /// Writes a sample into row `row` of a batch from make_batch. An Error names the file that it is about.
  virtual void load(Pick pick, int64_t row, Batch& batch) const = 0;
  /// Names of samples that could not be read so far, and were replaced by others (--skip-bad-samples).
  virtual std::vector<std::string> bad_samples() const { return {}; }
  /// Writes what somebody brings, the bytes of a picture's file or a text, into row `row` of a batch from make_batch,
  /// as this data set would have it; what is to be found out is left open. `name` is what an Error calls it. Throws
  /// Error for what cannot be read, and where the data set knows no such way: that is what it does unless it is
  /// overridden.
  virtual void encode(std::string_view content, const std::string& name, int64_t row, Batch& batch) const;
  /// What people call a class, or a token of masked text; its number where it has no name.
  virtual std::string label(int64_t number) const;
};

struct TrainTest {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> test;
};

/// A data set that can be opened by its name.
struct DataSource {
  std::string name;
  TrainTest (*open)(const DataOptions& options) = nullptr;
  unsigned takes = ~0U;    // which of the options that only some data sets know; all
  std::string model = "";  // that trains on it unless another is named; empty: tutti train's own default
};

}  // namespace tutti
