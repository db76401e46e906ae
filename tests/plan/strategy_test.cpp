#include "tutti/strategy.h"

#include <gtest/gtest.h>

#include "plan/cost_model.h"
#include "profiles.h"
#include "tutti/error.h"

namespace tutti {
namespace {

std::vector<std::string> transfer_names(const Plan& plan) {
  std::vector<std::string> names;
  for (const Transfer& transfer : plan.transfers) names.push_back(transfer.name);
  return names;
}

using Names = std::vector<std::string>;

TEST(Strategies, CoverEveryGradientExactlyOnceForAnyProfile) {
  std::mt19937 random(42);
  for (int i = 0; i < 200; ++i) {
    const Profile profile = random_profile(random);
    for (const Strategy& strategy : strategies()) check_plan(strategy.make_plan(profile, random_links(random), 2, {}));
  }
}

TEST(Strategies, MakeEmptyPlansForModelsWithoutParameters) {
  for (const Strategy& strategy : strategies())
    EXPECT_TRUE(strategy.make_plan({}, some_links(), 2, {}).transfers.empty());
}

/// The plans of a strategy for many profiles, as text: with `change`d options and links, are they others?
template <typename Change>
bool changes_plans(const Strategy& strategy, Change change) {
  std::mt19937 random(7);
  for (int i = 0; i < 60; ++i) {
    const Profile profile = random_profile(random);
    StrategyOptions before, after;
    // Small enough for the profile's tensors to notice each of them.
    before.bucket_bytes = before.fusion_bytes = before.credit_bytes = 1 << 18;
    before.first_bucket_bytes = before.partition_bytes = 1 << 16;
    before.fusion_cycle_s = 5e-3;
    after = before;
    Links links = random_links(random), other_links = links;
    change(after, other_links);
    if (!(strategy.make_plan(profile, links, 2, before) == strategy.make_plan(profile, other_links, 2, after)))
      return true;
  }
  return false;
}

TEST(Strategies, ReadTheOptionsThatTheySayAndNoOthers) {
  for (const Strategy& strategy : strategies()) {
    for (const auto& names : {strategy.sizes, strategy.options})
      for (const std::string& name : names)
        EXPECT_TRUE(std::any_of(strategy_options().begin(), strategy_options().end(),
                                [&name = name](const StrategyOption& option) { return option.name == name; }))
            << name;
    for (const StrategyOption& option : strategy_options())
      EXPECT_EQ(changes_plans(strategy,
                              [&](StrategyOptions& options, Links&) {
                                std::visit(
                                    [&](auto field) {
                                      using Value = std::decay_t<decltype(options.*field)>;
                                      options.*field = static_cast<Value>(options.*field * 5 + 1);
                                    },
                                    option.field);
                              }),
                strategy.reads(option.name))
          << strategy.name << " --" << option.name;
  }
}

TEST(Strategies, AreWhatTheTableSays) {
  std::mt19937 random(8);
  for (const Strategy& strategy : strategies()) {
    EXPECT_EQ(changes_plans(strategy,
                            [](StrategyOptions&, Links& links) {
                              links.all_reduce.startup_s *= 40;
                              links.push_pull = links.all_reduce;
                            }),
              strategy.uses_links)
        << strategy.name;
    bool overlaps = false, only_all_reduces = true, has_servers = false;
    for (int i = 0; i < 20; ++i) {
      const Plan plan = strategy.make_plan(random_profile(random), some_links(), 2, {});
      EXPECT_EQ(plan.strategy, strategy.name);
      has_servers = has_servers || plan.servers > 0;
      for (const Transfer& transfer : plan.transfers) {
        overlaps = overlaps || transfer.starts == StartsWhen::gradients_ready;
        only_all_reduces = only_all_reduces && transfer.operation == Operation::all_reduce;
      }
    }
    EXPECT_EQ(overlaps, strategy.overlaps_backward) << strategy.name;
    EXPECT_EQ(only_all_reduces, strategy.only_all_reduces) << strategy.name;
    EXPECT_EQ(has_servers, strategy.uses_servers) << strategy.name;
  }
}

TEST(Strategies, SearchOnlyTheSizesThatTheyRead) {
  const auto value = [](const StrategyOptions& options, const StrategyOption& option) {
    return std::visit([&](auto field) { return static_cast<double>(options.*field); }, option.field);
  };
  for (const Strategy& strategy : strategies()) {
    std::vector<StrategyOptions> searched;
    if (strategy.sizes_to_plan != nullptr) searched = strategy.sizes_to_plan({});
    if (strategy.sizes_to_try != nullptr)
      for (const StrategyOptions& options : strategy.sizes_to_try({}, 100 << 20)) searched.push_back(options);
    EXPECT_EQ(searched.empty(), strategy.sizes.empty()) << strategy.name;
    for (const StrategyOptions& options : searched)
      for (const StrategyOption& option : strategy_options())
        EXPECT_TRUE(value(options, option) == value({}, option) || strategy.reads(option.name) ||
                    option.name == "first-bucket-mb")  // set beside bucket-mb, for those that have one
            << strategy.name << " --" << option.name;
  }
}

TEST(Strategies, DescribeTheirSizesAsOptions) {
  StrategyOptions options;
  options.servers = 2;
  EXPECT_EQ(describe_sizes(find_strategy("bsp"), options), "");
  EXPECT_EQ(describe_sizes(find_strategy("dear"), options), "--bucket-mb 25");
  EXPECT_EQ(describe_sizes(find_strategy("wfbp-ps"), options), "--partition-mb 4 --credit-mb 0 --servers 2");
}

TEST(Strategies, WithAMisspeltNameSuggestTheNearest) {
  try {
    find_strategy("wfpb");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'wfbp'?"), std::string::npos) << error.what();
  }
}

TEST(Bsp, SendsEverythingAtOnceAfterBackward) {
  const Plan plan = make_bsp_plan(profile_of({10, 20, 30}), {}, 2, {});
  ASSERT_EQ(plan.transfers.size(), 1u);
  EXPECT_EQ(plan.transfers[0].starts, StartsWhen::backward_done);
  EXPECT_EQ(plan.transfers[0].elements(), plan.elements);
}

TEST(Wfbp, SendsEachTensorWhenItsGradientIsReady) {
  EXPECT_EQ(transfer_names(make_wfbp_plan(profile_of({10, 20, 30}), {}, 2, {})), (Names{"p2", "p1", "p0"}));
}

TEST(Buckets, CloseOnceTheLimitIsReachedInBackwardOrder) {
  StrategyOptions options;
  options.first_bucket_bytes = 4 * 10;
  options.bucket_bytes = 4 * 50;
  const Plan plan = make_buckets_plan(profile_of({4, 6, 20, 29, 1, 60, 5}), {}, 2, options);
  EXPECT_EQ(transfer_names(plan), (Names{"p6 … p5", "p4 … p2", "p1", "p0"}));
}

TEST(Fusion, SendsWhatBecameReadyInTheSameCycle) {
  StrategyOptions options;
  options.fusion_cycle_s = 2e-3;  // gradients are ready at 1, 2, 3, 4, 5 ms
  EXPECT_EQ(transfer_names(make_fusion_plan(profile_of({1, 1, 1, 1, 1}), {}, 2, options)),
            (Names{"p4", "p3 … p2", "p1 … p0"}));
  options.fusion_bytes = 4;
  EXPECT_EQ(make_fusion_plan(profile_of({1, 1, 1, 1, 1}), {}, 2, options).transfers.size(), 5u);
}

TEST(Mgwfbp, MergesWhereTheNextGradientComesBeforeTheStartUpIsOver) {
  Profile profile = profile_of({100, 100, 100});  // ready at 1, 2, 3 ms
  Links links;
  links.all_reduce.startup_s = 0.5e-3;
  EXPECT_EQ(make_mgwfbp_plan(profile, links, 2, {}).transfers.size(), 3u);
  profile.gradients[1].ready_s = 1.2e-3;
  EXPECT_EQ(transfer_names(make_mgwfbp_plan(profile, links, 2, {})), (Names{"p2 … p1", "p0"}));
}

TEST(Mgwfbp, IsNeverPredictedToBeLaterThanWfbpOrBsp) {
  std::mt19937 random(11);
  for (int i = 0; i < 2000; ++i) {
    const Profile profile = random_profile(random);
    const Links links = random_links(random);
    const auto seconds = [&](const Plan& plan) { return predict_step(plan, profile, links).synchronized_s; };
    const double merged = seconds(make_mgwfbp_plan(profile, links, 2, {}));
    EXPECT_LE(merged, seconds(make_wfbp_plan(profile, links, 2, {})) * (1 + 1e-12));
    EXPECT_LE(merged, seconds(make_bsp_plan(profile, links, 2, {})) * (1 + 1e-12));
  }
}

TEST(ByteScheduler, PutsTheNextForwardsFirstLayersFirst) {
  // Slots p2, p1, p0 are ready at 1, 2, 3 ms; a message of 1000 elements takes 4 ms, so when p2 is through all are
  // ready.
  Links links;
  links.all_reduce.per_byte_s = 1e-6;
  StrategyOptions options;
  options.partition_bytes = 2048;
  options.credit_bytes = 1;  // one message at a time
  const Plan plan = make_bytescheduler_plan(profile_of({512, 1024, 512}), links, 2, options);
  EXPECT_EQ(plan.barrier, Barrier::next_forward);
  EXPECT_EQ(transfer_names(plan), (Names{"p2", "p0", "p1[1/2]", "p1[2/2]"}));
}

TEST(ByteScheduler, UsuallyKeepsOnePartitionUnderWayAndFourThroughServers) {
  Links links;
  links.all_reduce.per_byte_s = links.push_pull.per_byte_s = 1e-6;
  StrategyOptions options, one;
  options.partition_bytes = one.partition_bytes = 2048;
  one.credit_bytes = 2048;
  const Profile profile = profile_of({512, 1024, 512});
  EXPECT_EQ(make_bytescheduler_plan(profile, links, 2, options).transfers,
            make_bytescheduler_plan(profile, links, 2, one).transfers);
  EXPECT_EQ(make_bytescheduler_ps_plan(profile, links, 2, options).max_in_flight, 4);
  EXPECT_EQ(make_wfbp_ps_plan(profile, links, 2, options).max_in_flight, 4);
}

TEST(ByteScheduler, WithCreditCommitsToWhatIsReady) {
  Links links;
  links.all_reduce.per_byte_s = 1e-6;
  StrategyOptions options;
  options.partition_bytes = 2048;
  options.credit_bytes = 1 << 20;
  EXPECT_EQ(transfer_names(make_bytescheduler_plan(profile_of({512, 1024, 512}), links, 2, options)),
            (Names{"p2", "p1[1/2]", "p1[2/2]", "p0"}));
}

TEST(ByteScheduler, SearchedPartitionsArePredictedToBeNoSlowerThanTheDefault) {
  std::mt19937 random(5);
  StrategyOptions search;
  search.partition_bytes = 0;
  for (int i = 0; i < 30; ++i) {
    const Profile profile = random_profile(random);
    const Links links = random_links(random);
    const auto seconds = [&](const StrategyOptions& options) {
      return predict_step(make_bytescheduler_plan(profile, links, 2, options), profile, links).step_s;
    };
    StrategyOptions fixed;
    fixed.partition_bytes = fixed.credit_bytes = 4 << 20;
    EXPECT_LE(seconds(search), seconds(fixed) * (1 + 1e-5));
  }
}

TEST(Dear, GathersInTheOrderOfTheNextForwardWhatItScatteredInBackward) {
  StrategyOptions options;
  options.bucket_bytes = 4;
  const Plan plan = make_dear_plan(profile_of({1, 1}), {}, 2, options);
  ASSERT_EQ(plan.transfers.size(), 4u);
  EXPECT_EQ(transfer_names(plan), (Names{"p1", "p0", "p0", "p1"}));
  EXPECT_EQ(plan.transfers[0].operation, Operation::reduce_scatter);
  EXPECT_EQ(plan.transfers[2].operation, Operation::all_gather);
  EXPECT_EQ(plan.transfers[2].after, 1);
  EXPECT_EQ(plan.transfers[3].after, 0);
}

TEST(ParameterServers, CarryLoadsThatDifferByLessThanOnePartition) {
  std::mt19937 random(3);
  StrategyOptions options;
  options.partition_bytes = 64 << 10;
  for (int i = 0; i < 50; ++i) {
    const Profile profile = random_profile(random);
    for (const auto& make : {make_bsp_ps_plan, make_wfbp_ps_plan, make_bytescheduler_ps_plan}) {
      options.servers = 1 + i % 7;
      const Plan plan = make(profile, random_links(random), 4, options);
      std::vector<int64_t> load(static_cast<std::size_t>(options.servers), 0);
      int64_t longest = 0;
      for (const Transfer& transfer : plan.transfers) {
        load.at(static_cast<std::size_t>(transfer.server)) += transfer.elements();
        longest = std::max(longest, transfer.elements());
      }
      EXPECT_LE(longest * 4, options.partition_bytes);
      EXPECT_LE(*std::max_element(load.begin(), load.end()) - *std::min_element(load.begin(), load.end()), longest);
    }
  }
}

TEST(ParameterServers, StandBesideEachRankUnlessTheirNumberIsGiven) {
  EXPECT_EQ(make_wfbp_ps_plan(profile_of({10, 20}), {}, 3, {}).servers, 3);
}

TEST(CostModel, HidesInTheNextForwardWhatCrossesTheEndOfAStep) {
  // Two gradients, ready at 1 and 2 ms, of 1 ms of communication each; forward needs p0 at 0.5 ms and p1 at 1 ms, and
  // takes 2 ms in all. After backward p1 is through and p0 on its way until 3 ms.
  const Profile profile = profile_of({250, 250});
  Links links;
  links.all_reduce.per_byte_s = 1e-6;
  const Plan barrier = make_wfbp_plan(profile, links, 2, {});
  EXPECT_NEAR(predict_step(barrier, profile, links).step_s, 3e-3 + 2e-3, 1e-4);
  Plan crossing = barrier;
  crossing.barrier = Barrier::next_forward;
  EXPECT_NEAR(predict_step(crossing, profile, links).step_s, 3e-3 + 1.5e-3, 1e-4);
}

TEST(LinkCost, IsFittedToWhatWasMeasured) {
  std::vector<LinkSample> samples;
  for (int64_t bytes = 1024; bytes < 1 << 26; bytes *= 4)
    samples.push_back({bytes, 30e-6 + 2e-9 * static_cast<double>(bytes)});
  const LinkCost cost = fit_link_cost(samples);
  EXPECT_NEAR(cost.startup_s, 30e-6, 1e-8);
  EXPECT_NEAR(cost.per_byte_s, 2e-9, 1e-12);
  EXPECT_LT(cost.residual, 1e-6);
  EXPECT_EQ(fit_link_cost({}).seconds(1000), 0);
  EXPECT_GE(fit_link_cost({{1000, 2e-3}, {100000, 1e-3}}).per_byte_s, 0);
}

}  // namespace
}  // namespace tutti
