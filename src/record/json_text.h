#pragma once

#include <string>
#include <string_view>

namespace tutti {

/// Reads one JSON text from front to end, without building a tree: several times as fast, which a hundred thousand
/// records need. Every call reads one value; one that is of another kind, or damaged, throws Error. The text must
/// outlive the reader.
class JsonText {
 public:
  explicit JsonText(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  /// What the next value begins with: { [ " t f n - or a digit; 0 at the end.
  char next();

  /// Calls member(key) for each member of an object; it has to read the value.
  template <typename Function>
  void object(Function member) {
    open('{');
    for (bool is_first = true; goes_on('}', is_first); is_first = false) {
      const std::string key = text();
      colon();
      member(key);
    }
  }
  /// Calls element() for each element of an array; it has to read the value.
  template <typename Function>
  void array(Function element) {
    open('[');
    for (bool is_first = true; goes_on(']', is_first); is_first = false) element();
  }
  std::string text();
  double number();
  bool flag();
  /// Reads whatever comes, and returns it as it stands in the text.
  std::string_view skip();
  /// Throws Error if anything but space is left.
  void end();

 private:
  void open(char bracket);
  void close();
  void colon();
  bool goes_on(char bracket, bool is_first);
  void word(std::string_view expected);
  void escape(std::string& to);
  unsigned hex4();
  [[noreturn]] void refuse(const char* what) const;

  const char* at_;
  const char* end_;
  int depth_ = 0;
};

}  // namespace tutti
