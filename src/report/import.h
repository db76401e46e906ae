#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/cell.h"

namespace tutti {

/// A published text, taken apart into lines.
struct PublishedText {
  std::string name;                // of the file, for messages and as the sweep's name
  std::vector<std::string> lines;  // without line ends
  std::vector<std::string> notes;  // what a reader should know of how it was read
};

PublishedText published_text(const std::string& name, const std::string& content);

/// Results as their authors wrote them, as records with the source "published". Which of the forms below the text has
/// is seen by its content. Throws Error naming file and line of what cannot be read.
std::vector<Cell> import_published(PublishedText& text);
std::vector<Cell> import_published(const std::filesystem::path& file, std::vector<std::string>& notes);

// One parser per form; each says first whether a text looks like its own.

/// "workers 2", "Running with 4 GPUs", then each rank's "Training time: … seconds" and "Communication time: … seconds".
bool has_rank_times(const PublishedText& text);
std::vector<Cell> import_rank_times(PublishedText& text);

/// Headings with model, node, data/s and speed-up; below them "- Step200: … data/sec" and "- Epoch 0 in … sec, …".
bool has_step_rates(const PublishedText& text);
std::vector<Cell> import_step_rates(PublishedText& text);

/// "| DNN | BS | CONNECTION | METHOD | Baseline | 4 GPUs | …", with "mean +- deviation".
bool has_strategies(const PublishedText& text);
std::vector<Cell> import_strategies(PublishedText& text);

/// "| #Nodes | #GPUs | Epoch | Batchsize | Steps | Runtime | Speedup | Node(s) |" below a heading per data set.
bool has_nodes(const PublishedText& text);
std::vector<Cell> import_nodes(PublishedText& text);

// For the parsers.

/// Throws Error about a line, counted from 0.
[[noreturn]] void refuse_line(const PublishedText& text, std::size_t line, const std::string& why);
std::string trimmed(const std::string& text);
/// The cells of a Markdown row, trimmed, without the emphasis of "**"; none for a line that is no row.
std::vector<std::string> row_fields(const std::string& line);
/// "|---|:---|"
bool is_rule(const std::string& line);
double number_of(const PublishedText& text, std::size_t line, const std::string& field, const std::string& what);
int count_of(const PublishedText& text, std::size_t line, const std::string& field, const std::string& what);
/// A cell of this text, named after its line.
Cell published_cell(const PublishedText& text, std::size_t line);

}  // namespace tutti
