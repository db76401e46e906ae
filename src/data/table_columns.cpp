#include "data/table_columns.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/utf8.h"
#include "tutti/error.h"

namespace tutti {
namespace {

std::string trimmed(const std::string& field) {
  const size_t begin = field.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return field.substr(begin, field.find_last_not_of(" \t") + 1 - begin);
}

/// The field as a finite number, all of it.
std::optional<double> number_in(const std::string& field) {
  const std::string text = trimmed(field);
  double number = 0;
  const size_t sign = !text.empty() && text[0] == '+' ? 1 : 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + sign, end, number);
  if (error != std::errc() || rest != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

void require_value(const CsvColumn& column, size_t row, const RowPlaces& places) {
  if (is_missing(column.fields[row]))
    throw Error("{}: column '{}' has no value ('{}'): fill it, or take the row or the column out", places.of(row),
                column.name, column.fields[row]);
}

}  // namespace

std::string RowPlaces::of(size_t row) const {
  size_t file = files.size() - 1;
  while (file > 0 && first_rows[file] > row) --file;
  return fmt::format("{}:{}", files[file], lines[row]);
}

bool is_missing(const std::string& field) {
  static constexpr std::array<const char*, 6> kNothing{"", "na", "n/a", "nan", "null", "?"};
  std::string text = trimmed(field);
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return std::find(kNothing.begin(), kNothing.end(), text) != kNothing.end();
}

FeatureColumn::FeatureColumn(const CsvColumn& column, const std::vector<bool>& is_test, const RowPlaces& places) {
  size_t first_text = column.fields.size(), first_number = first_text;
  for (size_t row = 0; row < column.fields.size(); ++row) {
    require_value(column, row, places);
    (number_in(column.fields[row]) ? first_number : first_text) =
        std::min(row, number_in(column.fields[row]) ? first_number : first_text);
  }
  is_number_ = first_text == column.fields.size();
  if (is_number_) {
    double count = 0, sum = 0, squares = 0;
    for (size_t row = 0; row < column.fields.size(); ++row) {
      if (is_test[row]) continue;
      const double number = *number_in(column.fields[row]);
      // Welford's: large numbers that are near each other keep their digits.
      const double before = number - mean_;
      mean_ += before / ++count;
      squares += before * (number - mean_);
      sum += number;
    }
    deviation_ = std::sqrt(squares / count);
    if (!std::isfinite(deviation_) || !std::isfinite(sum))
      throw Error("{}: the numbers of column '{}' are too large to be added up", places.files[0], column.name);
    if (!(deviation_ > 0)) deviation_ = 1;  // all are the same, and become 0
    return;
  }
  for (size_t row = 0; row < column.fields.size(); ++row)
    if (!is_test[row]) categories_.emplace(trimmed(column.fields[row]), 0);
  if (categories_.size() > kMostCategories) {
    const bool is_mixed = first_number < column.fields.size();
    throw Error("{}: column '{}' has {} different texts; {} are the most that become features{}", places.files[0],
                column.name, categories_.size(), kMostCategories,
                is_mixed ? fmt::format(". {} has '{}', which is no number", places.of(first_text),
                                       printable(valid_utf8(column.fields[first_text].substr(0, 40))))
                         : ": take the column out");
  }
  int64_t place = 0;
  for (auto& [text, at] : categories_) at = place++;
}

std::string FeatureColumn::problem_of(const std::string& field) const {
  if (is_missing(field)) return "has no value";
  if (is_number_ && !number_in(field))
    return fmt::format("is '{}', and numbers were trained on", printable(valid_utf8(field.substr(0, 40))));
  return "";
}

void FeatureColumn::write(const std::string& field, float* to) const {
  if (is_number_) {
    *to = static_cast<float>((number_in(field).value_or(mean_) - mean_) / deviation_);
    return;
  }
  std::fill_n(to, categories_.size(), 0.F);
  const auto found = categories_.find(trimmed(field));
  if (found != categories_.end()) to[found->second] = 1;
}

Labels::Labels(const CsvColumn& column, const RowPlaces& places) {
  std::map<std::string, int32_t> numbers;
  bool are_numbers = true;
  for (size_t row = 0; row < column.fields.size(); ++row) {
    require_value(column, row, places);
    const std::string label = trimmed(column.fields[row]);
    if (!is_utf8(label)) throw Error("{}: the label '{}' is not UTF-8", places.of(row), printable(valid_utf8(label)));
    are_numbers = are_numbers && number_in(label).has_value();
    numbers.emplace(label, 0);
    if (numbers.size() > kMostClasses)
      throw Error(
          "{}: column '{}' has more than {} different labels, which are no classes. --label names another column",
          places.files[0], column.name, kMostClasses);
  }
  if (numbers.size() < 2)
    throw Error("{}: column '{}' has {} different labels; two are the least. --label names another column",
                places.files[0], column.name, numbers.size());
  for (const auto& [label, number] : numbers) names.push_back(label);
  if (are_numbers)
    std::stable_sort(names.begin(), names.end(),
                     [](const std::string& a, const std::string& b) { return *number_in(a) < *number_in(b); });
  for (size_t i = 0; i < names.size(); ++i) numbers[names[i]] = static_cast<int32_t>(i);
  of_rows.reserve(column.fields.size());
  for (const std::string& field : column.fields) of_rows.push_back(numbers.at(trimmed(field)));
}

}  // namespace tutti
