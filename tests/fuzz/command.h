#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "data/idx_files.h"
#include "fuzz/fuzz.h"

namespace tutti::fuzz {

/// The folder that commands find their files in; one for the whole run, in memory if $TMPDIR is.
const std::filesystem::path& command_folder();

/// An input that stands for several files has this between them.
constexpr std::string_view kNextFile = "\n%%\n";

/// Writes the input's files under these names into command_folder(); those that it does not have are empty.
void write_input(std::string_view input, std::initializer_list<const char*> names);

/// What came of `tutti WORDS…`, run to its end in this process: its exit code, or what its Error said. What it prints
/// goes nowhere.
std::string command_outcome(const std::vector<std::string>& words);

}  // namespace tutti::fuzz
