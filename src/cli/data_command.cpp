#include "cli/data_command.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "base/files.h"
#include "base/names.h"
#include "base/sha256.h"
#include "cli/json_output.h"
#include "data/catalog.h"
#include "data/dataset.h"
#include "data/download.h"
#include "data/folders.h"
#include "data/trees.h"
#include "data/wordpiece.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

// More samples than this are made rather than stored: a look at some of them is enough.
constexpr int64_t kMostSamplesRead = 200000;

struct DataArguments {
  std::string action = "list";
  std::string name;
  std::string folder;
  bool as_json = false;
};

const char* kind_name(SampleKind kind) {
  switch (kind) {
    case SampleKind::images:
      return "images";
    case SampleKind::segmentation:
      return "segmentation";
    case SampleKind::sentences:
      return "sentences";
    case SampleKind::masked_text:
      return "masked text";
    case SampleKind::table:
      return "table";
  }
  return "";
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

DataOptions options_for(const std::string& name, const std::string& folder) {
  DataOptions options;
  options.name = name;
  options.folder = folder;
  return options;
}

std::string how_to_get(const KnownData& known) {
  return fmt::format("`tutti data get {}` {}", known.name,
                     known.files.empty() ? "says what to put where" : "fetches it");
}

/// Where an entry's files are, or "".
std::string found_in(const KnownData& known) {
  const fs::path folder = find_data_folder("", known.folder);
  return folder.empty() ? "" : fs::absolute(folder).lexically_normal().string();
}

/// A data set as the list shows it.
struct DataRow {
  std::string name, kind, where, problem;
  std::optional<std::pair<int64_t, int64_t>> samples;  // to train, and to test
};

DataRow look_at_data(const std::string& name) {
  DataRow row{name, "", "", "", {}};
  if (name == "synthetic") {
    row.kind = "as the model";
    row.where = "made up, of the shape that the model takes";
    return row;
  }
  const KnownData* const known = find_known_data(name);
  row.where = known != nullptr ? found_in(*known) : name == "digits" ? "drawn by Tutti" : "made up";
  if (row.where.empty()) {
    row.problem = "not there: " + how_to_get(*known);
    return row;
  }
  try {
    const TrainTest data = open_data(options_for(name, ""));
    row.kind = kind_name(data.train->traits().kind);
    row.samples = {data.train->size(), data.test->size()};
  } catch (const Error& error) {
    row.problem = "unusable: " + first_line(error.what());
  }
  return row;
}

int list(bool as_json) {
  nlohmann::json all = nlohmann::json::array();
  const std::string layout = "{:<23} {:<13} {:>17}  {}\n";
  if (!as_json) fmt::print(fmt::runtime(layout), "name", "kind", "train + test", "where");
  for (const std::string& name : data_names()) {
    const DataRow row = look_at_data(name);
    const auto& samples = row.samples;
    const auto or_null = [](const std::string& text) { return text.empty() ? nlohmann::json() : nlohmann::json(text); };
    all.push_back({{"name", row.name},
                   {"kind", or_null(row.kind)},
                   {"train", samples ? nlohmann::json(samples->first) : nlohmann::json()},
                   {"test", samples ? nlohmann::json(samples->second) : nlohmann::json()},
                   {"where", or_null(row.where)},
                   {"problem", or_null(row.problem)}});
    if (as_json) continue;
    fmt::print(fmt::runtime(layout), row.name, row.kind,
               samples ? fmt::format("{} + {}", samples->first, samples->second) : "",
               row.problem.empty() ? row.where : row.problem);
  }
  if (as_json) print_json(all);
  return 0;
}

/// What is wrong with one data set. Prints as it goes, so that one run shows everything; as JSON, at the end.
class Verification {
 public:
  explicit Verification(bool as_json) : as_json_(as_json) {}

  void begin(const std::string& what) {
    if (!as_json_) fmt::print("{}\n", what);
  }
  void fine(const std::string& what) { add(true, what); }
  void wrong(const std::string& what) {
    add(false, what);
    ++problems_;
  }
  void check_file(const fs::path& path, const std::string& sha256) {
    if (!fs::exists(path)) return wrong(path.string() + ": is missing");
    const std::string found = sha256_of_file(path);
    if (found == sha256) return fine(path.filename().string());
    wrong(fmt::format("{}: its SHA-256 is {}, expected {}", path.string(), found, sha256));
  }
  /// Runs a check that says by an Error what is wrong.
  template <typename Check>
  void run(Check check) {
    try {
      fine(check());
    } catch (const Error& error) {
      wrong(error.what());
    }
  }
  int problems() const { return problems_; }
  const nlohmann::json& checks() const { return checks_; }

 private:
  void add(bool is_ok, const std::string& what) {
    checks_.push_back({{"ok", is_ok}, {"what", what}});
    if (!as_json_) fmt::print("  {}  {}\n", is_ok ? "ok   " : "WRONG", what);
  }

  bool as_json_;
  int problems_ = 0;
  nlohmann::json checks_ = nlohmann::json::array();
};

/// The lines of sha256sum's output: "HASH  NAME".
void check_sums(const fs::path& folder, Verification& verification) {
  std::istringstream lines(read_file(folder / "SHA256SUMS"));
  const int before = verification.problems();
  int64_t files = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.find_first_of(" *");
    if (space == std::string::npos) continue;
    const fs::path path = folder / line.substr(std::min(line.find_first_not_of(" *", space), line.size()));
    const std::string sha256 = line.substr(0, space);
    if (!fs::exists(path) || sha256_of_file(path) != sha256) verification.check_file(path, sha256);
    ++files;
  }
  if (verification.problems() == before) verification.fine(fmt::format("SHA256SUMS: {} files", files));
}

