#include "data/class_folders.h"

#include <algorithm>
#include <map>

#include "base/utf8.h"
#include "data/split.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) { return path.filename().string().rfind('.', 0) == 0; }

std::string small_ending(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return ending;
}

/// The names of a folder's folders, sorted; those that begin with a dot are passed over.
std::vector<std::string> subfolders(const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored) && !is_hidden(entry->path())) names.push_back(entry->path().filename().string());
  }
  if (error) throw Error("{}: cannot list it ({})", folder.string(), error.message());
  std::sort(names.begin(), names.end());
  return names;
}

struct Lister {
  std::string kind;
  FileUse (*use)(std::string_view ending);

  /// Appends the files below folder/name, in their order, and says how many there were.
  size_t add_class(const std::string& name, int32_t label, ClassFiles& to) const {
    const fs::path folder = to.folder / name;
    std::error_code error;
    std::vector<std::string> found;
    for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      std::error_code ignored;
      if (is_hidden(entry->path())) {
        if (entry->is_directory(ignored)) entry.disable_recursion_pending();
        continue;
      }
      const FileUse fate = use(small_ending(entry->path()));
      if (fate == FileUse::ignored || !entry->is_regular_file(ignored)) continue;
      if (fate == FileUse::refused)
        throw Error("{}: not read, because it is no {}: convert it, or take it out", entry->path().string(), kind);
      found.push_back((fs::path(name) / entry->path().lexically_relative(folder)).string());
    }
    if (error) throw Error("{}: cannot list it ({})", folder.string(), error.message());
    std::sort(found.begin(), found.end());
    to.files.insert(to.files.end(), found.begin(), found.end());
    to.labels.resize(to.files.size(), label);
    return found.size();
  }
};

/// Whether a folder has folders of classes in it: train/ may itself be a class.
bool holds_folders(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder, ignored) && !subfolders(folder).empty();
}

void check_classes(const fs::path& folder, const std::vector<std::string>& names, const std::string& kind) {
  if (names.size() < 2)
    throw Error("{}: {} in it; put the {}s of each class into a folder of its own, two classes at least",
                folder.string(), names.empty() ? "there is no folder" : "there is only the folder " + names[0], kind);
  for (const std::string& name : names)
    if (!is_utf8(name))
      throw Error("{}: the folder '{}' has no UTF-8 name: rename it", folder.string(), valid_utf8(name));
}

}  // namespace

ClassFolders list_class_folders(const fs::path& folder, double held_out, const std::string& kind,
                                FileUse (*use)(std::string_view ending)) {
  const Lister lister{kind, use};
  ClassFolders found;
  fs::path test_folder = folder / "val";
  if (!holds_folders(test_folder)) test_folder = folder / "test";
  const bool is_split = holds_folders(folder / "train");
  if (is_split && !holds_folders(test_folder))
    throw Error("{}: it has train/ but no val/: add one, or name {} alone, of which a part is then held out",
                folder.string(), (folder / "train").string());
  if (is_split && held_out > 0)
    throw UsageError("--val-fraction {}: {} is the test already; leave the option out", held_out, test_folder.string());

  ClassFiles all{is_split ? folder / "train" : folder, {}, {}};
  found.class_names = subfolders(all.folder);
  check_classes(all.folder, found.class_names, kind);
  for (size_t i = 0; i < found.class_names.size(); ++i)
    if (lister.add_class(found.class_names[i], static_cast<int32_t>(i), all) == 0)
      throw Error("{}: there are no {}s in it; fill it, or take it away", (all.folder / found.class_names[i]).string(),
                  kind);
  if (is_split) {
    found.train = std::move(all);
    found.test.folder = test_folder;
    for (const std::string& name : subfolders(test_folder)) {
      const auto place = std::lower_bound(found.class_names.begin(), found.class_names.end(), name);
      if (place == found.class_names.end() || *place != name)
        throw Error("{}: a class that is not trained: there is no {}", (test_folder / name).string(),
                    (found.train.folder / name).string());
      lister.add_class(name, static_cast<int32_t>(place - found.class_names.begin()), found.test);
    }
  } else {
    std::vector<uint64_t> hashes;
    hashes.reserve(all.files.size());
    for (const std::string& file : all.files) hashes.push_back(hash_name(file));
    const std::vector<bool> is_test = hold_out(all.labels, hashes, held_out > 0 ? held_out : kUsualHeldOut);
    found.train.folder = found.test.folder = folder;
    for (size_t i = 0; i < all.files.size(); ++i) {
      ClassFiles& part = is_test[i] ? found.test : found.train;
      part.files.push_back(std::move(all.files[i]));
      part.labels.push_back(all.labels[i]);
    }
  }
  if (found.test.files.empty())
    throw Error("{}: its {} files leave none for the test; add some, or raise --val-fraction", folder.string(),
                found.train.files.size());
  return found;
}

}  // namespace tutti
