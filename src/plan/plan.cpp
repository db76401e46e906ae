#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/error.h"
#include "base/files.h"

namespace tutti {
namespace {

int64_t padded(int64_t elements) { return (elements + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment; }

const char* word(StartsWhen starts) { return starts == StartsWhen::gradients_ready ? "gradients_ready" : "backward_done"; }

auto fields(const Transfer& t) { return std::tie(t.name, t.operation, t.starts, t.begin, t.end); }
auto fields(const GradientSlot& s) { return std::tie(s.name, s.parameter, s.begin, s.elements); }
auto fields(const Plan& p) { return std::tie(p.strategy, p.ranks, p.elements, p.slots, p.transfers); }

}  // namespace

bool Transfer::operator==(const Transfer& other) const { return fields(*this) == fields(other); }
bool GradientSlot::operator==(const GradientSlot& other) const { return fields(*this) == fields(other); }
bool Plan::operator==(const Plan& other) const { return fields(*this) == fields(other); }

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

void add_transfer(Plan& plan, std::size_t first_slot, std::size_t last_slot, StartsWhen starts) {
  const GradientSlot& first = plan.slots.at(first_slot);
  const GradientSlot& last = plan.slots.at(last_slot);
  Transfer transfer;
  transfer.name = first_slot == last_slot ? first.name : fmt::format("{} … {}", first.name, last.name);
  transfer.starts = starts;
  transfer.begin = first.begin;
  transfer.end = last.begin + padded(last.elements);
  plan.transfers.push_back(transfer);
}

void check_plan(const Plan& plan) {
  std::vector<const Transfer*> by_place;
  for (const Transfer& transfer : plan.transfers) by_place.push_back(&transfer);
  std::sort(by_place.begin(), by_place.end(), [](const Transfer* a, const Transfer* b) { return a->begin < b->begin; });
  int64_t covered = 0;
  for (const Transfer* transfer : by_place) {
    if (transfer->begin != covered || transfer->end < transfer->begin)
      throw Error("the plan of strategy '{}' is not sound: transfer '{}' covers [{}, {}) where [{}, …) was due",
                  plan.strategy, transfer->name, transfer->begin, transfer->end, covered);
    covered = transfer->end;
  }
  if (covered != plan.elements)
    throw Error("the plan of strategy '{}' is not sound: it covers {} of {} elements", plan.strategy, covered, plan.elements);
}

void to_json(nlohmann::json& json, const Plan& plan) {
  json = {{"strategy", plan.strategy}, {"ranks", plan.ranks}, {"elements", plan.elements}};
  json["slots"] = nlohmann::json::array();
  for (const GradientSlot& slot : plan.slots)
    json["slots"].push_back(
        {{"name", slot.name}, {"parameter", slot.parameter}, {"begin", slot.begin}, {"elements", slot.elements}});
  json["transfers"] = nlohmann::json::array();
  for (const Transfer& transfer : plan.transfers)
    json["transfers"].push_back({{"name", transfer.name},
                                 {"operation", "all_reduce"},
                                 {"starts", word(transfer.starts)},
                                 {"begin", transfer.begin},
                                 {"end", transfer.end}});
}

void from_json(const nlohmann::json& json, Plan& plan) {
  plan = {};
  json.at("strategy").get_to(plan.strategy);
  json.at("ranks").get_to(plan.ranks);
  json.at("elements").get_to(plan.elements);
  for (const nlohmann::json& slot : json.at("slots"))
    plan.slots.push_back({slot.at("name"), slot.at("parameter"), slot.at("begin"), slot.at("elements")});
  for (const nlohmann::json& entry : json.at("transfers")) {
    Transfer transfer;
    entry.at("name").get_to(transfer.name);
    if (entry.at("operation") != "all_reduce") throw Error("unknown operation {} in a plan", entry.at("operation").dump());
    if (entry.at("starts") == word(StartsWhen::backward_done)) transfer.starts = StartsWhen::backward_done;
    entry.at("begin").get_to(transfer.begin);
    entry.at("end").get_to(transfer.end);
    plan.transfers.push_back(transfer);
  }
}

std::string describe(const Plan& plan) {
  std::string text = fmt::format("plan '{}': {} gradients, {} in {} transfers, {} ranks\n", plan.strategy, plan.slots.size(),
                                 readable_bytes(static_cast<uint64_t>(plan.elements) * 4), plan.transfers.size(), plan.ranks);
  for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
    const Transfer& transfer = plan.transfers[i];
    text += fmt::format("  {:>4}  {:>10}  all_reduce  {:<16}  {}\n", i,
                        readable_bytes(static_cast<uint64_t>(transfer.elements()) * 4),
                        transfer.starts == StartsWhen::gradients_ready ? "when ready" : "after backward", transfer.name);
  }
  return text;
}

}  // namespace tutti
