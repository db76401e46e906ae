#include "inference/class_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace tutti {
namespace {

double share_of(int64_t part, int64_t all) {
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
}

std::vector<TableValue> score_values(const std::string& name, const ClassScore& score) {
  return {text_value(name), number_value(score.precision, 4), number_value(score.recall, 4), number_value(score.f1, 4),
          whole_value(score.support, -1)};
}

}  // namespace

int64_t Confusion::of(std::size_t truth) const {
  int64_t sum = 0;
  for (std::size_t guess = 0; guess < classes(); ++guess) sum += at(truth, guess);
  return sum;
}

int64_t Confusion::said(std::size_t guess) const {
  int64_t sum = 0;
  for (std::size_t truth = 0; truth < classes(); ++truth) sum += at(truth, guess);
  return sum;
}

std::vector<ClassScore> class_scores(const Confusion& confusion) {
  std::vector<ClassScore> scores;
  for (std::size_t i = 0; i < confusion.classes(); ++i) {
    ClassScore score;
    const int64_t hits = confusion.at(i, i), said = confusion.said(i);
    score.support = confusion.of(i);
    score.precision = share_of(hits, said);
    score.recall = share_of(hits, score.support);
    score.f1 = share_of(2 * hits, said + score.support);
    scores.push_back(score);
  }
  return scores;
}

ClassScore mean_score(const std::vector<ClassScore>& scores) {
  ClassScore mean;
  double classes = 0;
  for (const ClassScore& score : scores) {
    if (score.support == 0) continue;
    ++classes;
    mean.precision += score.precision;
    mean.recall += score.recall;
    mean.f1 += score.f1;
    mean.support += score.support;
  }
  for (double* const part : {&mean.precision, &mean.recall, &mean.f1}) *part /= std::max(classes, 1.0);
  return mean;
}

Table class_table(const Confusion& confusion) {
  Table table;
  table.id = "classes";
  table.title = "Classes";
  table.columns = {{"class", "class"},
                   {"precision", "precision", "number", 4},
                   {"recall", "recall", "number", 4},
                   {"f1", "F1", "number", 4},
                   {"support", "samples", "number"}};
  const std::vector<ClassScore> scores = class_scores(confusion);
  for (std::size_t i = 0; i < scores.size(); ++i) table.rows.push_back({score_values(confusion.names[i], scores[i])});
  table.rows.push_back({score_values("mean over classes", mean_score(scores)), /*is_summary=*/true});
  return table;
}

Table confusion_table(const Confusion& confusion) {
  Table table;
  table.id = "confusion";
  table.title = "Confusion: what it is (rows), what the model says (columns)";
  table.columns = {{"class", "class"}};
  for (const std::string& name : confusion.names) table.columns.push_back({name, name, "number"});
  for (std::size_t truth = 0; truth < confusion.classes(); ++truth) {
    TableRow row{{text_value(confusion.names[truth])}};
    for (std::size_t guess = 0; guess < confusion.classes(); ++guess)
      row.values.push_back(whole_value(confusion.at(truth, guess), -1));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table mistakes_table(const Confusion& confusion, std::size_t most) {
  std::vector<std::tuple<int64_t, std::size_t, std::size_t>> mistakes;
  for (std::size_t truth = 0; truth < confusion.classes(); ++truth)
    for (std::size_t guess = 0; guess < confusion.classes(); ++guess)
      if (truth != guess && confusion.at(truth, guess) > 0)
        mistakes.emplace_back(-confusion.at(truth, guess), truth, guess);
  std::sort(mistakes.begin(), mistakes.end());
  Table table;
  table.id = "mistakes";
  table.title = "Most frequent mistakes";
  table.columns = {{"class", "it is"},
                   {"said", "the model says"},
                   {"count", "times", "number"},
                   {"share", "of its samples", "percent", 1}};
  for (std::size_t i = 0; i < std::min(most, mistakes.size()); ++i) {
    const auto& [count, truth, guess] = mistakes[i];
    table.rows.push_back({{text_value(confusion.names[truth]), text_value(confusion.names[guess]),
                           whole_value(-count, -1), percent_value(share_of(-count, confusion.of(truth)))}});
  }
  if (mistakes.size() > most) table.caption = fmt::format("{} of {} kinds of mistakes.", most, mistakes.size());
  return table;
}

}  // namespace tutti
