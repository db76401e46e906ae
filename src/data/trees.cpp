#include "data/trees.h"

#include "base/files.h"
#include "tutti/error.h"

namespace tutti {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/// Reads a tree from left to right. The open brackets are kept in a list, not in calls: a line of a million brackets is
/// then an error like any other.
class TreeParser {
 public:
  TreeParser(std::string_view text, int classes) : text_(text), classes_(classes) {}

  LabelledTree parse() {
    do {
      skip_spaces();
      if (at_ == text_.size()) fail(open_.empty() ? "a tree begins with '('" : "the tree ends before its last ')'");
      if (text_[at_] == '(') {
        open_phrase();
      } else if (open_.empty()) {
        fail("a tree begins with '('");
      } else if (text_[at_] == ')') {
        close_phrase();
      } else {
        read_word();
      }
    } while (!open_.empty());
    skip_spaces();
    if (at_ < text_.size()) fail("text after the end of the tree");
    return std::move(tree_);
  }

 private:
  enum class Holds { kNothing, kWord, kTrees };
  struct OpenPhrase {
    size_t phrase;
    Holds holds = Holds::kNothing;
  };

  [[noreturn]] void fail(const std::string& what) const { throw Error("column {}: {}", at_ + 1, what); }

  void skip_spaces() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }

  std::string_view next_word() {
    const size_t begin = at_;
    while (at_ < text_.size() && !is_blank(text_[at_]) && text_[at_] != '(' && text_[at_] != ')') ++at_;
    return text_.substr(begin, at_ - begin);
  }

  void open_phrase() {
    if (!open_.empty()) {
      if (open_.back().holds == Holds::kWord) fail("a phrase holds one word or further phrases, not both");
      open_.back().holds = Holds::kTrees;
    }
    ++at_;
    skip_spaces();
    const size_t label_at = at_;
    const std::string_view label = next_word();
    const int value = label.size() == 1 && label[0] >= '0' && label[0] <= '9' ? label[0] - '0' : classes_;
    if (value >= classes_) {
      at_ = label_at;
      fail(fmt::format("expected a class from 0 to {} after '(', found '{}'", classes_ - 1, label));
    }
    open_.push_back({tree_.phrases.size()});
    tree_.phrases.push_back({static_cast<int32_t>(tree_.tokens.size()), 0, value});
  }

  void close_phrase() {
    if (open_.back().holds == Holds::kNothing) fail("a phrase without a word");
    tree_.phrases[open_.back().phrase].end = static_cast<int32_t>(tree_.tokens.size());
    open_.pop_back();
    ++at_;
  }

  void read_word() {
    if (open_.back().holds != Holds::kNothing) fail("a phrase holds one word or further phrases, each in brackets");
    open_.back().holds = Holds::kWord;
    tree_.tokens.emplace_back(next_word());
  }

  const std::string_view text_;
  const int classes_;
  size_t at_ = 0;
  std::vector<OpenPhrase> open_;
  LabelledTree tree_;
};

}  // namespace

LabelledTree parse_tree(std::string_view text, int classes) { return TreeParser(text, classes).parse(); }

std::vector<LabelledTree> read_trees(const std::filesystem::path& path, int classes) {
  const std::string content = read_file(path);
  std::vector<LabelledTree> trees;
  int64_t line = 0;
  for (size_t begin = 0; begin < content.size();) {
    ++line;
    const size_t end = std::min(content.find('\n', begin), content.size());
    const std::string_view text(content.data() + begin, end - begin);
    begin = end + 1;
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    try {
      trees.push_back(parse_tree(text, classes));
    } catch (const Error& error) {
      throw Error("{}:{}: {}", path.string(), line, error.what());
    }
  }
  if (trees.empty()) throw Error("{}: holds no trees", path.string());
  return trees;
}

}  // namespace tutti
