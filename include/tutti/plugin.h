#pragma once

#include <torch/version.h>

#include "tutti/dataset.h"
#include "tutti/model.h"
#include "tutti/strategy.h"

// Own models, data sets and strategies for the program tutti, in a shared library that it loads:
//
//   TUTTI_PLUGIN(tutti::Registry& registry) {
//     registry.add_model({"mine", {tutti::SampleKind::images, {1, 8, 8}, 2}, make_mine});
//     registry.add_data({"mine", open_mine});
//   }
//
//   tutti train --plugin ./libmine.so --model mine --data mine
//
// Compile it with the target Tutti::plugin: the program itself has what the headers declare.

namespace tutti {

/// What a plug-in adds to. A name that is taken throws UsageError.
class Registry {
 public:
  virtual ~Registry() = default;
  virtual void add_model(const ModelSource& model) = 0;
  virtual void add_data(const DataSource& data) = 0;
  virtual void add_strategy(const Strategy& strategy) = 0;
};

}  // namespace tutti

/// What a plug-in and the program have to agree on. The number changes with the classes that they share.
#define TUTTI_PLUGIN_BUILT_FOR "plug-ins 1, libtorch " TORCH_VERSION

/// Begins the function that adds a plug-in's own; once in a library.
#define TUTTI_PLUGIN(parameter)                                                      \
  extern "C" const char* tutti_plugin_built_for() { return TUTTI_PLUGIN_BUILT_FOR; } \
  extern "C" void tutti_plugin(parameter)
