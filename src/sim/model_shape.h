#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tutti {

/// One layer of a model as its cost sees it. Counts are for the forward pass of one sample; backward takes twice that.
struct LayerShape {
  std::string name;
  std::vector<std::pair<std::string, int64_t>> parameters;  // name and elements
  double flop = 0;     // convolutions and matrix products, a multiplication and an addition being two
  double traffic = 0;  // values read and written by what is not a matrix product: norms, activations, dropout
  bool is_convolution = false;
};

/// A model without tensors: its layers in the order in which forward runs them.
struct ModelShape {
  std::string name;
  std::vector<LayerShape> layers;

  int64_t parameters() const;
  int64_t tensors() const;
  double flop() const;
};

/// What a person may change about a model.
struct ShapeOptions {
  int64_t tokens = 0;  // of a text; 0: as `tutti models` has it
  /// BERT decodes words only where they are masked, as our own model does, or everywhere, as others do.
  bool decodes_all_tokens = false;
};

std::vector<std::string> shape_names();
/// The layers of one of `tutti models`' models. Throws UsageError for an unknown name.
ModelShape model_shape(const std::string& name, const ShapeOptions& options = {});

}  // namespace tutti
