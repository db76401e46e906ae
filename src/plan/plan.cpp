#include "tutti/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/files.h"
#include "tutti/error.h"

namespace tutti {
namespace {

int64_t padded(int64_t elements) { return (elements + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment; }

const char* word(StartsWhen starts) {
  return starts == StartsWhen::gradients_ready ? "gradients_ready" : "backward_done";
}
const char* word(Barrier barrier) { return barrier == Barrier::optimizer_step ? "optimizer_step" : "next_forward"; }

/// The value among `all` whose word is `text`.
template <typename Value>
Value from_word(const nlohmann::json& text, std::initializer_list<Value> all) {
  for (const Value value : all)
    if (text == word(value)) return value;
  throw Error("unknown word {} in a plan", text.dump());
}

auto fields(const Transfer& t) { return std::tie(t.name, t.operation, t.starts, t.after, t.begin, t.end, t.server); }
auto fields(const GradientSlot& s) { return std::tie(s.name, s.parameter, s.begin, s.elements); }
auto fields(const Plan& p) {
  return std::tie(p.strategy, p.ranks, p.barrier, p.sharded_optimizer, p.node_ranks, p.servers, p.max_in_flight,
                  p.elements, p.slots, p.transfers);
}

/// Throws unless the transfers among `plan`'s that `counts` tells apart cover the flat space exactly once.
template <typename Predicate>
void check_cover(const Plan& plan, const char* what, Predicate counts) {
  std::vector<const Transfer*> by_place;
  for (const Transfer& transfer : plan.transfers)
    if (counts(transfer)) by_place.push_back(&transfer);
  std::sort(by_place.begin(), by_place.end(), [](const Transfer* a, const Transfer* b) { return a->begin < b->begin; });
  int64_t covered = 0;
  for (const Transfer* transfer : by_place) {
    if (transfer->begin != covered || transfer->end < transfer->begin)
      throw Error("the plan of strategy '{}' is not sound: {} '{}' covers [{}, {}) where [{}, …) was due",
                  plan.strategy, what, transfer->name, transfer->begin, transfer->end, covered);
    covered = transfer->end;
  }
  if (covered != plan.elements)
    throw Error("the plan of strategy '{}' is not sound: {}s cover {} of {} elements", plan.strategy, what, covered,
                plan.elements);
}

}  // namespace

bool Transfer::operator==(const Transfer& other) const { return fields(*this) == fields(other); }
bool GradientSlot::operator==(const GradientSlot& other) const { return fields(*this) == fields(other); }
bool Plan::operator==(const Plan& other) const { return fields(*this) == fields(other); }

SlotRange slots_of(const Plan& plan, const Transfer& transfer) {
  // Slots lie one behind the other.
  const auto first = std::partition_point(plan.slots.begin(), plan.slots.end(), [&](const GradientSlot& slot) {
    return slot.begin + slot.elements <= transfer.begin;
  });
  const auto end = std::partition_point(first, plan.slots.end(),
                                        [&](const GradientSlot& slot) { return slot.begin < transfer.end; });
  return {static_cast<std::size_t>(first - plan.slots.begin()), static_cast<std::size_t>(end - plan.slots.begin())};
}

bool updates_parameters(const Plan& plan, const Transfer& transfer) {
  return plan.barrier == Barrier::next_forward &&
         (transfer.operation == Operation::reduce_scatter) == plan.sharded_optimizer;
}

bool carries_parameters(const Plan& plan, const Transfer& transfer) {
  return plan.sharded_optimizer && transfer.operation == Operation::all_gather;
}

Plan empty_plan(const Profile& profile, const std::string& strategy, int ranks) {
  Plan plan;
  plan.strategy = strategy;
  plan.ranks = ranks;
  for (const GradientProfile& gradient : profile.gradients) {
    plan.slots.push_back({gradient.name, gradient.parameter, plan.elements, gradient.elements});
    plan.elements += padded(gradient.elements);
  }
  return plan;
}

Transfer transfer_over(const Plan& plan, std::size_t first_slot, std::size_t last_slot) {
  const GradientSlot& first = plan.slots.at(first_slot);
  const GradientSlot& last = plan.slots.at(last_slot);
  Transfer transfer;
  transfer.name = first_slot == last_slot ? first.name : fmt::format("{} … {}", first.name, last.name);
  transfer.begin = first.begin;
  transfer.end = last.begin + padded(last.elements);
  return transfer;
}

void add_transfer(Plan& plan, std::size_t first_slot, std::size_t last_slot, StartsWhen starts) {
  plan.transfers.push_back(transfer_over(plan, first_slot, last_slot));
  plan.transfers.back().starts = starts;
}

const char* word(Operation operation) {
  switch (operation) {
    case Operation::all_reduce:
      return "all_reduce";
    case Operation::reduce_scatter:
      return "reduce_scatter";
    case Operation::all_gather:
      return "all_gather";
    case Operation::push_pull:
      return "push_pull";
  }
  return "?";
}

std::vector<std::size_t> shares(const Transfer& transfer, int ranks) {
  std::vector<std::size_t> counts;
  const int64_t lines = padded(transfer.elements()) / kSlotAlignment;
  int64_t begin = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const int64_t end = std::min(transfer.elements(), lines * (rank + 1) / ranks * kSlotAlignment);
    counts.push_back(static_cast<std::size_t>(end - begin));
    begin = end;
  }
  return counts;
}

void check_plan(const Plan& plan) {
  check_cover(plan, "transfer", [](const Transfer& t) { return t.operation != Operation::all_gather; });
  for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
    const Transfer& transfer = plan.transfers[i];
    const auto refuse = [&](const char* why) {
      throw Error("the plan of strategy '{}' is not sound: {} {} '{}' {}", plan.strategy, word(transfer.operation), i,
                  transfer.name, why);
    };
    if (transfer.after >= static_cast<int>(i)) refuse("waits for a transfer that comes later");
    // A transfer that waits for one before it would wait for ever if that one is only completed later.
    if (transfer.after >= 0 && plan.max_in_flight > 1) refuse("waits for a transfer that may still be under way");
    if (transfer.operation == Operation::push_pull && (transfer.server < 0 || transfer.server >= plan.servers))
      refuse("goes to a server that is not there");
    if (transfer.operation == Operation::all_gather) {
      if (transfer.after < 0) refuse("waits for no reduce_scatter");
      const Transfer& first = plan.transfers[static_cast<std::size_t>(transfer.after)];
      if (first.operation != Operation::reduce_scatter || first.begin != transfer.begin || first.end != transfer.end)
        refuse("does not fit the transfer that it waits for");
    }
  }
  if (std::any_of(plan.transfers.begin(), plan.transfers.end(),
                  [](const Transfer& t) { return t.operation == Operation::reduce_scatter; }))
    check_cover(plan, "final transfer", [](const Transfer& t) { return t.operation != Operation::reduce_scatter; });
}

