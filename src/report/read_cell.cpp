#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "report/cell.h"
#include "report/cell_fields.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using nlohmann::json;
using Key = const std::string&;

// Settings that tell repeats apart and not configurations.
bool is_of_the_repeat(Key key) { return key == "seed" || key == "repeat" || key == "name"; }

std::string plain(JsonText& text) { return text.next() == '"' ? text.text() : std::string(text.skip()); }

std::string* text_setting(Configuration& config, Key key) {
  static const std::unordered_map<std::string, std::string Configuration::*> settings = {
      {"model", &Configuration::model},         {"data", &Configuration::data},
      {"strategy", &Configuration::strategy},   {"wire", &Configuration::wire},
      {"transport", &Configuration::transport}, {"network", &Configuration::network},
      {"precision", &Configuration::precision}, {"device", &Configuration::device}};
  const auto found = settings.find(key);
  return found == settings.end() ? nullptr : &(config.*found->second);
}

int* count_setting(Configuration& config, Key key) {
  return key == "ranks"     ? &config.ranks
         : key == "nodes"   ? &config.nodes
         : key == "servers" ? &config.servers
         : key == "workers" ? &config.workers
                            : nullptr;
}

void read_configuration(JsonText& text, Configuration& config) {
  std::string others;
  object_at(text, "config", [&](Key key) {
    if (text.next() == 'n' || is_of_the_repeat(key))
      text.skip();
    else if (std::string* const setting = text_setting(config, key))
      *setting = plain(text);
    else if (key == "batch")
      config.batch = whole_at(text, key, 0);
    else if (int* const count = count_setting(config, key))
      *count = static_cast<int>(whole_at(text, key, 0));
    else if (key == "other")
      config.other = plain(text);
    else
      others += fmt::format("{}{} {}", others.empty() ? "" : ", ", key, plain(text));
  });
  config.other += (config.other.empty() || others.empty() ? "" : ", ") + others;
}

RankTimesOfEpoch read_rank(JsonText& text, int number) {
  RankTimesOfEpoch rank;
  rank.rank = number;
  object_at(text, "ranks", [&](Key key) {
    if (key == "rank")
      rank.rank = static_cast<int>(whole_at(text, key, number));
    else if (key == "node")
      rank.node = text_at(text, key);
    else if (key == "train_s")
      rank.train_s = number_at(text, key);
    else if (key == "comm_s")
      rank.comm_s = number_at(text, key);
    else if (key == "comm_exposed_s")
      rank.comm_exposed_s = number_at(text, key);
    else if (key == "data_wait_s")
      rank.data_wait_s = number_at(text, key);
    else
      text.skip();
  });
  return rank;
}

RateAtStep read_rate(JsonText& text) {
  RateAtStep rate;
  object_at(text, "data_per_s", [&](Key key) {
    if (key == "step")
      rate.step = whole_at(text, key, 0);
    else if (key == "value")
      rate.data_per_s = number_at(text, key).value_or(0);
    else
      text.skip();
  });
  return rate;
}

EpochTimes read_epoch(JsonText& text) {
  EpochTimes epoch;
  object_at(text, "epochs", [&](Key key) {
    if (key == "epoch")
      epoch.epoch = static_cast<int>(whole_at(text, key, 0));
    else if (key == "train_s")
      epoch.train_s = number_at(text, key);
    else if (key == "test_s")
      epoch.test_s = number_at(text, key);
    else if (key == "test_accuracy")
      epoch.test_accuracy = number_at(text, key);
    else if (key == "loss")
      epoch.loss = number_at(text, key);
    else if (key == "data_per_s" && text.next() == '[')  // a training run has a number here, of the whole epoch
      text.array([&] { epoch.rates.push_back(read_rate(text)); });
    else if (key == "ranks")
      array_at(text, key, [&] { epoch.ranks.push_back(read_rank(text, static_cast<int>(epoch.ranks.size()))); });
    else
      text.skip();
  });
  return epoch;
}

StepParts read_parts(JsonText& text) {
  StepParts parts;
  text.object([&](Key key) {
    if (key == "compute_s")
      parts.compute_s = number_at(text, key).value_or(0);
    else if (key == "data_wait_s")
      parts.data_wait_s = number_at(text, key).value_or(0);
    else if (key == "optimizer_s")
      parts.optimizer_s = number_at(text, key).value_or(0);
    else if (key == "exposed")
      object_at(text, key, [&](Key cause) { parts.exposed.emplace_back(cause, number_at(text, cause).value_or(0)); });
    else
      text.skip();
  });
  return parts;
}

NodeShare read_node(JsonText& text) {
  NodeShare node;
  object_at(text, "nodes", [&](Key key) {
    if (key == "name")
      node.name = text_at(text, key);
    else if (key == "ranks")
      node.ranks = static_cast<int>(whole_at(text, key, 0));
    else if (key == "gpu")
      node.gpu = text_at(text, key);
    else
      text.skip();
  });
  return node;
}

