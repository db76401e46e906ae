// Records that are read while they are written, in two pieces, come to the same as those read at once.
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "fuzz/fuzz.h"
#include "watch/run_history.h"

namespace tutti::fuzz {

static std::string text_of_history(const RunHistory& history) {
  const nlohmann::json all = {{"facts", history.facts()},
                              {"progress", history.progress().from(0)},
                              {"epochs", history.epochs().from(0)},
                              {"is_finished", history.is_finished()}};
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

static std::string fuzz_watch(std::string_view input) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("tutti-watch-fuzz-" + std::to_string(::getpid()));
  RunHistory in_pieces, at_once;
  const std::size_t half = input.size() / 2;
  std::ofstream(file, std::ios::binary) << input.substr(0, half);
  in_pieces.read(file);
  std::ofstream(file, std::ios::binary | std::ios::app) << input.substr(half);
  in_pieces.read(file);
  at_once.read(file);
  std::filesystem::remove(file);
  const std::string told = text_of_history(at_once);
  if (text_of_history(in_pieces) != told) throw std::logic_error("records read in two pieces are others");
  return fmt::format("{} {} {}", at_once.progress().rows(), at_once.epochs().rows(),
                     at_once.facts().at("warnings").size());
}

static std::vector<std::string> watch_seeds() {
  return {read_file(std::string(TUTTI_OLD_RECORDS) + "/run_of_0.1.jsonl"),
          "{\"record\":\"progress\",\"time\":1,\"step\":1,\"loss\":null}\n",
          "{\"record\":\"run\",\"config\":{},\"resumed_at_step\":1}\n",
          "\"record\":\"epoch\",\"ranks\":[{\"train_s\":1e308}]",
          "1e308",
          "-1",
          "null",
          "[[[[[[[["};
}

static const Target kWatch("watch", fuzz_watch, watch_seeds);

}  // namespace tutti::fuzz
