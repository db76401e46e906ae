// Texts with a class each: files in one folder per class, or two columns of a CSV file.

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "base/files.h"
#include "data/class_folders.h"
#include "data/csv.h"
#include "data/folders.h"
#include "data/sources.h"
#include "data/table_file.h"
#include "data/words.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostWords = 30'000;

/// Texts as words, before these have numbers.
struct ClassifiedTexts {
  std::vector<std::vector<std::string>> texts;
  std::vector<int32_t> labels;

  void add(std::string_view text, int32_t label, const std::string& place) {
    texts.push_back(split_words(text));
    if (texts.back().empty()) throw Error("{}: holds no text", place);
    labels.push_back(label);
  }
};

std::shared_ptr<WordSamples> number_texts(const ClassifiedTexts& from, const std::shared_ptr<const WordCoder>& coder,
                                          int64_t length, const std::vector<std::string>& class_names,
                                          const std::string& name) {
  std::vector<int32_t> words;
  std::vector<WordSample> samples;
  for (size_t i = 0; i < from.texts.size(); ++i) {
    const auto begin = static_cast<int64_t>(words.size());
    const auto used = std::min<size_t>(from.texts[i].size(), static_cast<size_t>(length));
    for (size_t at = 0; at < used; ++at) words.push_back(coder->number_of(from.texts[i][at]));
    samples.push_back({begin, static_cast<int64_t>(words.size()), from.labels[i]});
  }
  return std::make_shared<WordSamples>(name, length, class_names, coder, std::move(words), std::move(samples));
}

TrainTest open_texts_of(const ClassifiedTexts& train, const ClassifiedTexts& test,
                        const std::vector<std::string>& class_names, const DataOptions& options) {
  std::unordered_map<std::string, int64_t> uses;
  for (const auto& text : train.texts)
    for (const std::string& word : text) ++uses[word];
  const auto coder = std::make_shared<const WordCoder>(WordCoder{number_words(uses, kMostWords), split_words});
  const int64_t length = options.tokens > 0 ? options.tokens : kDefaultTokens;
  return {number_texts(train, coder, length, class_names, options.name),
          number_texts(test, coder, length, class_names, options.name)};
}

ClassifiedTexts read_class_files(const ClassFiles& files) {
  ClassifiedTexts texts;
  for (size_t i = 0; i < files.files.size(); ++i) {
    const fs::path path = files.folder / files.files[i];
    texts.add(read_file(path), files.labels[i], path.string());
  }
  return texts;
}

/// Which column the texts are in.
size_t find_text_column(const TableFile& table, const std::string& wanted) {
  if (!wanted.empty()) {
    for (size_t i = 0; i < table.columns.size(); ++i)
      if (table.columns[i].name == wanted && i != table.label_column) return i;
    throw UsageError("--text '{}': {} has no such column beside that of the label", wanted, table.name());
  }
  if (table.columns.size() != 2)
    throw UsageError("{} has {} columns: name that of the text with --text", table.name(), table.columns.size());
  return 1 - table.label_column;
}

}  // namespace

TrainTest open_text_folder(const DataOptions& options) {
  const fs::path folder = require_data_folder(
      options.folder, "text-folder",
      "Put the *.txt files of each class into a folder of its own there, or name such a folder with --data-path.");
  const ClassFolders found =
      list_class_folders(folder, options.val_fraction, "*.txt file",
                         [](std::string_view ending) { return ending == ".txt" ? FileUse::taken : FileUse::ignored; });
  return open_texts_of(read_class_files(found.train), read_class_files(found.test), found.class_names, options);
}

TrainTest open_text_csv(const DataOptions& options) {
  const fs::path path = require_data_folder(options.folder, "text-csv",
                                            "Name a CSV file with --data-path: a row of names, then rows of a text and "
                                            "its label, which is the last column or that of --label.");
  const TableFile table(path, options.label, options.val_fraction);
  const CsvColumn& column = table.columns[find_text_column(table, options.text)];
  ClassifiedTexts train, test;
  for (size_t row = 0; row < table.is_test.size(); ++row)
    (table.is_test[row] ? test : train).add(column.fields[row], table.classes[row], table.places.of(row));
  return open_texts_of(train, test, table.class_names, options);
}

}  // namespace tutti
