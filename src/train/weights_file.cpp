#include "train/weights_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>

#include "base/safetensors.h"
#include "record/record_file.h"
#include "record/record_reader.h"
#include "record/run_finder.h"
#include "train/checkpoint.h"
#include "train/checkpoint_folder.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

/// Layers that may have another shape: a head, a stem, and an embedding.
constexpr std::size_t kMostOtherLayers = 3;

constexpr std::size_t kMostNamed = 4;  // tensors in a message

bool has_ending(const std::string& text, const std::string& ending) {
  return text.size() >= ending.size() && text.compare(text.size() - ending.size(), ending.size(), ending) == 0;
}

/// Hugging Face's ResNets have torchvision's layers under other names.
std::string from_hugging_face_resnet(const std::string& name) {
  static const std::array<std::pair<std::regex, const char*>, 6> rules = {{
      {std::regex(R"(^(?:resnet\.)?embedder\.embedder\.convolution\.)"), "conv1."},
      {std::regex(R"(^(?:resnet\.)?embedder\.embedder\.normalization\.)"), "bn1."},
      {std::regex(R"(^(?:resnet\.)?encoder\.stages\.(\d+)\.layers\.(\d+)\.shortcut\.convolution\.)"),
       "layer<$1>.$2.downsample.0."},
      {std::regex(R"(^(?:resnet\.)?encoder\.stages\.(\d+)\.layers\.(\d+)\.shortcut\.normalization\.)"),
       "layer<$1>.$2.downsample.1."},
      {std::regex(R"(^(?:resnet\.)?encoder\.stages\.(\d+)\.layers\.(\d+)\.layer\.(\d+)\.convolution\.)"),
       "layer<$1>.$2.conv<$3>."},
      {std::regex(R"(^(?:resnet\.)?encoder\.stages\.(\d+)\.layers\.(\d+)\.layer\.(\d+)\.normalization\.)"),
       "layer<$1>.$2.bn<$3>."},
  }};
  if (name.rfind("classifier.1.", 0) == 0) return "fc." + name.substr(std::string("classifier.1.").size());
  for (const auto& [pattern, ours] : rules) {
    std::smatch found;
    if (!std::regex_search(name, found, pattern)) continue;
    std::string text = found.format(ours) + found.suffix().str();
    // They count from 0, torchvision from 1.
    for (std::size_t begin; (begin = text.find('<')) != std::string::npos;) {
      const std::size_t end = text.find('>', begin);
      text.replace(begin, end - begin + 1, std::to_string(std::stoi(text.substr(begin + 1, end - begin - 1)) + 1));
    }
    return text;
  }
  return name;
}

/// What files call a tensor, as a model calls it.
using Dialect = std::string (*)(const std::string& name);

template <std::size_t length>
std::string without(const std::string& name, const char (&beginning)[length]) {
  return name.rfind(beginning, 0) == 0 ? name.substr(length - 1) : name;
}

constexpr Dialect kDialects[] = {
    [](const std::string& name) { return name; },
    [](const std::string& name) { return without(name, "module."); },     // torch.nn.DataParallel and DDP
    [](const std::string& name) { return without(name, "_orig_mod."); },  // torch.compile
    [](const std::string& name) { return without(name, "model."); },      // Lightning, among others
    [](const std::string& name) { return "bert." + name; },               // BertModel, without the heads
    from_hugging_face_resnet,
};

/// Weights of the first BERTs, still in use, call what layer normalization multiplies with and adds gamma and beta.
std::string with_new_names(std::string name) {
  for (const auto& [then, now] : {std::pair<std::string, std::string>{"LayerNorm.gamma", "LayerNorm.weight"},
                                  {"LayerNorm.beta", "LayerNorm.bias"}})
    if (has_ending(name, then)) name.replace(name.size() - then.size(), then.size(), now);
  return name;
}

using ArraysByName = std::map<std::string, const NamedArray*>;

/// The file's tensors by the model's names, in the dialect that names most of them.
ArraysByName in_model_names(const SafetensorsFile& file, const std::set<std::string>& known) {
  ArraysByName best;
  std::size_t most = 0;
  for (const Dialect dialect : kDialects) {
    ArraysByName arrays;
    std::size_t fit = 0;
    for (const NamedArray& array : file.arrays()) {
      const std::string name = with_new_names(dialect(array.name));
      if (arrays.emplace(name, &array).second) fit += known.count(name);
    }
    if (!best.empty() && fit <= most) continue;
    best = std::move(arrays);
    most = fit;
  }
  return best;
}

/// The layer that a tensor belongs to: its name without the last part.
std::string layer_of(const std::string& tensor) { return tensor.substr(0, tensor.rfind('.')); }

