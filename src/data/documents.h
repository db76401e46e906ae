#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "data/wordpiece.h"

namespace tutti {

/// The parts of a text that end with a full stop, question or exclamation mark, or with the paragraph (an empty line).
/// A full stop after a title (Mr.) or an initial ends nothing, nor does one before a small letter.
std::vector<std::string_view> split_sentences(std::string_view text);

/// A text file as tokens, sentence by sentence.
struct Document {
  std::vector<int32_t> tokens;
  std::vector<int32_t> sentence_ends;  // places in tokens; none is empty
};

/// All *.txt files of a folder, by name, tokenized by several threads. Throws Error naming the folder if it has none,
/// or a file without a single token.
std::vector<Document> read_documents(const std::filesystem::path& folder, const Vocabulary& vocabulary);

}  // namespace tutti
