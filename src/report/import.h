#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "published/published_text.h"
#include "record/cell.h"

namespace tutti {

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

/// Of published/strategies_table.h.
std::vector<Cell> import_strategies(PublishedText& text);

/// "| #Nodes | #GPUs | Epoch | Batchsize | Steps | Runtime | Speedup | Node(s) |" below a heading per data set.
bool has_nodes(const PublishedText& text);
std::vector<Cell> import_nodes(PublishedText& text);

/// Of published/figures_file.h: the figures of any of the forms above.
std::vector<Cell> import_figures(PublishedText& text);

// What several of them do.

constexpr int kMostPublishedRanks = 1 << 16;
/// A cell of this text, named after its line.
Cell published_cell(const PublishedText& text, std::size_t line);
/// Names where it ran. Nodes are unlike: the same model on another is another configuration.
void place_on(Cell& cell, std::vector<NodeShare> nodes);
/// Takes a node list of Slurm's, "Avg" for an average over several. Notes one that does not name as many nodes as the
/// row has.
void take_node_list(PublishedText& text, std::size_t line, const std::string& list, Cell& cell);
void note_steps_named_twice(PublishedText& text, const Cell& cell);

}  // namespace tutti
