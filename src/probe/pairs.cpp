#include "probe/pairs.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/clock.h"
#include "base/median.h"
#include "comm/exchange.h"

namespace tutti {
namespace {

constexpr int kPings = 25, kPairWarmUps = 5;
constexpr std::size_t kFirstBytes = 64 << 10;
// Up to so many ranks, every pair is measured by itself.
constexpr std::size_t kSmallJob = 8;
constexpr std::size_t kMostAgain = 16;
constexpr int kPairTag = 1;

Span words(std::vector<int64_t>& memory) { return {memory.data(), memory.size(), DataType::i64}; }

/// One end of a pair's measurement: the one that sends long messages and takes the time.
PairFigures send_to(Communicator& comm, int peer, const PairOptions& options, std::vector<int64_t>& memory) {
  PairFigures figures{comm.rank(), peer};
  std::vector<int64_t> word(1);
  std::vector<double> seconds;
  for (int i = 0; i < kPairWarmUps + kPings; ++i) {
    const auto begin = Clock::now();
    comm.send(words(word), peer, kPairTag)->wait();
    comm.receive(words(word), peer, kPairTag)->wait();
    if (i >= kPairWarmUps) seconds.push_back(seconds_since(begin));
  }
  figures.latency_s = lower_median(seconds) / 2;
  // The first message of a size touches new memory and buffers, so the last size goes twice and counts once.
  for (std::size_t bytes = kFirstBytes;; bytes *= 2) {
    double best_s = 0;
    for (int again = 0; again < 2; ++again) {
      word[0] = static_cast<int64_t>(bytes);
      comm.send(words(word), peer, kPairTag)->wait();
      const Span message{memory.data(), bytes / sizeof(int64_t), DataType::i64};
      const auto begin = Clock::now();
      comm.send(message, peer, kPairTag)->wait();
      comm.receive(words(word), peer, kPairTag)->wait();
      const double taken_s = std::max(1e-9, seconds_since(begin) - figures.latency_s);
      best_s = again == 0 ? taken_s : std::min(best_s, taken_s);
      if (taken_s > 4 * options.seconds) break;
    }
    figures.bytes_per_s = static_cast<double>(bytes) / best_s;
    if (best_s >= options.seconds || bytes * 2 > options.most_bytes) break;
  }
  word[0] = 0;
  comm.send(words(word), peer, kPairTag)->wait();
  return figures;
}

void answer(Communicator& comm, int peer, std::vector<int64_t>& memory) {
  std::vector<int64_t> word(1);
  for (int i = 0; i < kPairWarmUps + kPings; ++i) {
    comm.receive(words(word), peer, kPairTag)->wait();
    comm.send(words(word), peer, kPairTag)->wait();
  }
  for (;;) {
    comm.receive(words(word), peer, kPairTag)->wait();
    if (word[0] == 0) return;
    comm.receive({memory.data(), static_cast<std::size_t>(word[0]) / sizeof(int64_t), DataType::i64}, peer, kPairTag)
        ->wait();
    comm.send(words(word), peer, kPairTag)->wait();
  }
}

/// Rounds in which everyone meets everyone once, by the circle method: one stays, the others move on by one place.
std::vector<std::vector<RankPair>> tournament(std::vector<int> ranks) {
  constexpr int kNobody = -1;
  if (ranks.size() % 2 == 1) ranks.push_back(kNobody);
  std::vector<std::vector<RankPair>> rounds;
  for (std::size_t round = 0; round + 1 < ranks.size(); ++round) {
    std::vector<RankPair> pairs;
    for (std::size_t i = 0; i < ranks.size() / 2; ++i) {
      const int a = ranks[i], b = ranks[ranks.size() - 1 - i];
      if (a != kNobody && b != kNobody) pairs.emplace_back(std::min(a, b), std::max(a, b));
    }
    rounds.push_back(pairs);
    std::rotate(ranks.begin() + 1, ranks.end() - 1, ranks.end());
  }
  return rounds;
}

std::string gbps(double bytes_per_s) { return fmt::format("{:.3g} Gbit/s", bytes_per_s * 8e-9); }

std::vector<double> figures_of(const std::vector<PairFigures>& pairs, double PairFigures::*figure) {
  std::vector<double> values;
  values.reserve(pairs.size());
  for (const PairFigures& pair : pairs) values.push_back(pair.*figure);
  return values;
}

/// Those inside nodes or between them.
std::vector<PairFigures> pairs_at(const std::vector<PairFigures>& pairs, const std::vector<Node>& nodes,
                                  bool between_nodes) {
  const auto node_of = node_of_ranks(nodes);
  std::vector<PairFigures> level;
  for (const PairFigures& pair : pairs)
    if ((node_of[static_cast<std::size_t>(pair.from)] != node_of[static_cast<std::size_t>(pair.to)]) == between_nodes)
      level.push_back(pair);
  return level;
}

/// For each node the fastest message of these that it sent or got; 0 where there is none.
std::vector<double> best_of_nodes(const std::vector<PairFigures>& level, const std::vector<Node>& nodes) {
  const auto node_of = node_of_ranks(nodes);
  std::vector<double> best(nodes.size(), 0);
  for (const PairFigures& pair : level)
    for (const int rank : {pair.from, pair.to}) {
      double& known = best[node_of[static_cast<std::size_t>(rank)]];
      known = std::max(known, pair.bytes_per_s);
    }
  return best;
}

/// What is usual at a level; see find_slow_links.
double usual_bandwidth(const std::vector<PairFigures>& level, const std::vector<Node>& nodes, bool between_nodes) {
  if (!between_nodes) return lower_median(figures_of(level, &PairFigures::bytes_per_s));
  std::vector<double> best = best_of_nodes(level, nodes);
  best.erase(std::remove(best.begin(), best.end(), 0.0), best.end());
  return lower_median(best);
}

void measure_pair(Communicator& comm, RankPair pair, const PairOptions& options, std::vector<int64_t>& memory,
                  nlohmann::json& mine) {
  const auto [a, b] = pair;
  if (comm.rank() == a) {
    mine.push_back(send_to(comm, b, options, memory));
    answer(comm, b, memory);
  } else if (comm.rank() == b) {
    answer(comm, a, memory);
    mine.push_back(send_to(comm, a, options, memory));
  }
}

std::vector<PairFigures> gather_pairs(Communicator& comm, const nlohmann::json& mine) {
  std::vector<PairFigures> all;
  for (const std::string& text : gather_texts(comm, mine.dump()))
    for (const nlohmann::json& pair : nlohmann::json::parse(text)) all.push_back(pair);
  return all;
}

/// Something may have got in the way of those that look slow: measures some once more, and keeps what was better.
void measure_slow_again(Communicator& comm, const std::vector<Node>& nodes, const PairOptions& options,
                        std::vector<int64_t>& memory, std::vector<PairFigures>& pairs) {
  std::set<RankPair> slow;
  for (const bool between_nodes : {true, false}) {
    const auto level = pairs_at(pairs, nodes, between_nodes);
    const double usual = usual_bandwidth(level, nodes, between_nodes);
    for (const PairFigures& pair : level)
      if (pair.bytes_per_s < usual / 2 && slow.size() < kMostAgain) slow.insert(std::minmax(pair.from, pair.to));
  }
  nlohmann::json mine = nlohmann::json::array();
  for (const RankPair& pair : slow) {
    comm.barrier()->wait();
    measure_pair(comm, pair, options, memory, mine);
  }
  for (const PairFigures& again : gather_pairs(comm, mine))
    for (PairFigures& pair : pairs)
      if (pair.from == again.from && pair.to == again.to)
        pair.bytes_per_s = std::max(pair.bytes_per_s, again.bytes_per_s);
}

}  // namespace

std::vector<std::size_t> node_of_ranks(const std::vector<Node>& nodes) {
  std::size_t ranks = 0;
  for (const Node& node : nodes) ranks += node.ranks.size();
  std::vector<std::size_t> node_of(ranks);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const int rank : nodes[i].ranks) node_of[static_cast<std::size_t>(rank)] = i;
  return node_of;
}

