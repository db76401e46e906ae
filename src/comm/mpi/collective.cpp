#include "comm/mpi/collective.h"

namespace tutti::mpi {
namespace {

constexpr int kNumberBits = 10;  // collectives that are told apart: more than are ever under way

uint64_t hash_of_call(const Call& call) {
  return hash_of({static_cast<std::size_t>(call.kind), static_cast<std::size_t>(call.type),
                  static_cast<std::size_t>(call.root), static_cast<std::size_t>(call.count),
                  static_cast<std::size_t>(call.counts_hash)});
}

}  // namespace

Collective::Collective(Traffic& traffic, const Call& call, uint64_t number)
    : traffic_(traffic), requests_(traffic), call_(call) {
  const uint64_t hash = hash_of_call(call);
  const int hash_bits = traffic.group.tag_bits - kNumberBits - 3;
  const uint64_t mixed = (hash ^ (hash >> 29)) & ((uint64_t{1} << hash_bits) - 1);
  own_tag_ = static_cast<int>((mixed << kNumberBits) | (number & ((1u << kNumberBits) - 1)));
}

int Collective::tag(int from, int to, int phase) const {
  return (own_tag_ << 3) | (traffic_.group.second(from) << 2) | (traffic_.group.second(to) << 1) | phase;
}

}  // namespace tutti::mpi
