#include "cli/predict_command.h"

#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"
#include "base/utf8.h"
#include "cli/trained_arguments.h"
#include "data/csv.h"
#include "inference/mask_files.h"
#include "inference/predict.h"
#include "report/table.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct PredictArguments {
  std::unique_ptr<TrainedArguments> trained;
  std::vector<std::string> inputs;
  std::vector<std::string> texts;
  int64_t top = 3;
  std::string masks_folder;
  bool json = false, csv = false;
};

bool is_text(SampleKind kind) { return kind == SampleKind::sentences || kind == SampleKind::masked_text; }

/// Rows of a CSV file, each an input.
void add_rows(const std::string& content, const std::string& name, std::vector<Input>& inputs) {
  CsvReader reader(content, name);
  const std::string names = csv_line(reader.columns());
  const std::size_t before = inputs.size();
  for (std::vector<std::string> fields; reader.next(fields);)
    inputs.push_back({fmt::format("{}:{}", name, reader.line()), names + csv_line(fields), ""});
  if (inputs.size() == before) throw Error("{}: has no rows", name);
}

/// Lines that are not empty, each an input.
void add_lines(std::istream& stream, const std::string& name, std::vector<Input>& inputs) {
  int64_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    inputs.push_back({fmt::format("{}:{}", name, number), line, ""});
  }
}

void add_file(const std::string& file, SampleKind kind, std::vector<Input>& inputs) {
  if (file == "-" && is_text(kind)) return add_lines(std::cin, "stdin", inputs);
  try {
    if (file == "-") throw Error("-: {} are files; name them", kind == SampleKind::table ? "tables" : "pictures");
    const std::string content = read_file(file);
    if (kind == SampleKind::table) return add_rows(content, file, inputs);
    if (!is_text(kind)) {
      inputs.push_back({file, content, ""});
      return;
    }
    std::istringstream lines(content);
    const std::size_t before = inputs.size();
    add_lines(lines, file, inputs);
    if (inputs.size() == before) throw Error("{}: has no lines", file);
  } catch (const Error& error) {
    inputs.push_back({file, "", error.what()});
  }
}

/// As much of a text as has room in a row of a terminal.
std::string shortened(const std::string& text) {
  constexpr std::size_t kMostText = 60;
  if (text.size() <= kMostText) return text;
  std::size_t end = kMostText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not inside a character
  return text.substr(0, end) + "…";
}

/// Answers as rows, and as JSON.
class Answers {
 public:
  Answers(const PredictArguments& arguments, SampleKind kind)
      : arguments_(arguments), kind_(kind), masks_(std::make_unique<MaskFiles>(arguments.masks_folder)) {}

  void add(const Input& input, InputPrediction prediction) {
    json entry = {{"input", prediction.input}};
    if (prediction.problem.empty() && !prediction.scores.empty()) {
      try {
        entry["mask"] = masks_->write(prediction).string();
        entry["foreground"] = prediction.foreground;
        rows_.push_back({prediction.input, entry["mask"].get<std::string>(), {{"", prediction.foreground}}});
      } catch (const Error& error) {
        prediction.problem = error.what();
      }
    }
    if (!prediction.problem.empty()) {
      ++problems_;
      fmt::print(stderr, "tutti: {}\n", printable(valid_utf8(prediction.problem)));
      entry["error"] = prediction.problem;
    }
    json answers = json::array();
    for (const std::vector<Guess>& guesses : prediction.guesses) {
      json list = json::array();
      for (const Guess& guess : guesses) list.push_back({{"class", guess.label}, {"probability", guess.probability}});
      answers.push_back(list);
      const bool has_several = prediction.guesses.size() > 1;
      rows_.push_back({has_several ? fmt::format("{} [{}]", prediction.input, answers.size()) : prediction.input,
                       is_text(kind_) ? input.content : "", guesses});
    }
    if (prediction.guesses.size() == 1) entry["answers"] = answers[0];
    if (prediction.guesses.size() > 1) entry["masks"] = answers;
    entries_.push_back(std::move(entry));
  }

  int problems() const { return problems_; }

  void print() const {
    if (arguments_.json) {
      fmt::print("{}\n", json(entries_).dump(1, ' ', false, json::error_handler_t::replace));
    } else if (arguments_.csv) {
      fmt::print("{}", csv(as_table()));
    } else if (!rows_.empty()) {
      fmt::print("{}", aligned_text(as_table(), Table::kMostRows));
    }
  }

 private:
  struct Row {
    std::string input;
    std::string text;  // what was read, or the file that was written
    std::vector<Guess> guesses;
  };

