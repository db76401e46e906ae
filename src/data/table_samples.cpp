// Rows of a CSV file: a class, and features that are numbers or texts out of a few.

#include <algorithm>
#include <utility>

#include "data/csv.h"
#include "data/folders.h"
#include "data/sources.h"
#include "data/table_file.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr int64_t kMostFeatures = 100'000;

/// Columns that become features, by their names.
using Features = std::vector<std::pair<std::string, FeatureColumn>>;

class TableSamples : public Dataset {
 public:
  TableSamples(std::string name, std::shared_ptr<const Features> columns, int64_t features,
               std::vector<std::string> class_names)
      : name_(std::move(name)),
        columns_(std::move(columns)),
        features_(features),
        class_names_(std::move(class_names)) {}

  const std::string& name() const override { return name_; }
  int64_t size() const override { return static_cast<int64_t>(classes_.size()); }
  SampleTraits traits() const override {
    SampleTraits traits{SampleKind::table, {features_}, static_cast<int64_t>(class_names_.size())};
    traits.class_names = class_names_;
    return traits;
  }
  bool varies() const override { return false; }
  void load(Pick pick, int64_t row, Batch& batch) const override {
    std::copy_n(values_.data() + pick.index * features_, features_,
                batch.inputs[0].data_ptr<float>() + row * features_);
    batch.target.data_ptr<int64_t>()[row] = classes_[static_cast<size_t>(pick.index)];
  }
  /// `content`: a row of names and a row of fields, as of a CSV file. Columns that are no features are passed over.
  void encode(std::string_view content, const std::string& input, int64_t row, Batch& batch) const override {
    CsvReader reader(std::string(content), input);
    std::vector<std::string> fields;
    if (!reader.next(fields)) throw Error("{}: it has no row of fields", input);
    float* to = batch.inputs[0].data_ptr<float>() + row * features_;
    for (const auto& [name, column] : *columns_) {
      const auto found = std::find(reader.columns().begin(), reader.columns().end(), name);
      if (found == reader.columns().end())
        throw Error("{}: there is no column '{}', which was trained on", input, name);
      const std::string& field = fields[static_cast<size_t>(found - reader.columns().begin())];
      if (const std::string problem = column.problem_of(field); !problem.empty())
        throw Error("{}: column '{}' {}", input, name, problem);
      column.write(field, to);
      to += column.width();
    }
  }

  /// Room for one more row.
  float* add_row(int32_t label) {
    classes_.push_back(label);
    values_.resize(values_.size() + static_cast<size_t>(features_));
    return values_.data() + values_.size() - features_;
  }

 private:
  const std::string name_;
  const std::shared_ptr<const Features> columns_;
  const int64_t features_;
  const std::vector<std::string> class_names_;
  std::vector<float> values_;  // row by row
  std::vector<int32_t> classes_;
};

}  // namespace

TrainTest open_csv(const DataOptions& options) {
  const auto path = require_data_folder(options.folder, "csv",
                                        "Name a CSV file with --data-path: a row of names, then rows of features and a "
                                        "label, which is the last column or that of --label.");
  const TableFile table(path, options.label, options.val_fraction);
  const auto columns = std::make_shared<Features>();
  std::vector<const CsvColumn*> read;
  int64_t features = 0;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (i == table.label_column) continue;
    read.push_back(&table.columns[i]);
    columns->emplace_back(table.columns[i].name, FeatureColumn(table.columns[i], table.is_test, table.places));
    features += columns->back().second.width();
  }
  if (features == 0 || features > kMostFeatures)
    throw Error("{}: its columns make {} features; from 1 to {} can be trained on", table.name(), features,
                kMostFeatures);
  const auto train = std::make_shared<TableSamples>(options.name, columns, features, table.class_names);
  const auto test = std::make_shared<TableSamples>(options.name, columns, features, table.class_names);
  for (size_t row = 0; row < table.is_test.size(); ++row) {
    float* to = (table.is_test[row] ? test : train)->add_row(table.classes[row]);
    for (size_t i = 0; i < read.size(); ++i) {
      const FeatureColumn& column = (*columns)[i].second;
      column.write(read[i]->fields[row], to);
      to += column.width();
    }
  }
  return {train, test};
}

}  // namespace tutti
