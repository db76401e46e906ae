#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tutti/profile.h"

namespace tutti {

enum class Operation {
  all_reduce,
  reduce_scatter,
  all_gather,
  push_pull,  // to a parameter server, which sends the sum back
};

/// When a transfer may start.
enum class StartsWhen {
  gradients_ready,  // as soon as every gradient in its slice is there
  backward_done,    // when the whole backward is over
};

/// One message of a step: a slice of the flat gradient space and the operation that sums it over ranks.
struct Transfer {
  std::string name;  // "fc2.bias … conv2.weight": for people
  Operation operation = Operation::all_reduce;
  StartsWhen starts = StartsWhen::gradients_ready;
  int after = -1;     // the transfer that must be done before: an all_gather's reduce_scatter; -1: none
  int64_t begin = 0;  // elements of the flat space
  int64_t end = 0;
  int server = -1;  // of a push_pull

  int64_t elements() const { return end - begin; }
  bool operator==(const Transfer& other) const;
};

/// Where one gradient lies in the flat space.
struct GradientSlot {
  std::string name;
  int parameter = 0;
  int64_t begin = 0;  // a multiple of kSlotAlignment
  int64_t elements = 0;

  bool operator==(const GradientSlot& other) const;
};

/// Slots start on cache lines, so that slices of neighbours never share one.
constexpr int64_t kSlotAlignment = 16;

/// What waits for a step's transfers.
enum class Barrier {
  optimizer_step,  // all of them, then one update of everything
  next_forward,    // a slice is updated when its own last transfer is done; a layer's forward waits for its own slices
};

/// How the gradients of every step travel: the order of the transfers is the order in which every rank issues them.
/// `slots` lie in the order in which backward produces gradients, so merging tensors is choosing a longer slice.
struct Plan {
  std::string strategy;
  int ranks = 1;
  Barrier barrier = Barrier::optimizer_step;
  /// Each rank keeps the optimizer's state of its share of every reduce_scatter alone, updates that, and all_gather
  /// carries the new parameters instead of the gradients.
  bool sharded_optimizer = false;
  /// Ranks of each node, where every transfer is made inside the nodes first, then among one rank of each; empty: all
  /// ranks are alike.
  std::vector<int> node_ranks = {};
  int servers = 0;        // parameter servers that push_pulls are placed on
  int max_in_flight = 1;  // transfers that may be under way at once
  int64_t elements = 0;   // length of the flat space, padding included
  std::vector<GradientSlot> slots;
  std::vector<Transfer> transfers;

  bool operator==(const Plan& other) const;
};

/// Slots [first, end) of a plan.
struct SlotRange {
  std::size_t first = 0, end = 0;
};
/// The slots that a transfer carries something of; padding alone counts for none.
SlotRange slots_of(const Plan& plan, const Transfer& transfer);

/// Whether the slice's parameters are updated when this transfer is done, rather than all at the optimizer step.
bool updates_parameters(const Plan& plan, const Transfer& transfer);

/// Whether what travels is updated parameters, rather than gradients.
bool carries_parameters(const Plan& plan, const Transfer& transfer);

/// A plan without transfers: the slots in the profile's order.
Plan empty_plan(const Profile& profile, const std::string& strategy, int ranks);

/// A transfer over the slots [first_slot, last_slot], padding included.
Transfer transfer_over(const Plan& plan, std::size_t first_slot, std::size_t last_slot);
/// Appends such a transfer.
void add_transfer(Plan& plan, std::size_t first_slot, std::size_t last_slot, StartsWhen starts);

constexpr std::initializer_list<Operation> kOperations = {Operation::all_reduce, Operation::reduce_scatter,
                                                          Operation::all_gather, Operation::push_pull};
const char* word(Operation operation);

/// The elements that rank `rank` owns of a reduce_scatter or all_gather: as even as possible, cut at cache lines.
std::vector<std::size_t> shares(const Transfer& transfer, int ranks);

/// Throws Error unless the plan can be run: all_reduces and reduce_scatters cover the flat space exactly once, each
/// reduce_scatter has its all_gather, each push_pull its server, and nothing waits for what comes later.
void check_plan(const Plan& plan);

void to_json(nlohmann::json& json, const Plan& plan);
void from_json(const nlohmann::json& json, Plan& plan);

/// The plan as a table for people.
std::string describe(const Plan& plan);

}  // namespace tutti
