#include "engine/issue_log.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "comm/exchange.h"

namespace tutti {
namespace {

constexpr std::size_t kRemembered = 2000;

uint64_t fnv1a(uint64_t hash, const std::string& text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

void IssueLog::add(int64_t step, const Transfer& transfer) {
  recent_.push_back(fmt::format("'{}' [{}, {}) of step {}", transfer.name, transfer.begin, transfer.end, step));
  hash_ = fnv1a(hash_, recent_.back());
  ++count_;
  if (recent_.size() > kRemembered) recent_.pop_front();
}

void IssueLog::compare(Communicator& comm) const {
  const auto sums = gather_numbers(comm, {count_, static_cast<int64_t>(hash_)});
  if (std::all_of(sums.begin(), sums.end(), [&](const auto& sum) { return sum == sums[0]; })) return;

  const auto texts = gather_texts(comm, nlohmann::json(recent_).dump());
  const auto entry = [&](std::size_t rank, int64_t number) -> std::string {
    static thread_local nlohmann::json list;
    list = nlohmann::json::parse(texts[rank]);
    const int64_t oldest = sums[rank][0] - static_cast<int64_t>(list.size());
    if (number >= sums[rank][0]) return "nothing";
    return number < oldest ? "something no longer remembered" : list.at(static_cast<std::size_t>(number - oldest));
  };
  for (std::size_t rank = 1; rank < sums.size(); ++rank) {
    if (sums[rank] == sums[0]) continue;
    const int64_t last = std::max(sums[0][0], sums[rank][0]);
    int64_t number = std::max<int64_t>(0, last - static_cast<int64_t>(kRemembered));
    while (number < last && entry(0, number) == entry(rank, number)) ++number;
    throw Error(
        "ranks issued different transfers: transfer {} was {} on rank {} and {} on rank 0.\n"
        "Gradients that do not belong together may have been added; do not use the weights.",
        number, entry(rank, number), rank, entry(0, number));
  }
}

}  // namespace tutti