std::vector<std::vector<RankPair>> pair_rounds(const std::vector<Node>& nodes) {
  const std::size_t ranks = node_of_ranks(nodes).size();
  std::vector<std::vector<RankPair>> rounds;
  if (ranks <= kSmallJob) {
    for (int a = 0; a < static_cast<int>(ranks); ++a)
      for (int b = a + 1; b < static_cast<int>(ranks); ++b) rounds.push_back({{a, b}});
    return rounds;
  }
  std::vector<int> first;
  std::size_t most = 0;
  for (const Node& node : nodes) {
    first.push_back(node.ranks[0]);
    most = std::max(most, node.ranks.size());
  }
  rounds = tournament(first);
  for (std::size_t i = 1; i < most; ++i) {
    rounds.emplace_back();
    for (const Node& node : nodes)
      if (i < node.ranks.size()) rounds.back().emplace_back(node.ranks[0], node.ranks[i]);
  }
  return rounds;
}

std::vector<PairFigures> measure_pairs(Communicator& comm, const std::vector<Node>& nodes, const PairOptions& options) {
  std::vector<int64_t> memory(std::max(options.most_bytes, kFirstBytes) / sizeof(int64_t), 1);
  nlohmann::json mine = nlohmann::json::array();
  for (const auto& round : pair_rounds(nodes)) {
    comm.barrier()->wait();
    for (const RankPair& pair : round) measure_pair(comm, pair, options, memory, mine);
  }
  std::vector<PairFigures> all = gather_pairs(comm, mine);
  measure_slow_again(comm, nodes, options, memory, all);
  return all;
}

