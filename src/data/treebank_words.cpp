#include "data/treebank_words.h"

#include <algorithm>
#include <array>

namespace tutti {
namespace {

constexpr std::array<std::string_view, 7> kEndings = {"n't", "'s", "'re", "'ve", "'ll", "'d", "'m"};

bool ends_with(std::string_view word, std::string_view ending) {
  return word.size() >= ending.size() && word.substr(word.size() - ending.size()) == ending;
}

/// What the treebank writes for a mark; `is_opening`: in front of a word.
std::string mark_name(char mark, bool is_opening) {
  if (mark == '"') return is_opening ? "``" : "''";
  if (mark == '(') return "-lrb-";
  if (mark == ')') return "-rrb-";
  return {mark};
}

/// A word without marks around it, and the ending that is a word of its own.
void add_word(std::string_view word, std::vector<std::string>& words) {
  for (const std::string_view ending : kEndings) {
    if (word.size() <= ending.size() || !ends_with(word, ending)) continue;
    words.emplace_back(word.substr(0, word.size() - ending.size()));
    words.emplace_back(ending);
    return;
  }
  if (!word.empty()) words.emplace_back(word);
}

/// Text between two spaces.
void add_piece(std::string_view piece, std::vector<std::string>& words) {
  const bool is_whole = piece == "``" || piece == "''" || piece == "..." || piece == "--" ||
                        std::find(kEndings.begin(), kEndings.end(), piece) != kEndings.end();
  if (is_whole) {
    words.emplace_back(piece);
    return;
  }
  if (const size_t dash = piece.find("--"); dash != std::string_view::npos) {
    if (dash > 0) add_piece(piece.substr(0, dash), words);
    words.emplace_back("--");
    if (dash + 2 < piece.size()) add_piece(piece.substr(dash + 2), words);
    return;
  }
  while (!piece.empty() && std::string_view("\"'([{`").find(piece.front()) != std::string_view::npos) {
    words.push_back(mark_name(piece.front(), true));
    piece.remove_prefix(1);
  }
  std::vector<std::string> after;  // the last first
  while (!piece.empty() && std::string_view("\"').,;:!?]}").find(piece.back()) != std::string_view::npos) {
    const bool is_ellipsis = ends_with(piece, "...");
    after.push_back(is_ellipsis ? "..." : mark_name(piece.back(), false));
    piece.remove_suffix(is_ellipsis ? 3 : 1);
  }
  add_word(piece, words);
  words.insert(words.end(), after.rbegin(), after.rend());
}

}  // namespace

std::vector<std::string> treebank_words(std::string_view sentence) {
  constexpr std::string_view kSpaces = " \t\r\n\v\f";
  std::string text(sentence);
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  std::vector<std::string> words;
  const std::string_view all = text;
  for (size_t begin = all.find_first_not_of(kSpaces); begin != std::string_view::npos;) {
    const size_t end = std::min(all.find_first_of(kSpaces, begin), all.size());
    add_piece(all.substr(begin, end - begin), words);
    begin = all.find_first_not_of(kSpaces, end);
  }
  return words;
}

}  // namespace tutti
