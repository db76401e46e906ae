// Pictures in tar files, as WebDataset writes them: KEY.jpg (or .jpeg, .png) and KEY.cls, a class as a number, one
// behind the other. The tar files are listed once; then any sample is read at its place.

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/files.h"
#include "base/utf8.h"
#include "data/folders.h"
#include "data/picture_samples.h"
#include "data/sources.h"
#include "data/split.h"
#include "data/tar.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr int32_t kMostShardClasses = 1'000'000;

struct ShardSample {
  size_t shard = 0;
  TarMember picture;
  int32_t label = -1;
};

/// Samples of several tar files, in their order.
struct Shards {
  std::vector<fs::path> paths;
  std::vector<ShardSample> samples;
};

std::vector<fs::path> tar_files(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> paths;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ".tar") paths.push_back(entry->path());
  if (error) throw Error("{}: cannot list it ({})", folder.string(), error.message());
  std::sort(paths.begin(), paths.end());
  return paths;
}

int32_t read_class(const fs::path& path, const TarMember& member) {
  constexpr int64_t kLongestNumber = 32;
  const std::string text = member.size <= kLongestNumber ? read_tar_member(path, member) : "";
  int32_t number = -1;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_rest_space =
      std::all_of(rest, text.data() + text.size(), [](char c) { return c == '\n' || c == '\r' || c == ' '; });
  if (error != std::errc() || !is_rest_space || number < 0 || number >= kMostShardClasses)
    throw Error("{}: {}: no class: a number from 0 is expected", path.string(), member.name);
  return number;
}

bool is_picture(std::string_view ending) { return ending == "jpg" || ending == "jpeg" || ending == "png"; }

/// Appends the samples of one tar file: neighbours with the same name up to its first dot.
void add_shard(const fs::path& path, Shards& to) {
  const size_t shard = to.paths.size(), first = to.samples.size();
  to.paths.push_back(path);
  std::string key;
  ShardSample sample{shard, {}, -1};
  const auto end_sample = [&] {
    if (sample.picture.name.empty() && sample.label < 0) return;  // neither: it may hold anything else
    if (sample.picture.name.empty() || sample.label < 0)
      throw Error("{}: {}: {}", path.string(), key,
                  sample.label < 0 ? "a picture without a class: there is no .cls beside it"
                                   : "a class without a picture: there is no .jpg or .png beside it");
    to.samples.push_back(std::exchange(sample, {shard, {}, -1}));
  };
  for (const TarMember& member : list_tar(path)) {
    const size_t name = member.name.rfind('/') + 1;  // 0 where there is none
    const size_t dot = member.name.find('.', name);
    if (dot == std::string::npos || dot == name) continue;
    std::string member_key = member.name.substr(0, dot), ending = member.name.substr(dot + 1);
    for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (member_key != key) end_sample();
    key = std::move(member_key);
    if (ending == "cls") sample.label = read_class(path, member);
    if (is_picture(ending)) sample.picture = member;
  }
  end_sample();
  if (to.samples.size() == first) throw Error("{}: no KEY.jpg (or .png) with KEY.cls in it", path.string());
}

Shards read_shards(const std::vector<fs::path>& paths) {
  Shards shards;
  for (const fs::path& path : paths) add_shard(path, shards);
  return shards;
}

class PicturesInShards : public PictureSource {
 public:
  explicit PicturesInShards(Shards shards) : shards_(std::move(shards)) {}
  int64_t size() const override { return static_cast<int64_t>(shards_.samples.size()); }
  int64_t label(int64_t index) const override { return sample(index).label; }
  std::string name(int64_t index) const override {
    return path(index).string() + ": " + valid_utf8(sample(index).picture.name);
  }
  std::string read(int64_t index) const override { return read_tar_member(path(index), sample(index).picture); }

 private:
  const ShardSample& sample(int64_t index) const { return shards_.samples[static_cast<size_t>(index)]; }
  const fs::path& path(int64_t index) const { return shards_.paths[sample(index).shard]; }

  const Shards shards_;
};

/// classes.txt has a name a line; without it, numbers do.
std::vector<std::string> class_names_for(const fs::path& folder, int32_t classes) {
  std::vector<std::string> names;
  const fs::path file = folder / "classes.txt";
  std::error_code ignored;
  if (fs::exists(file, ignored)) {
    const std::string text = read_file(file);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      names.push_back(text.substr(begin, end - begin));
      if (!names.back().empty() && names.back().back() == '\r') names.back().pop_back();
      if (!is_utf8(names.back())) throw Error("{}:{}: not UTF-8", file.string(), names.size());
      begin = end + 1;
    }
    if (static_cast<int32_t>(names.size()) < classes)
      throw Error("{}: {} names, but the samples have classes up to {}", file.string(), names.size(), classes - 1);
    return names;
  }
  for (int32_t i = 0; i < classes; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace

TrainTest open_image_shards(const DataOptions& options) {
  const fs::path folder = require_data_folder(
      options.folder, "image-shards",
      "Put tar files of WebDataset's kind there (KEY.jpg with KEY.cls), or name such a folder with --data-path.");
  std::error_code ignored;
  const bool is_split = fs::is_directory(folder / "train", ignored) && fs::is_directory(folder / "val", ignored);
  if (is_split && options.val_fraction > 0)
    throw UsageError("--val-fraction {}: {} is the test already; leave the option out", options.val_fraction,
                     (folder / "val").string());
  const fs::path train_folder = is_split ? folder / "train" : folder;
  const std::vector<fs::path> paths = tar_files(train_folder);
  if (paths.empty()) throw Error("{}: holds no *.tar files", train_folder.string());
  Shards train = read_shards(paths), test;
  if (is_split) {
    test = read_shards(tar_files(folder / "val"));
  } else {
    std::vector<int32_t> labels;
    std::vector<uint64_t> hashes;
    for (const ShardSample& sample : train.samples) {
      labels.push_back(sample.label);
      hashes.push_back(hash_name(train.paths[sample.shard].filename().string() + "/" + sample.picture.name));
    }
    const std::vector<bool> is_test =
        hold_out(labels, hashes, options.val_fraction > 0 ? options.val_fraction : kUsualHeldOut);
    std::vector<ShardSample> all = std::exchange(train.samples, {});
    test.paths = train.paths;
    for (size_t i = 0; i < all.size(); ++i) (is_test[i] ? test : train).samples.push_back(std::move(all[i]));
  }
  if (test.samples.empty())
    throw Error("{}: its {} samples leave none for the test; add some, or raise --val-fraction", folder.string(),
                train.samples.size());
  int32_t classes = 0;
  for (const Shards* part : {&train, &test})
    for (const ShardSample& sample : part->samples) classes = std::max(classes, sample.label + 1);
  if (classes < 2) throw Error("{}: all samples are of class 0; two classes are the least", folder.string());
  return open_pictures(options, std::make_shared<PicturesInShards>(std::move(train)),
                       std::make_shared<PicturesInShards>(std::move(test)), class_names_for(folder, classes));
}

}  // namespace tutti
