#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tutti/error.h"

namespace tutti::fuzz {

/// What NAME_fuzz.cpp fuzzes, with a constant of this type: driver.cpp calls `run` with ever new mutations of what
/// `seeds` returns, small valid inputs and some pieces that such inputs are made of. `run` returns what came of an
/// input: one with a new outcome is mutated further. Whatever is not an orderly end of it is a bug: a crash, a report
/// of a sanitizer, an exception that is not a tutti::Error, ten seconds without an end, or more memory than a gigabyte.
struct Target {
  using Run = std::string (*)(std::string_view input);
  using Seeds = std::vector<std::string> (*)();
  Target(const char* name, Run run, Seeds seeds);

  Run run;
  Seeds seeds;
};

/// The outcome of a parser: "ok", or what the Error said, without the numbers, quotations and paths in it.
template <typename Parser>
std::string outcome(Parser parser) {
  try {
    parser();
    return "ok";
  } catch (const Error& error) {
    std::string text;
    bool is_quoted = false, is_path = false;
    for (const char c : std::string_view(error.what())) {
      if (c == '\'') is_quoted = !is_quoted;
      is_path = c == '/' || (is_path && c != ' ' && c != ',' && c != ':');
      if (!is_quoted && !is_path && (c < '0' || c > '9') && text.size() < 60) text += c;
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
