#include "data/dataset.h"

#include <array>

#include "base/error.h"
#include "base/names.h"
#include "data/sources.h"

namespace tutti {
namespace {

struct Source {
  const char* name;
  TrainTest (*open)(const DataOptions&);
};

constexpr std::array<Source, 2> kSources{{
    {"digits", open_digits},
    {"mnist", open_mnist},
}};

}  // namespace

std::vector<std::string> data_names() {
  std::vector<std::string> names;
  for (const Source& source : kSources) names.emplace_back(source.name);
  return names;
}

TrainTest open_data(const DataOptions& options) {
  if (options.train_size < 0 || options.test_size < 0) {
    throw UsageError("a data set cannot have {} training and {} test samples; give sizes above 0, or 0 for the default",
                     options.train_size, options.test_size);
  }
  for (const Source& source : kSources) {
    if (options.name == source.name) return source.open(options);
  }
  throw UsageError(unknown_name("data set", options.name, data_names()));
}

}  // namespace tutti