double median_bandwidth(const std::vector<PairFigures>& pairs, const std::vector<Node>& nodes, bool between_nodes) {
  return lower_median(figures_of(pairs_at(pairs, nodes, between_nodes), &PairFigures::bytes_per_s));
}

double median_latency(const std::vector<PairFigures>& pairs, const std::vector<Node>& nodes, bool between_nodes) {
  return lower_median(figures_of(pairs_at(pairs, nodes, between_nodes), &PairFigures::latency_s));
}

std::vector<SlowLink> find_slow_links(const std::vector<PairFigures>& pairs, const std::vector<Node>& nodes,
                                      double expected_bytes_per_s) {
  const auto node_of = node_of_ranks(nodes);
  std::vector<SlowLink> slow;
  for (const bool between_nodes : {true, false}) {
    const auto level = pairs_at(pairs, nodes, between_nodes);
    if (level.empty()) continue;
    const std::vector<double> best = best_of_nodes(level, nodes);
    const bool is_expected = between_nodes && expected_bytes_per_s > 0;
    const double usual = is_expected ? expected_bytes_per_s : usual_bandwidth(level, nodes, between_nodes);
    const std::string against = is_expected     ? "of --link-gbps"
                                : between_nodes ? "usual between nodes"
                                                : "usual inside a node";
    const bool can_blame_nodes = nodes.size() > 2 || !between_nodes;
    std::vector<bool> is_blamed(nodes.size(), false);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!can_blame_nodes || best[i] == 0 || best[i] >= usual / 2) continue;
      is_blamed[i] = true;
      slow.push_back(
          {fmt::format("{} {}: at most {}, under half of the {} {}", between_nodes ? "the link of" : "messages inside",
                       nodes[i].host, gbps(best[i]), gbps(usual), against),
           nodes[i].host});
    }
    // Of two nodes, or two ranks of one, the slowest message says enough.
    std::map<RankPair, PairFigures> slowest;
    for (const PairFigures& pair : level) {
      const auto a = static_cast<int>(node_of[static_cast<std::size_t>(pair.from)]);
      const auto b = static_cast<int>(node_of[static_cast<std::size_t>(pair.to)]);
      if (is_blamed[static_cast<std::size_t>(a)] || is_blamed[static_cast<std::size_t>(b)]) continue;
      const RankPair key = between_nodes ? std::minmax(a, b) : std::minmax(pair.from, pair.to);
      const auto known = slowest.try_emplace(key, pair).first;
      if (pair.bytes_per_s < known->second.bytes_per_s) known->second = pair;
    }
    for (const auto& [key, pair] : slowest) {
      if (pair.bytes_per_s >= usual / 2) continue;
      const std::string& from = nodes[node_of[static_cast<std::size_t>(pair.from)]].host;
      const std::string& to = nodes[node_of[static_cast<std::size_t>(pair.to)]].host;
      slow.push_back({fmt::format("{} (rank {}) to {} (rank {}): {}, under half of the {} {}", from, pair.from, to,
                                  pair.to, gbps(pair.bytes_per_s), gbps(usual), against),
                      ""});
    }
  }
  return slow;
}

void to_json(nlohmann::json& json, const PairFigures& pair) {
  json = {{"from", pair.from}, {"to", pair.to}, {"latency_s", pair.latency_s}, {"bytes_per_s", pair.bytes_per_s}};
}

void from_json(const nlohmann::json& json, PairFigures& pair) {
  pair = {json.at("from"), json.at("to"), json.at("latency_s"), json.at("bytes_per_s")};
}

}  // namespace tutti