  Table as_table() const {
    Table table;
    table.title = "Predictions";
    table.columns = {{"input", "input"}};
    if (kind_ == SampleKind::segmentation) {
      table.columns.push_back({"mask", "mask"});
      table.columns.push_back({"foreground", "foreground", "percent", 1});
      for (const Row& row : rows_)
        table.rows.push_back({{text_value(valid_utf8(row.input)), text_value(valid_utf8(row.text)),
                               percent_value(row.guesses.at(0).probability)}});
      return table;
    }
    if (is_text(kind_)) table.columns.push_back({"text", "text"});
    std::size_t most = 0;
    for (const Row& row : rows_) most = std::max(most, row.guesses.size());
    for (std::size_t i = 1; i <= most; ++i) {
      const std::string number = i == 1 ? "" : fmt::format("_{}", i);
      const std::string what = kind_ == SampleKind::masked_text ? "word" : "class";
      table.columns.push_back({what + number, i == 1 ? what : "or"});
      table.columns.push_back({"probability" + number, "", "percent", 1});
    }
    for (const Row& row : rows_) {
      TableRow shown{{text_value(valid_utf8(row.input))}};
      if (is_text(kind_)) {
        shown.values.push_back(text_value(valid_utf8(arguments_.csv ? row.text : shortened(row.text))));
      }
      for (const Guess& guess : row.guesses) {
        shown.values.push_back(text_value(guess.label));
        shown.values.push_back(percent_value(guess.probability));
      }
      shown.values.resize(table.columns.size());
      table.rows.push_back(std::move(shown));
    }
    return table;
  }

  const PredictArguments& arguments_;
  const SampleKind kind_;
  std::unique_ptr<MaskFiles> masks_;
  std::vector<json> entries_;
  std::vector<Row> rows_;
  int problems_ = 0;
};

int run(const PredictArguments& arguments) {
  TrainedModel trained = arguments.trained->open();
  const SampleKind kind = trained.traits().kind;
  if (arguments.inputs.empty() && arguments.texts.empty())
    throw UsageError("nothing to predict: name {}", is_text(kind) ? "files of lines, or --text, or - for stdin"
                                                    : kind == SampleKind::table ? "CSV files"
                                                                                : "pictures");
  if (!arguments.texts.empty() && !is_text(kind))
    throw UsageError("--text: model '{}' takes {}", trained.options.model,
                     kind == SampleKind::table ? "rows of CSV files" : "pictures");
  if (!arguments.masks_folder.empty() && kind != SampleKind::segmentation)
    throw UsageError("-o is for masks: model '{}' makes none", trained.options.model);
  // Some files at a time: a folder of pictures need not fit into memory.
  const auto most = static_cast<std::size_t>(trained.options.eval_batch);
  Answers answers(arguments, kind);
  std::vector<Input> inputs;
  const auto flush = [&](std::size_t least) {
    if (inputs.size() < least || inputs.empty()) return;
    std::vector<InputPrediction> predictions = predict(trained, inputs, arguments.top);
    for (std::size_t i = 0; i < inputs.size(); ++i) answers.add(inputs[i], std::move(predictions[i]));
    inputs.clear();
  };
  for (const std::string& text : arguments.texts) inputs.push_back({"--text", text, ""});
  for (const std::string& file : arguments.inputs) {
    add_file(file, kind, inputs);
    flush(most);
  }
  flush(0);
  answers.print();
  return answers.problems() > 0 ? 1 : 0;
}

}  // namespace

std::function<int()> add_predict_command(CLI::App& program) {
  auto arguments = std::make_shared<PredictArguments>();
  CLI::App* command = program.add_subcommand("predict", "what trained weights say of pictures, texts or rows");
  arguments->trained = std::make_unique<TrainedArguments>(*command);
  command
      ->add_option(
          "FILE", arguments->inputs,
          "pictures (JPEG or PNG); for models of text, files with a sentence a line, or - for stdin; for models "
          "of tables, CSV files")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--text", arguments->texts, "a sentence; may be given several times")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->expected(1);
  command->add_option("--top", arguments->top, "so many of the most likely answers")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1000}));
  command->add_option("-o", arguments->masks_folder,
                      "segmentation: folder for the masks; unset: NAME-mask.png beside each picture");
  command->add_flag("--json", arguments->json, "as JSON");
  command->add_flag("--csv", arguments->csv, "as CSV")->excludes("--json");
  command->footer(
      "Examples:\n"
      "  tutti predict first digit.png photos/*.png --top 3\n"
      "  tutti predict sentiment --text 'A fine film.'          or: … - < reviews.txt\n"
      "  tutti predict bert --text 'The capital of France is [MASK].'\n"
      "  tutti predict cells picture.png -o masks\n"
      "  tutti predict churn customers.csv --csv\n"
      "Pictures are scaled to the model's size. For mnist and digits they are light on dark.\n"
      "An input that cannot be read is named on stderr, the others go on, and the exit code is 1.");
  return [arguments] { return run(*arguments); };
}

}  // namespace tutti