std::optional<StatedRate> read_throughput(JsonText& text) {
  std::optional<double> mean, deviation;
  object_at(text, "throughput", [&](Key key) {
    if (key == "mean")
      mean = number_at(text, key);
    else if (key == "deviation")
      deviation = number_at(text, key);
    else
      text.skip();
  });
  if (!mean) return std::nullopt;
  return StatedRate{*mean, deviation};
}

void read_stated(JsonText& text, Stated& stated) {
  object_at(text, "stated", [&](Key key) {
    if (key == "speedup")
      stated.speedup = number_at(text, key);
    else if (key == "epochs")
      stated.epochs = static_cast<int>(whole_at(text, key, 0));
    else if (key == "average")
      stated.is_average = flag_at(text, key);
    else
      text.skip();
  });
}

Source source_named(const std::string& name) {
  if (name.empty() || name == "measured") return Source::measured;
  if (name == "simulated") return Source::simulated;
  if (name == "published") return Source::published;
  throw Error("its source is '{}'; measured, simulated and published are known", name);
}

using Reader = void (*)(JsonText& text, Key key, Cell& cell);

const std::unordered_map<std::string, Reader>& readers() {
  static const std::unordered_map<std::string, Reader> table = {
      {"source", [](JsonText& t, Key k, Cell& c) { c.source = source_named(text_at(t, k)); }},
      {"sweep", [](JsonText& t, Key k, Cell& c) { c.sweep = text_at(t, k); }},
      {"cell", [](JsonText& t, Key k, Cell& c) { c.id = text_at(t, k); }},
      {"repeat", [](JsonText& t, Key k, Cell& c) { c.repeat = static_cast<int>(whole_at(t, k, 1)); }},
      {"status", [](JsonText& t, Key k, Cell& c) { c.is_failed = text_at(t, k) == "failed"; }},
      {"error", [](JsonText& t, Key k, Cell& c) { c.error = text_at(t, k); }},
      {"config", [](JsonText& t, Key, Cell& c) { read_configuration(t, c.config); }},
      {"baseline", [](JsonText& t, Key k, Cell& c) { c.is_baseline = flag_at(t, k); }},
      {"load", [](JsonText& t, Key k, Cell& c) { c.load = number_at(t, k); }},
      {"command", [](JsonText& t, Key k, Cell& c) { c.command = text_at(t, k); }},
      {"samples_per_step", [](JsonText& t, Key k, Cell& c) { c.samples_per_step = number_at(t, k).value_or(0); }},
      {"step_s", [](JsonText& t, Key k, Cell& c) { c.step_s = numbers_at(t, k); }},
      {"warmup_steps", [](JsonText& t, Key k, Cell& c) { c.warmup_steps = whole_at(t, k, 0); }},
      {"throughput", [](JsonText& t, Key, Cell& c) { c.throughput = read_throughput(t); }},
      {"epochs", [](JsonText& t, Key k, Cell& c) { array_at(t, k, [&] { c.epochs.push_back(read_epoch(t)); }); }},
      {"breakdown",
       [](JsonText& t, Key k, Cell& c) {
         if (has_at(t, k, '{')) c.parts = read_parts(t);
       }},
      {"steps", [](JsonText& t, Key k, Cell& c) { c.steps = whole_at(t, k, 0); }},
      {"run_s", [](JsonText& t, Key k, Cell& c) { c.run_s = number_at(t, k).value_or(0); }},
      {"test_accuracy", [](JsonText& t, Key k, Cell& c) { c.test_accuracy = number_at(t, k); }},
      {"nodes", [](JsonText& t, Key k, Cell& c) { array_at(t, k, [&] { c.nodes.push_back(read_node(t)); }); }},
      {"node_list", [](JsonText& t, Key k, Cell& c) { c.node_list = text_at(t, k); }},
      {"stated", [](JsonText& t, Key, Cell& c) { read_stated(t, c.stated); }}};
  return table;
}

}  // namespace

Cell CellParser::parse(std::string_view record) {
  Cell cell;
  JsonText text(record);
  text.object([&](Key key) {
    if (key == "environment") {
      if (has_at(text, key, '{')) cell.environment = environment(text.skip());
    } else if (const auto reader = readers().find(key); reader != readers().end()) {
      reader->second(text, key, cell);
    } else {
      text.skip();
    }
  });
  text.end();
  if (cell.steps == 0) cell.steps = static_cast<int64_t>(cell.step_s.size());
  return cell;
}

std::shared_ptr<const json> CellParser::environment(std::string_view text) {
  if (!last_environment_ || text != last_text_) {
    json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (value.is_discarded()) throw Error("its \"environment\" is damaged");
    last_environment_ = std::make_shared<const json>(std::move(value));
    last_text_ = text;
  }
  return last_environment_;
}

}  // namespace tutti