void to_json(nlohmann::json& json, const Plan& plan) {
  json = {{"strategy", plan.strategy},     {"ranks", plan.ranks},
          {"barrier", word(plan.barrier)}, {"sharded_optimizer", plan.sharded_optimizer},
          {"servers", plan.servers},       {"max_in_flight", plan.max_in_flight},
          {"elements", plan.elements},     {"node_ranks", plan.node_ranks}};
  json["slots"] = nlohmann::json::array();
  for (const GradientSlot& slot : plan.slots)
    json["slots"].push_back(
        {{"name", slot.name}, {"parameter", slot.parameter}, {"begin", slot.begin}, {"elements", slot.elements}});
  json["transfers"] = nlohmann::json::array();
  for (const Transfer& transfer : plan.transfers)
    json["transfers"].push_back({{"name", transfer.name},
                                 {"operation", word(transfer.operation)},
                                 {"starts", word(transfer.starts)},
                                 {"after", transfer.after},
                                 {"begin", transfer.begin},
                                 {"end", transfer.end},
                                 {"server", transfer.server}});
}

void from_json(const nlohmann::json& json, Plan& plan) {
  plan = {};
  json.at("strategy").get_to(plan.strategy);
  json.at("ranks").get_to(plan.ranks);
  plan.barrier = from_word(json.at("barrier"), {Barrier::optimizer_step, Barrier::next_forward});
  json.at("sharded_optimizer").get_to(plan.sharded_optimizer);
  plan.node_ranks = json.value("node_ranks", std::vector<int>());
  plan.servers = json.value("servers", 0);
  plan.max_in_flight = json.value("max_in_flight", json.value("under_way", 1));  // its name until version 0.2
  json.at("elements").get_to(plan.elements);
  for (const nlohmann::json& slot : json.at("slots"))
    plan.slots.push_back({slot.at("name"), slot.at("parameter"), slot.at("begin"), slot.at("elements")});
  for (const nlohmann::json& entry : json.at("transfers")) {
    Transfer transfer;
    entry.at("name").get_to(transfer.name);
    transfer.operation = from_word(entry.at("operation"), kOperations);
    transfer.starts = from_word(entry.at("starts"), {StartsWhen::gradients_ready, StartsWhen::backward_done});
    entry.at("after").get_to(transfer.after);
    entry.at("begin").get_to(transfer.begin);
    entry.at("end").get_to(transfer.end);
    transfer.server = entry.value("server", -1);
    plan.transfers.push_back(transfer);
  }
}

std::string describe(const Plan& plan) {
  std::string text =
      fmt::format("plan '{}': {} gradients, {} in {} transfers, {} ranks; {}{}\n", plan.strategy, plan.slots.size(),
                  readable_bytes(static_cast<uint64_t>(plan.elements) * 4), plan.transfers.size(), plan.ranks,
                  plan.barrier == Barrier::optimizer_step ? "the optimizer steps when all are done"
                                                          : "each layer's next forward waits for its own",
                  plan.sharded_optimizer ? "; each rank keeps a share of the optimizer's state" : "");
  if (plan.servers > 0)
    text += fmt::format("  through {} parameter server{}, up to {} transfers under way\n", plan.servers,
                        plan.servers == 1 ? "" : "s", plan.max_in_flight);
  if (!plan.node_ranks.empty())
    text += fmt::format("  inside {} nodes of {} ranks first, then among one rank of each\n", plan.node_ranks.size(),
                        fmt::join(plan.node_ranks, ", "));
  text += fmt::format("  {:>4}  {:<14}  {:>10}  {:<24}  {}\n", "#", "operation", "size", "starts", "gradients");
  for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
    const Transfer& transfer = plan.transfers[i];
    std::string starts = transfer.starts == StartsWhen::gradients_ready ? "when ready" : "after backward";
    if (transfer.after >= 0) starts += fmt::format(", after #{}", transfer.after);
    const std::string operation = transfer.operation == Operation::push_pull
                                      ? fmt::format("{} {}", word(transfer.operation), transfer.server)
                                      : word(transfer.operation);
    text += fmt::format("  {:>4}  {:<14}  {:>10}  {:<24}  {}\n", i, operation,
                        readable_bytes(static_cast<uint64_t>(transfer.elements()) * 4), starts, transfer.name);
  }
  return text;
}

}  // namespace tutti
