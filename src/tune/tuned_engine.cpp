#include "tutti/tuned_engine.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "comm/exchange.h"
#include "comm/ps/push_pull.h"
#include "engine/flat_space.h"
#include "plan/wire_format.h"
#include "sim/own_engine.h"
#include "tune/link_probe.h"
#include "tune/step_profiler.h"
#include "tune/strategy_search.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr int kAutoProfileSteps = 12;  // a profile that is worth simulating on

int64_t steps_in(double seconds, double step_s, int64_t least, int64_t most) {
  return std::clamp(static_cast<int64_t>(seconds / std::max(step_s, 1e-6)), least, most);
}

}  // namespace

void check_wire(const TuneOptions& options) {
  if (options.strategy == kAutoStrategy) return;  // it tries only those that can
  if (is_compressed(options.wire) && !find_strategy(options.strategy).only_all_reduces)
    throw UsageError("wire format '{}' works with strategies that all-reduce, and '{}' does not: try buckets or mgwfbp",
                     options.wire, options.strategy);
}

TunedEngine::TunedEngine(const torch::nn::Module& module, Communicator& comm, const TuneOptions& options)
    : TunedEngine(tensors_of(module), comm, options) {}

TunedEngine::TunedEngine(const TrainedTensors& tensors, Communicator& comm, const TuneOptions& options)
    : comm_(comm), options_(options), engine_(tensors, comm, options) {
  if (!is_auto() && comm.size() > 1 && find_strategy(options.strategy).uses_servers && options.servers == nullptr)
    throw UsageError("strategy '{}' needs parameter servers, and there are none", options.strategy);
  check_wire(options);
  if (profile_steps() > 0)
    begin_profile();
  else
    choose_plan();
}

TunedEngine::~TunedEngine() = default;

StepTimes TunedEngine::finish_step(double learning_rate) { return finish_step(std::vector<double>{learning_rate}); }

StepTimes TunedEngine::finish_step(const std::vector<double>& learning_rates) {
  const StepTimes times = engine_.finish_step(learning_rates);
  const int64_t before = std::exchange(last_step_, engine_.steps_done());
  if (search_ && before + 1 != last_step_) search_->disturb();  // a GPU has repeated steps in between
  if (profiler_ && profiler_->is_complete(engine_.may_be_recorded()))
    choose_plan();
  else if (search_)
    search_on();
  return times;
}

void TunedEngine::settle() {
  engine_.settle();
  if (search_) search_->disturb();
}

int TunedEngine::profile_steps() const {
  return searches() ? std::max(kAutoProfileSteps, options_.profile_steps) : options_.profile_steps;
}

void TunedEngine::begin_profile() {
  profiler_ = std::make_unique<StepProfiler>(engine_.space(), profile_steps());
  engine_.observe(profiler_.get());
}

void TunedEngine::end_profile() {
  engine_.observe(nullptr);
  profiler_.reset();
}

void TunedEngine::measure_links() {
  // Twice what a step sends: no transfer is longer, and beyond 64 MiB costs grow as the bytes do.
  if (probe_memory_.data == nullptr) {
    const int64_t bytes = 2 * engine_.space().elements() * static_cast<int64_t>(sizeof(float));
    probe_memory_.count = static_cast<std::size_t>(std::clamp<int64_t>(bytes, 1 << 16, 64 << 20)) / sizeof(float);
    probe_memory_.data = comm_.allocate(probe_memory_.bytes());
  }
  const bool with_servers = is_auto() || find_strategy(options_.strategy).uses_servers;
  links_ = tutti::measure_links(comm_, {is_auto(), with_servers ? options_.servers : nullptr}, probe_memory_);
}

void TunedEngine::choose_plan() {
  if (searches()) {
    begin_search();
    return;
  }
  // A lone rank synchronizes nothing, whatever the strategy.
  const std::string name = is_auto() ? "bsp" : options_.strategy;
  const Strategy& strategy = find_strategy(name);
  if (strategy.uses_links && comm_.size() > 1) measure_links();
  std::string text;
  if (comm_.rank() == 0) {
    const Profile profile = profiler_ ? profiler_->result() : engine_.space().unmeasured_profile();
    StrategyOptions strategy_options = options_.strategy_options;
    if (options_.servers != nullptr) strategy_options.servers = options_.servers->servers();
    const Plan plan = strategy.make_plan(profile, links_.value_or(Links{}), comm_.size(), strategy_options);
    text = nlohmann::json({{"profile", profile}, {"plan", plan}}).dump();
  }
  // Rank 0's plan for everybody: ranks that planned for themselves could differ.
  const auto decided = nlohmann::json::parse(broadcast_text(comm_, text));
  profile_ = decided.at("profile").get<Profile>();
  engine_.adopt(decided.at("plan").get<Plan>(), *profile_);
  if (!profiler_) profile_.reset();  // nothing was measured
  end_profile();
  ++decisions_;
}

void TunedEngine::adopt(const Plan& plan, const Profile& profile) {
  engine_.adopt(plan, profile);
  profile_ = profile;
  end_profile();
  ++decisions_;
}

void TunedEngine::begin_search() {
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
    rules.adapt = [this](Plan& plan) { plan = engine_.adapted(std::move(plan)); };
    nlohmann::json candidates = nlohmann::json::array();
    for (const PlannedStrategy& one :
         find_candidates(profile, *links_, comm_.size(), rules, options_.auto_options.candidates))
      candidates.push_back(
          {{"strategy", one.name}, {"settings", one.settings}, {"plan", one.plan}, {"predicted_s", one.step.step_s}});
    text = nlohmann::json({{"profile", profile}, {"candidates", candidates}}).dump();
  }
  const auto decided = nlohmann::json::parse(broadcast_text(comm_, text));
  profile_ = decided.at("profile").get<Profile>();
  end_profile();
  std::vector<SearchCandidate> candidates;
  for (const nlohmann::json& one : decided.at("candidates"))
    candidates.push_back(
        {one.at("strategy"), one.at("settings"), one.at("plan").get<Plan>(), one.at("predicted_s"), {}, false});
  SearchOptions options;
  options.window_steps = steps_in(options_.auto_options.window_s, candidates.at(0).predicted_s, 4, 100);
  if (engine_.space().gradients().is_cuda())
    options.part_steps = options.window_steps;  // single steps say when they were queued
  options.steps = options_.auto_options.steps;
  options.watch_steps = steps_in(options_.auto_options.watch_s, candidates.at(0).predicted_s, 50, 2000);
  search_ = std::make_unique<StrategySearch>(std::move(candidates), options);
  engine_.allow_recording(false);  // it is told of each step, and would record one for every plan that it tries
  engine_.adopt(search_->current().plan, *profile_);
}

void TunedEngine::search_on() {
  if (!search_->step_done(seconds_since({}))) return;
  int64_t step_ns = static_cast<int64_t>(search_->window_step_s() * 1e9);
  engine_.drain();
  comm_.broadcast({&step_ns, 1, DataType::i64}, 0)->wait();
  const bool was_over = search_->is_over();
  const std::size_t before = search_->current_index();
  search_->window_took(static_cast<double>(step_ns) * 1e-9);
  if (search_->has_drifted()) {
    search_.reset();
    engine_.allow_recording(true);
    engine_.adopt(make_bsp_plan(*profile_, {}, comm_.size(), {}), *profile_);
    begin_profile();
    return;
  }
  if (search_->current_index() != before) engine_.adopt(search_->current().plan, *profile_);
  if (!search_->is_over() || was_over) return;
  engine_.allow_recording(true);
  ++decisions_;
}

}  // namespace tutti
