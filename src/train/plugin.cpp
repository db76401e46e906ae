#include "train/plugin.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "data/dataset.h"
#include "model/model.h"
#include "tutti/error.h"
#include "tutti/plugin.h"

namespace tutti {
namespace {

class TableRegistry : public Registry {
 public:
  void add_model(const ModelSource& model) override { add_model_source(model); }
  void add_data(const DataSource& data) override { add_data_source(data); }
  void add_strategy(const Strategy& strategy) override { tutti::add_strategy(strategy); }
};

void add_files(const std::string& list, std::vector<std::string>& files) {
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(':', begin), list.size());
    if (end > begin) files.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
}

template <typename Function>
Function* find_function(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));  // NOLINT: the only way
}

}  // namespace

std::vector<std::string> plugins_of(const std::vector<std::string>& words) {
  static const std::string kOption = "--plugin";
  std::vector<std::string> files;
  if (const char* const list = std::getenv("TUTTI_PLUGIN")) add_files(list, files);
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    if (words[i] == kOption && i + 1 < words.size()) add_files(words[i + 1], files);
    if (words[i].rfind(kOption + "=", 0) == 0) add_files(words[i].substr(kOption.size() + 1), files);
  }
  return files;
}

void load_plugin(const std::string& file) {
  // With a slash, or the loader would look for it where it looks for libraries.
  const std::string path = std::filesystem::absolute(file).string();
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw UsageError("--plugin {}: cannot be loaded: {}", file, ::dlerror());
  auto* const built_for = find_function<const char*()>(library, "tutti_plugin_built_for");
  auto* const add = find_function<void(Registry&)>(library, "tutti_plugin");
  if (built_for == nullptr || add == nullptr)
    throw UsageError("--plugin {}: a library, but no plug-in of Tutti: it has no TUTTI_PLUGIN", file);
  if (std::string(built_for()) != TUTTI_PLUGIN_BUILT_FOR)
    throw UsageError("--plugin {}: it was built for {}, this program has {}: build it again", file, built_for(),
                     TUTTI_PLUGIN_BUILT_FOR);
  TableRegistry registry;
  try {
    add(registry);
  } catch (const UsageError& error) {
    throw UsageError("--plugin {}: {}", file, error.what());
  }
}

}  // namespace tutti
