#include "comm/exchange.h"

#include <cstring>

namespace tutti {
namespace {

Span span_of(std::vector<int64_t>& words) { return {words.data(), words.size(), DataType::i64}; }

/// memcpy that may be asked for nothing, from or to nowhere.
void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

std::size_t words_for(std::size_t bytes) { return (bytes + sizeof(int64_t) - 1) / sizeof(int64_t); }

}  // namespace

std::string broadcast_text(Communicator& comm, const std::string& text, int root) {
  std::vector<int64_t> length = {static_cast<int64_t>(text.size())};
  comm.broadcast(span_of(length), root)->wait();
  const auto bytes = static_cast<std::size_t>(length[0]);
  std::vector<int64_t> words(words_for(bytes));
  if (comm.rank() == root) copy_bytes(words.data(), text.data(), bytes);
  comm.broadcast(span_of(words), root)->wait();
  return {reinterpret_cast<const char*>(words.data()), bytes};
}

std::vector<std::string> gather_texts(Communicator& comm, const std::string& text) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  std::vector<std::size_t> counts;
  std::size_t all = 0, mine = 0;
  const auto lengths = gather_numbers(comm, {static_cast<int64_t>(text.size())});
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (static_cast<int>(rank) == comm.rank()) mine = all;
    counts.push_back(words_for(static_cast<std::size_t>(lengths[rank][0])));
    all += counts.back();
  }
  std::vector<int64_t> words(all);
  copy_bytes(words.data() + mine, text.data(), text.size());
  comm.all_gather(span_of(words), counts)->wait();
  std::vector<std::string> texts;
  const int64_t* next = words.data();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    texts.emplace_back(reinterpret_cast<const char*>(next), static_cast<std::size_t>(lengths[rank][0]));
    next += counts[rank];
  }
  return texts;
}

std::vector<std::vector<int64_t>> gather_numbers(Communicator& comm, const std::vector<int64_t>& numbers) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  const std::size_t each = numbers.size();
  std::vector<int64_t> all(ranks * each);
  std::copy(numbers.begin(), numbers.end(), all.begin() + static_cast<std::ptrdiff_t>(each) * comm.rank());
  comm.all_gather(span_of(all), std::vector<std::size_t>(ranks, each))->wait();
  std::vector<std::vector<int64_t>> result;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(rank * each);
    result.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(each));
  }
  return result;
}

void finish_together(Communicator& comm) {
  try {
    comm.barrier()->wait();
  } catch (const CommFailed&) {
    // One that was through already has left: then all have come this far.
  }
}

}  // namespace tutti
