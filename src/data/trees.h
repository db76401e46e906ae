#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// A phrase of a sentence: tokens [begin, end) and the class that they have together.
struct Phrase {
  int32_t begin = 0;
  int32_t end = 0;
  int32_t label = 0;
};

/// A sentence in which each phrase has a class. The first phrase is the whole sentence.
struct LabelledTree {
  std::vector<std::string> tokens;
  std::vector<Phrase> phrases;
};

/// Reads one tree as the Penn Treebank writes them: "(3 (2 a) (4 (3 good) (2 film)))", a class in front of either one
/// word or further trees. Throws Error that says at which column the text is no such tree.
LabelledTree parse_tree(std::string_view text, int classes);

/// Reads a file of trees, one a line; empty lines are skipped. An Error names file and line.
std::vector<LabelledTree> read_trees(const std::filesystem::path& path, int classes);

}  // namespace tutti