/// Opens the set and reads its samples.
void read_all(const DataOptions& options, const KnownData* known, Verification& verification) {
  TrainTest data;
  try {
    data = open_data(options);
  } catch (const Error& error) {
    return verification.wrong(error.what());
  }
  const int before = verification.problems();
  for (const auto& part : {data.train, data.test}) {
    Batch batch = part->make_batch(1, false);
    const int64_t step = part->size() / kMostSamplesRead + 1;
    for (int64_t i = 0; i < part->size(); i += step) {
      try {
        part->load(i, 0, batch);
      } catch (const Error& error) {
        verification.wrong(error.what());
      }
    }
  }
  if (verification.problems() > before) return;
  const std::string found = fmt::format("{} training and {} test samples", data.train->size(), data.test->size());
  const bool is_expected = known == nullptr || known->train_size == 0 ||
                           (data.train->size() == known->train_size && data.test->size() == known->test_size);
  if (!is_expected)
    return verification.wrong(fmt::format("{}, expected {} and {}", found, known->train_size, known->test_size));
  verification.fine(found + (data.train->size() > kMostSamplesRead ? ", some of them made" : ", all of them read"));
}

void verify_known(const KnownData& known, const std::string& given, Verification& verification) {
  const fs::path folder =
      require_data_folder(given, known.folder, how_to_get(known) + ", or name its folder with --data-path.");
  verification.begin(fmt::format("{} in {}", known.name, fs::absolute(folder).lexically_normal().string()));
  // Files of another origin (unpacked ones, for instance) are judged by what they hold.
  const bool has_known_files = !known.files.empty() && fs::exists(folder / known.files.front().name);
  if (has_known_files) {
    for (const KnownFile& file : known.files) verification.check_file(folder / file.name, file.sha256);
  } else if (fs::exists(folder / "SHA256SUMS")) {
    check_sums(folder, verification);
  }
  if (known.name == "bert-vocab") {
    verification.run([&] {
      const fs::path path = folder / "vocab.txt";
      return fmt::format("{} tokens", Vocabulary(read_file(path), path.string()).size());
    });
    return;
  }
  if (known.name == "sst5") {
    verification.run([&] { return fmt::format("dev.txt: {} trees", read_trees(folder / "dev.txt", 5).size()); });
  }
  read_all(options_for(known.name, folder.string()), &known, verification);
}

std::vector<std::string> verifiable_names() {
  std::vector<std::string> names = data_names();
  names.emplace_back("bert-vocab");
  return names;
}

