#include "data/documents.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <thread>

#include "base/files.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kMostThreads = 8;

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool is_small_letter(char c) { return c >= 'a' && c <= 'z'; }
bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }

/// Does a full stop after this text belong to its last word?
bool ends_in_abbreviation(std::string_view text) {
  static constexpr std::array<std::string_view, 16> kTitles{
      "Mr", "Mrs", "Ms", "Dr", "St", "Jr", "Sr", "Rev", "Hon", "Capt", "Col", "Gen", "Lieut", "Esq", "Messrs", "Prof"};
  size_t begin = text.size();
  while (begin > 0 && (is_small_letter(text[begin - 1]) || is_capital(text[begin - 1]))) --begin;
  const std::string_view word = text.substr(begin);
  if (word.size() == 1) return is_capital(word[0]) && word[0] != 'I';
  return std::find(kTitles.begin(), kTitles.end(), word) != kTitles.end();
}

/// The place after a sentence's end mark at `at` and the quotes and brackets that close with it.
size_t skip_end_marks(std::string_view text, size_t at) {
  while (at < text.size() && std::string_view(".!?\"')]_*").find(text[at]) != std::string_view::npos) ++at;
  return at;
}

/// Where the paragraph goes on after the spaces at `at`, or npos if an empty line or the text's end comes first.
size_t skip_spaces(std::string_view text, size_t at) {
  int lines = 0;
  for (; at < text.size() && is_space(text[at]); ++at) lines += text[at] == '\n' ? 1 : 0;
  return lines > 1 || at == text.size() ? std::string_view::npos : at;
}

Document tokenize(const fs::path& path, WordPiece& word_piece) {
  const std::string text = read_file(path);
  Document document;
  for (const std::string_view sentence : split_sentences(text)) {
    const size_t before = document.tokens.size();
    word_piece.tokenize(sentence, document.tokens);
    if (document.tokens.size() > before) document.sentence_ends.push_back(static_cast<int32_t>(document.tokens.size()));
  }
  if (document.tokens.empty()) throw Error("{}: holds no text", path.string());
  return document;
}

}  // namespace

std::vector<std::string_view> split_sentences(std::string_view text) {
  std::vector<std::string_view> sentences;
  size_t begin = 0;
  const auto end_sentence = [&](size_t end, size_t next) {
    if (end > begin) sentences.push_back(text.substr(begin, end - begin));
    begin = next;
  };
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '\n' && skip_spaces(text, at) == std::string_view::npos) {
      const size_t end = at;
      while (at < text.size() && is_space(text[at])) ++at;
      end_sentence(end, at);
    } else if (c == '.' || c == '!' || c == '?') {
      const bool is_abbreviation = c == '.' && ends_in_abbreviation(text.substr(begin, at - begin));
      at = skip_end_marks(text, at);
      if (is_abbreviation || at == text.size() || !is_space(text[at])) continue;
      const size_t next = skip_spaces(text, at);
      if (next == std::string_view::npos || is_small_letter(text[next])) continue;
      end_sentence(at, next);
      at = next;
    } else {
      ++at;
    }
  }
  end_sentence(text.size(), text.size());
  return sentences;
}

std::vector<Document> read_documents(const fs::path& folder, const Vocabulary& vocabulary) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".txt") paths.push_back(entry->path());
  }
  if (error) throw Error("{}: cannot list it ({})", folder.string(), error.message());
  if (paths.empty()) throw Error("{}: holds no *.txt files", folder.string());
  std::sort(paths.begin(), paths.end());

  std::vector<Document> documents(paths.size());
  std::vector<std::exception_ptr> errors(paths.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    WordPiece word_piece(vocabulary);
    for (size_t i = next++; i < paths.size(); i = next++) {
      try {
        documents[i] = tokenize(paths[i], word_piece);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  std::vector<std::thread> threads;
  const unsigned cores = std::min(std::max(std::thread::hardware_concurrency(), 1U), kMostThreads);
  for (size_t i = 1; i < std::min<size_t>(cores, paths.size()); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& problem : errors) {
    if (problem) std::rethrow_exception(problem);
  }
  return documents;
}

}  // namespace tutti
