// How the engine comes to its plan: a strategy makes it from what was measured, or `auto` tries several.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "comm/exchange.h"
#include "sim/own_engine.h"
#include "tune/link_probe.h"
#include "tutti/engine.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr int kAutoProfileSteps = 12;  // a profile that is worth simulating on

int64_t steps_in(double seconds, double step_s, int64_t least, int64_t most) {
  return std::clamp(static_cast<int64_t>(seconds / std::max(step_s, 1e-6)), least, most);
}

}  // namespace

int Engine::profile_steps() const {
  return is_auto() && comm_.size() > 1 ? std::max(kAutoProfileSteps, options_.profile_steps) : options_.profile_steps;
}

void Engine::measure_links() {
  // Twice what a step sends: no transfer is longer, and beyond 64 MiB costs grow as the bytes do.
  if (probe_memory_.data == nullptr) {
    const int64_t bytes = 2 * space_.elements() * static_cast<int64_t>(sizeof(float));
    probe_memory_.count = static_cast<std::size_t>(std::clamp<int64_t>(bytes, 1 << 16, 64 << 20)) / sizeof(float);
    probe_memory_.data = comm_.allocate(probe_memory_.bytes());
  }
  const bool with_servers = is_auto() || find_strategy(options_.strategy).uses_servers;
  links_ = tutti::measure_links(comm_, {is_auto(), with_servers ? options_.servers : nullptr}, probe_memory_);
}

void Engine::choose_plan() {
  if (is_auto() && comm_.size() > 1) {
    begin_search();
    return;
  }
  // A lone rank synchronizes nothing, whatever the strategy.
  const std::string name = is_auto() ? "bsp" : options_.strategy;
  const Strategy& strategy = find_strategy(name);
  if (strategy.uses_links && comm_.size() > 1) measure_links();
  std::string text;
  if (comm_.rank() == 0) {
    const Profile profile = profiler_ ? profiler_->result() : space_.unmeasured_profile();
    StrategyOptions strategy_options = options_.strategy_options;
    if (options_.servers != nullptr) strategy_options.servers = options_.servers->servers();
    const Plan plan = strategy.make_plan(profile, links_.value_or(Links{}), comm_.size(), strategy_options);
    text = nlohmann::json({{"profile", profile}, {"plan", plan}}).dump();
  }
  // Rank 0's plan for everybody: ranks that planned for themselves could differ.
  const auto decided = nlohmann::json::parse(broadcast_text(comm_, text));
  profile_ = decided.at("profile").get<Profile>();
  const bool is_measured = profiler_.has_value();
  profiler_.reset();
  adopt(decided.at("plan").get<Plan>());
  if (!is_measured) profile_.reset();
  ++decisions_;
}

void Engine::begin_search() {
  measure_links();
  std::string text;
  if (comm_.rank() == 0) {
    const Profile profile = profiler_->result();
    CandidateRules rules;
    rules.servers = options_.servers != nullptr ? options_.servers->servers() : 0;
    rules.allows = [this](const Strategy& strategy) {
      return (!strategy.uses_servers || options_.servers != nullptr) &&
             (!is_compressed(options_.wire) || strategy.only_all_reduces);
    };
    rules.adapt = [this](Plan& plan) { adapt(plan); };
    nlohmann::json candidates = nlohmann::json::array();
    for (const PlannedStrategy& one :
         find_candidates(profile, *links_, comm_.size(), rules, options_.auto_options.candidates))
      candidates.push_back(
          {{"strategy", one.name}, {"settings", one.settings}, {"plan", one.plan}, {"predicted_s", one.step.step_s}});
    text = nlohmann::json({{"profile", profile}, {"candidates", candidates}}).dump();
  }
  const auto decided = nlohmann::json::parse(broadcast_text(comm_, text));
  profile_ = decided.at("profile").get<Profile>();
  profiler_.reset();
  std::vector<SearchCandidate> candidates;
  for (const nlohmann::json& one : decided.at("candidates"))
    candidates.push_back(
        {one.at("strategy"), one.at("settings"), one.at("plan").get<Plan>(), one.at("predicted_s"), {}, false});
  SearchOptions options;
  options.window_steps = steps_in(options_.auto_options.window_s, candidates.at(0).predicted_s, 4, 100);
  if (space_.gradients().is_cuda())
    options.part_steps = options.window_steps;  // single steps say when they were queued
  options.steps = options_.auto_options.steps;
  options.watch_steps = steps_in(options_.auto_options.watch_s, candidates.at(0).predicted_s, 50, 2000);
  search_.emplace(std::move(candidates), options);
  adopt(search_->current().plan);
}

void Engine::search_on() {
  if (!search_->step_done(seconds_since({}))) return;
  int64_t step_ns = static_cast<int64_t>(search_->window_step_s() * 1e9);
  drain();
  comm_.broadcast({&step_ns, 1, DataType::i64}, 0)->wait();
  const bool was_over = search_->is_over();
  const std::size_t before = search_->current_index();
  search_->window_took(static_cast<double>(step_ns) * 1e-9);
  if (search_->has_drifted()) {
    search_.reset();
    adopt(make_bsp_plan(*profile_, {}, comm_.size(), {}));
    profiler_.emplace(space_, *link_);
    return;
  }
  if (search_->current_index() != before) adopt(search_->current().plan);
  if (search_->is_over() && !was_over) ++decisions_;
}