/// A pickle runs what it holds when it is read.
void refuse_pickles(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  char head[2] = {};
  stream.read(head, sizeof head);
  const bool is_zip = head[0] == 'P' && head[1] == 'K', is_pickle = head[0] == '\x80';
  if (!stream || (!is_zip && !is_pickle)) return;
  throw Error(
      "{0} is a file of torch.save(), which Tutti does not read: a pickle may run any program. Convert it in Python:\n"
      "    import torch, safetensors.torch\n"
      "    weights = torch.load(\"{0}\", map_location=\"cpu\")\n"
      "    safetensors.torch.save_file({{k: v.clone().contiguous() for k, v in weights.items()}}, "
      "\"{1}\")",
      file.string(), fs::path(file).replace_extension(".safetensors").string());
}

/// Steps behind a run's final weights; nothing where it has no summary that can be read.
std::optional<int64_t> steps_of_summary(const fs::path& run_folder) {
  std::optional<int64_t> steps;
  try {
    for (RecordReader reader(run_folder / kRecordsFile); reader.next();)
      if (reader.is<SummaryRecord>()) steps = reader.as<SummaryRecord>().steps;
  } catch (const Error&) {
    return steps;
  }
  return steps;
}

/// The file in this folder; empty: none.
fs::path weights_in(const fs::path& place) {
  const fs::path own = place / kWeightsFile;
  const std::vector<fs::path> checkpoints = checkpoints_in(place);
  if (checkpoints.empty()) return fs::is_regular_file(own) ? own : fs::path();
  fs::path newest = checkpoints.back() / kWeightsFile;
  if (!fs::is_regular_file(own)) return newest;
  const std::string name = checkpoints.back().filename().string();
  const int64_t saved = std::atoll(name.substr(name.rfind('-') + 1).c_str());
  // The run went on after it had come to an end.
  return saved > steps_of_summary(place).value_or(saved) ? newest : own;
}

}  // namespace

LoadedWeights load_weights(const fs::path& path, Model& model, bool strict) {
  refuse_pickles(path);
  const SafetensorsFile file(path);
  const std::vector<NamedTensor> tensors = named_tensors(model);
  std::set<std::string> known;
  for (const NamedTensor& one : tensors) known.insert(one.name);
  const ArraysByName arrays = in_model_names(file, known);

  LoadedWeights result{path, model.model_name(), 0, {}, {}};
  std::vector<std::pair<torch::Tensor, const NamedArray*>> copies;
  std::set<std::string> other_layers;
  for (const auto& [name, tensor, group] : tensors) {
    const auto found = arrays.find(name);
    if (found == arrays.end()) {
      // Nobody reads this number, and older files lack it.
      if (!has_ending(name, "num_batches_tracked")) result.left.push_back(fmt::format("'{}' is not in the file", name));
    } else if (found->second->shape != tensor.sizes().vec()) {
      other_layers.insert(layer_of(name));
      result.left.push_back(fmt::format("'{}' is {} here and {} in the file", name,
                                        nlohmann::json(tensor.sizes().vec()).dump(),
                                        nlohmann::json(found->second->shape).dump()));
    } else {
      copies.emplace_back(tensor, found->second);
    }
  }
  result.loaded = static_cast<int64_t>(copies.size());
  for (const auto& [name, array] : arrays)
    if (known.count(name) == 0) result.unused.push_back(array->name);

  const bool is_far = other_layers.size() > kMostOtherLayers || copies.size() * 2 < tensors.size();
  if (is_far || (strict && !result.left.empty()))
    throw Error("{} does not hold {}weights of model '{}': {} of its {} tensors fit, and {}", path.string(),
                is_far ? "" : "all ", model.model_name(), copies.size(), tensors.size(), result.left.at(0));
  const torch::NoGradGuard no_grad;
  for (auto& [tensor, array] : copies) tensor.copy_(tensor_of(*array));
  return result;
}

std::vector<std::string> weights_lines(const LoadedWeights& weights) {
  const auto some = [](std::vector<std::string> texts) {
    const std::size_t all = texts.size();
    texts.resize(std::min(all, kMostNamed));
    const std::string list = fmt::format("{}", fmt::join(texts, "; "));
    return all > kMostNamed ? fmt::format("{}; and {} more", list, all - kMostNamed) : list;
  };
  std::vector<std::string> lines{fmt::format("Weights: {} tensors from {}", weights.loaded, weights.file.string())};
  if (!weights.left.empty())
    lines.push_back(fmt::format("note: {} tensor{} of '{}' begin{} at random: {}", weights.left.size(),
                                weights.left.size() == 1 ? "" : "s", weights.model, weights.left.size() == 1 ? "s" : "",
                                some(weights.left)));
  if (!weights.unused.empty())
    lines.push_back(fmt::format("note: {} tensors of {} have no place in '{}': {}", weights.unused.size(),
                                weights.file.string(), weights.model, some(weights.unused)));
  return lines;
}

fs::path find_weights(const std::string& given, const fs::path& runs_folder) {
  const RunFinder finder{"weights",
                         fmt::format("a .safetensors file, a folder with {} or checkpoints/step-*", kWeightsFile), "",
                         [](const fs::path& place) {
                           if (fs::is_regular_file(place)) return place;
                           return weights_in(place);
                         }};
  return finder.require(given, runs_folder);
}

}  // namespace tutti