int verify(const DataArguments& arguments) {
  Verification verification(arguments.as_json);
  const KnownData* const known = find_known_data(arguments.name);
  if (known != nullptr) {
    verify_known(*known, arguments.folder, verification);
    if (const KnownData* const other = find_known_data(known->also_needs)) verify_known(*other, "", verification);
  } else {
    verification.begin(arguments.name);
    read_all(options_for(arguments.name, arguments.folder), nullptr, verification);
  }
  if (arguments.as_json) print_json({{"name", arguments.name}, {"checks", verification.checks()}});
  std::fflush(stdout);
  if (verification.problems() > 0)
    throw Error("{}: {} of these checks failed", arguments.name, verification.problems());
  return 0;
}

/// Where a file is fetched from: its own address, or $TUTTI_DATA_MIRROR/FOLDER/FILE.
std::string address(const KnownData& known, const KnownFile& file) {
  const char* const mirror = std::getenv("TUTTI_DATA_MIRROR");
  return mirror == nullptr || *mirror == '\0' ? file.url : fmt::format("{}/{}/{}", mirror, known.folder, file.name);
}

int get(const DataArguments& arguments) {
  const KnownData* const known = find_known_data(arguments.name);
  if (known == nullptr) {
    fmt::print("{} has no files: nothing to get\n", arguments.name);
    return 0;
  }
  const fs::path folder = arguments.folder.empty() ? fs::path("data") / known->folder : fs::path(arguments.folder);
  if (known->files.empty()) {
    throw Error("{} cannot be fetched: put {} into {}, or use --data-path", known->name, known->by_hand,
                folder.string());
  }
  for (const KnownFile& file : known->files) {
    const fs::path to = folder / file.name;
    if (fs::exists(to)) {
      if (sha256_of_file(to) != file.sha256)
        throw Error("{} is there already, but is not the known file: move it away, then repeat this", to.string());
      fmt::print("{}: is there\n", to.string());
      continue;
    }
    download({address(*known, file), to, file.sha256});
    fmt::print("{}: fetched, {}, SHA-256 as expected\n", to.string(), readable_bytes(fs::file_size(to)));
    std::fflush(stdout);
  }
  if (!known->also_needs.empty() && find_data_folder("", known->also_needs).empty())
    fmt::print("It also needs {0}: `tutti data get {0}`\n", known->also_needs);
  return 0;
}

int run(const DataArguments& arguments) {
  if (arguments.action == "list") return list(arguments.as_json);
  if (arguments.action != "verify" && arguments.action != "get")
    throw UsageError(unknown_name("action", arguments.action, {"list", "verify", "get"}));
  if (arguments.as_json && arguments.action == "get")
    throw UsageError("--json goes with `tutti data list` and `tutti data verify`");
  if (arguments.name.empty()) throw UsageError("`tutti data {0}` needs a name: tutti data {0} mnist", arguments.action);
  const std::vector<std::string> names = verifiable_names();
  if (std::find(names.begin(), names.end(), arguments.name) == names.end())
    throw UsageError(unknown_name("data set", arguments.name, names));
  return arguments.action == "verify" ? verify(arguments) : get(arguments);
}

}  // namespace

std::function<int()> add_data_command(CLI::App& program) {
  auto arguments = std::make_shared<DataArguments>();
  CLI::App* command = program.add_subcommand("data", "list the data sets, verify one's files, or get them");
  command->add_option("action", arguments->action, "list, verify or get")->capture_default_str();
  command->add_option("name", arguments->name, "a data set's name, or bert-vocab");
  command->add_option("--data-path,--data-folder", arguments->folder,
                      "where the files are, or shall be; unset: where training looks, or data/NAME");
  add_json_flag(*command, arguments->as_json);
  command->footer(
      "Examples:\n"
      "  tutti data                      what there is, how much, and where\n"
      "  tutti data verify mnist         checksums, counts, every sample read\n"
      "  tutti data get mnist            fetches what has a public source; goes on where it was interrupted\n"
      "$https_proxy is respected; $TUTTI_DATA_MIRROR/FOLDER/FILE replaces the public sources.");
  return [arguments] { return run(*arguments); };
}

}  // namespace tutti
