#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tutti/error.h"

// A fuzz target is a file that defines these two functions, linked with driver.cpp, which calls the first with ever new
// mutations of what the second returns. Whatever is not an orderly end of fuzz_one is a bug: a crash, a report of a
// sanitizer, an exception that is not a tutti::Error, or ten seconds without an end.

namespace tutti::fuzz {

/// Parses `input`. Returns what came of it: an input with a new outcome is mutated further.
std::string fuzz_one(std::string_view input);

/// Small valid inputs, and some pieces that such inputs are made of.
std::vector<std::string> seeds();

/// The outcome of a parser: "ok", or what the Error said, without the numbers and quotations in it.
template <typename Parser>
std::string outcome(Parser parser) {
  try {
    parser();
    return "ok";
  } catch (const Error& error) {
    std::string text;
    bool is_quoted = false;
    for (const char c : std::string_view(error.what())) {
      if (c == '\'') is_quoted = !is_quoted;
      if (!is_quoted && (c < '0' || c > '9') && text.size() < 60) text += c;
    }
    return text;
  }
}

/// A file in memory with changing content, for parsers that want a path.
class MemoryFile {
 public:
  MemoryFile();
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  /// The path under which `content` can now be read.
  const std::string& hold(std::string_view content);

 private:
  int descriptor_;
  std::string path_;
};

}  // namespace tutti::fuzz
