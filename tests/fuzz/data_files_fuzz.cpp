// The files of a data set go in, behind its name; out come samples of it.
#include <algorithm>
#include <iterator>

#include "data/dataset.h"
#include "data/png_files.h"
#include "fuzz/command.h"

namespace tutti::fuzz {
namespace {

struct FilesOf {
  const char* name;
  std::initializer_list<const char*> files;
};
const FilesOf kDataSets[] = {{"mnist",
                              {"mnist/train-images-idx3-ubyte", "mnist/train-labels-idx1-ubyte.gz",
                               "mnist/t10k-images-idx3-ubyte.gz", "mnist/t10k-labels-idx1-ubyte"}},
                             {"folder-segmentation",
                              {"folder-segmentation/images/a.png", "folder-segmentation/masks/a.png",
                               "folder-segmentation/images/b.png", "folder-segmentation/masks/b.png"}},
                             {"sst5", {"sst5/train.txt", "sst5/dev.txt", "sst5/test.txt"}},
                             {"text", {"vocabulary", "text/one.txt", "text/two.txt"}}};

void load_some(const Dataset& data) {
  Batch batch = data.make_batch(1, /*pinned=*/false);
  for (int64_t index = 0; index < std::min<int64_t>(data.size(), 3); ++index) data.load({index, 1}, 0, batch);
}

}  // namespace

static std::string fuzz_data_files(std::string_view input) {
  const std::size_t begin = input.find(kNextFile);
  if (begin == std::string_view::npos) return "no name";
  const std::string_view name = input.substr(0, begin);
  // A damaged name is some data set's all the same.
  const FilesOf* set =
      std::find_if(std::begin(kDataSets), std::end(kDataSets), [&](const FilesOf& one) { return name == one.name; });
  if (set == std::end(kDataSets)) set = &kDataSets[name.size() % std::size(kDataSets)];
  write_input(input.substr(begin + kNextFile.size()), set->files);
  return std::string(set->name) + outcome([&] {
           DataOptions options;
           options.name = set->name;
           options.folder = (command_folder() / set->name).string();
           options.vocabulary = (command_folder() / "vocabulary").string();
           options.tokens = options.name == "text" ? 8 : 0;
           options.phrases = input.size() % 2 == 0;
           const TrainTest data = open_data(options);
           load_some(*data.train);
           load_some(*data.test);
         });
}

static std::vector<std::string> data_files_seeds() {
  const std::string next(kNextFile);
  const std::string images = test::idx_images(2, 28, 28, std::string(2 * 28 * 28, 'a'));
  const std::string labels = test::idx_labels(2, std::string("\1\2"));
  const std::string picture = test::png_file(4, 4, test::PngColour::kRgb, std::string(48, 'a'));
  const std::string mask =
      test::png_file(4, 4, test::PngColour::kGrey, std::string("\0\xff\0\0\0\xff\0\0\0\xff\0\0\0\xff\0\0", 16));
  std::string words, text;
  for (const char* word : {"the", "cat", "sat", "on", "a", "mat"}) words += std::string(word) + "\n";
  for (int i = 0; i < 60; ++i) text += "The cat sat on a mat. A mat sat on the cat.\n\n";
  return {"mnist" + next + images + next + test::gzipped(labels) + next + test::gzipped(images) + next + labels,
          "folder-segmentation" + next + picture + next + mask + next + picture + next + mask,
          "sst5" + next + "(3 (2 A) (4 (3 good) (2 film)))\n(1 (2 a) (0 bad))\n" + next + "(2 Yes)\n" + next +
              "(0 (1 no) (2 .))\n",
          "text" + next + "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n" + words + next + text + next + text,
          next,
          test::gzipped(std::string(60'000, '\0'))};
}

static const Target kDataFiles("data_files", fuzz_data_files, data_files_seeds);

}  // namespace tutti::fuzz