void Engine::adapt(Plan& plan) const {
  if (plan.servers == 0) plan.node_ranks = comm_.node_ranks();
  const bool has_new_parameters =
      std::any_of(first_update_.begin(), first_update_.end(), [](int64_t step) { return step == 0; });
  const bool needs_whole_tensors = find_optimizer(options_.optimizer.name).needs_whole_tensors;
  if (plan.barrier != Barrier::next_forward || (options_.clip_norm <= 0 && !has_new_parameters && !needs_whole_tensors))
    return;
  // All of these need all gradients before the first update; transfers still overlap backward.
  plan.barrier = Barrier::optimizer_step;
  plan.sharded_optimizer = false;
}

void Engine::adopt(const Plan& plan) {
  comm_thread_.reset();
  if (!whole_.optimizer) unite_optimizer();
  plan_ = plan;
  adapt(plan_);
  check_plan(plan_);
  remark_.clear();
  if (plan.barrier != plan_.barrier)
    remark_ = fmt::format("{} needs all gradients before any update: the optimizer step waits for all transfers{}",
                          options_.clip_norm > 0 ? "clipping by the global norm"
                          : find_optimizer(options_.optimizer.name).needs_whole_tensors
                              ? "an optimizer that needs whole tensors"
                              : "a parameter that has had no gradient yet",
                          plan.sharded_optimizer ? ", and every rank keeps the whole optimizer state" : "");
  unwatched_.clear();
  for (const GradientProfile& gradient : profile_->gradients)
    if (gradient.needed_s <= 0) unwatched_.push_back(static_cast<std::size_t>(gradient.parameter));
  std::vector<torch::Tensor> state = whole_.optimizer->state();
  for (const torch::Tensor& buffer : wire_.state()) state.push_back(buffer);
  space_.lay_out(plan_.slots, state);
  wire_.lay_out(plan_.slots);
  if (comm_.size() == 1) return;
  if (plan_.servers > 0) announce_messages();
  if (plan_.sharded_optimizer) split_optimizer();
  start_comm_thread();
}

void Engine::announce_messages() {
  std::vector<PushPullMessage> messages;
  for (const Transfer& transfer : plan_.transfers)
    messages.push_back({static_cast<std::size_t>(transfer.elements()), transfer.server});
  options_.servers->announce(wire_.type(), messages);
}

void Engine::split_optimizer() {
  const torch::NoGradGuard no_grad;
  const auto everything = whole_.optimizer->state();
  shares_.resize(plan_.transfers.size());
  for (std::size_t i = 0; i < plan_.transfers.size(); ++i) {
    const Transfer& transfer = plan_.transfers[i];
    if (transfer.operation != Operation::reduce_scatter) continue;
    const auto counts = shares(transfer, comm_.size());
    const int64_t begin = transfer.begin + static_cast<int64_t>(std::accumulate(
                                               counts.begin(), counts.begin() + comm_.rank(), std::size_t{0}));
    const int64_t length = static_cast<int64_t>(counts[static_cast<std::size_t>(comm_.rank())]);
    Share share{begin, begin + length, make_optimizer(options_.optimizer, space_.values().narrow(0, begin, length))};
    const auto mine = share.optimizer->state();
    for (std::size_t b = 0; b < mine.size(); ++b) mine[b].copy_(everything[b].narrow(0, begin, length));
    shares_[i] = std::move(share);
  }
  whole_.optimizer.reset();
}

std::vector<torch::Tensor> Engine::whole_state() {
  if (whole_.optimizer) return whole_.optimizer->state();
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> buffers;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    if (!shares_[i]) continue;
    const Share& share = *shares_[i];
    const auto mine = share.optimizer->state();
    const Transfer& transfer = plan_.transfers[i];
    for (std::size_t b = 0; b < mine.size(); ++b) {
      if (buffers.size() <= b) buffers.push_back(torch::zeros({space_.elements()}));
      buffers[b].narrow(0, share.begin, share.end - share.begin).copy_(mine[b]);
      comm_
          .all_gather({buffers[b].data_ptr<float>() + transfer.begin, static_cast<std::size_t>(transfer.elements()),
                       DataType::f32},
                      shares(transfer, comm_.size()))
          ->wait();
    }
  }
  return buffers;
}

void Engine::unite_optimizer() {
  const torch::NoGradGuard no_grad;
  const std::vector<torch::Tensor> everything = whole_state();
  whole_.optimizer = make_optimizer(options_.optimizer, space_.values());
  const auto state = whole_.optimizer->state();
  for (std::size_t b = 0; b < state.size(); ++b) state[b].copy_(everything[b]);
  shares_.clear();
}

}  // namespace tutti
