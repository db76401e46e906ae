#include "model/model.h"

#include <array>

#include "base/error.h"
#include "base/names.h"
#include "model/zoo.h"

namespace tutti {
namespace {

struct Entry {
  const char* name;
  std::shared_ptr<Model> (*make)();
};

constexpr std::array<Entry, 1> kModels{{
    {"mnist-cnn", make_mnist_cnn},
}};

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kModels) names.emplace_back(entry.name);
  return names;
}

std::shared_ptr<Model> make_model(const std::string& name) {
  for (const Entry& entry : kModels) {
    if (name == entry.name) return entry.make();
  }
  throw UsageError(unknown_name("model", name, model_names()));
}

}  // namespace tutti
