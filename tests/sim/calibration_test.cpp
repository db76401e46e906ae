#include "sim/calibration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tutti/error.h"

namespace tutti {
namespace {

// Some rows of the published table (2020-05-29), as they are written there.
const std::string kTable =
    "# Results\n"
    "|  DNN | BS | CONNECTION | METHOD | Baseline | 1 GPU | 4 GPUs | 8 GPUs | 16 GPUs | 32 GPUs |\n"
    "|---- | ---- | ---- | ---- | ---- | ---- | ---- | ---- | ---- | ---- | \n"
    "| ResNet-50 | 64 | 10GbE with TCP/IP | BSP-A2A | 253.1 | 925.020 +- 4.42 | 1282.280 +- 1.94 | 2485.120 +- 4.27 | "
    "4920.820 +- 4.43 | \n"
    "| ResNet-50 | 64 | 100GbIB with RDMA | WFBP-A2A | 253.1 | 1014.280 +- 1.13 | 2017.120 +- 3.96 | 3946.060 +- 11.07 "
    "| 7326.560 +- 12.13 | \n"
    "| ResNet-50 | 64 | 100GbE with TCP/IP | WFBP-PS | 253.1 | 1014.780 +- 0.47 | 2002.060 +- 29.46 | 3811.350 +- "
    "30.02 "
    "| 6933.738 +- 41.83 | \n"
    "| BERT-Base | 64 | 10GbE with TCP/IP | WFBP-PS | 212.8 | 653.500 +- 0.94 | 657.380 +- 23.13 | 1341.115 +- 26.96 | "
    "2546.695 +- 21.35 | \n"
    "| BERT-Base | 64 | 100GbIB with RDMA | BSP-PS | 212.8 | 557.920 +- 0.74 | 1040.010 +- 23.68 | 2077.680 +- 12.70 | "
    "4162.205 +- 19.55 | \n"
    "| BERT-Base | 64 | 100GbE with TCP/IP | MG-WFBP | 212.8 | 658.420 +- 4.08 | 1021.400 +- 9.85 | 1880.280 +- 59.19 "
    "| "
    "3540.800 +- 52.34 | \n";

std::vector<PublishedRow> good_rows() {
  std::vector<PublishedRow> rows;
  for (const PublishedRow& row : parse_published(kTable, "table"))
    if (!row.is_mislabelled) rows.push_back(row);
  return rows;
}

Clusters shipped() {
  Clusters clusters;
  for (const std::string& name : published_networks()) clusters[name] = load_cluster(name);
  return clusters;
}

TEST(PublishedTable, IsReadWithItsColumnsAfterTheBaseline) {
  const auto rows = parse_published(kTable, "table");
  ASSERT_EQ(rows.size(), 24u);
  EXPECT_EQ(rows[1].model, "resnet50");
  EXPECT_EQ(rows[1].network, "10gbe");
  EXPECT_EQ(rows[1].ranks, 8);
  EXPECT_DOUBLE_EQ(rows[1].throughput, 1282.28);
  EXPECT_DOUBLE_EQ(rows[1].deviation, 1.94);
  EXPECT_NEAR(rows[1].step_s(), 64 * 8 / 1282.28, 1e-12);
  EXPECT_EQ(std::count_if(rows.begin(), rows.end(), [](const PublishedRow& row) { return row.is_mislabelled; }), 3);
}

std::string row_refusal(const std::string& rows) {
  try {
    parse_published("| DNN | BS | CONNECTION | METHOD | Baseline | 4 GPUs |\n" + rows, "t.md");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(PublishedTable, TakesAnyModelThatCanBePlannedAndColumnsAsItsHeaderHasThem) {
  const auto rows = parse_published(
      "| DNN | BS | CONNECTION | METHOD | Baseline | 2 GPUs | 16 GPUs |\n"
      "| BERT-Large | 8 | 100GbIB with RDMA | BSP-A2A | 60 | 100 +- 1 | 800 |\n",
      "t.md");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].model, "bert-large");
  EXPECT_EQ(rows[1].network, "100gbib");
  EXPECT_EQ(rows[1].ranks, 16);
  EXPECT_DOUBLE_EQ(rows[1].step_s(), 8 * 16 / 800.0);
  EXPECT_EQ(run_of(rows[1]).optimizer, "adam");
}

TEST(PublishedTable, SaysWhichLineItCannotRead) {
  EXPECT_EQ(row_refusal("| ResNet-50 | 64 | 10GbE | BSP-A2A | 253.1 | 900 |\n"), "accepted");
  for (const auto& [row, why] : std::vector<std::pair<std::string, std::string>>{
           {"| ResNet-50 | 64 | 10GbE | BSP-A2A | 253.1 | fast |", "t.md, line 2: 'fast' is no rate"},
           {"| ResNet-50 | 64 | 10GbE | BSP-A2A | 253.1 |", "t.md, line 2: 5 fields"},
           {"| ResNet-50 | 64 | 10GbE | BSP-A2A | - | 900 |", "t.md, line 2: the samples/s of a single GPU"},
           {"| ResNet-50 | 64 | 10GbE | BSP-A2A | 253.1 | 0 |", "t.md, line 2: nothing is trained"},
           {"| ResNet-5 | 64 | 10GbE | BSP-A2A | 253.1 | 900 |", "t.md, line 2: unknown model 'ResNet-5'"},
           {"| ResNet-50 | 64 | Modem | BSP-A2A | 253.1 | 900 |", "t.md, line 2: unknown network 'Modem'"}})
    EXPECT_EQ(row_refusal(row).substr(0, why.size()), why);
  EXPECT_THROW(parse_published("nothing here", "t.md"), Error);
  EXPECT_THROW(parse_published("", "t.md"), Error);
}

TEST(PublishedRun, PlacesKeysOnServersAsUnevenlyAsBytePsDoes) {
  // ResNet-50 on 2 to 8 servers: the fullest has 1.06 to 1.62 times its share.
  PublishedRow row = good_rows()[0];
  row.method = "WFBP-PS";
  for (const auto& [ranks, imbalance] : {std::pair{8, 1.06}, std::pair{32, 1.62}}) {
    row.ranks = ranks;
    const PublishedRun run = run_of(row);
    std::vector<double> load(static_cast<std::size_t>(ranks / 4));
    double all = 0;
    for (const Transfer& transfer : run.plan.transfers) {
      load[static_cast<std::size_t>(transfer.server)] += static_cast<double>(transfer.elements());
      all += static_cast<double>(transfer.elements());
    }
    EXPECT_NEAR(*std::max_element(load.begin(), load.end()) * static_cast<double>(load.size()) / all, imbalance, 0.01);
  }
}

TEST(PublishedRun, OfBspWithServersPushesOneTensorInPartitionsAndUpdatesWithSgd) {
  for (const PublishedRow& row : good_rows()) {
    if (row.method != "BSP-PS" || row.ranks != 8) continue;
    const PublishedRun run = run_of(row);
    EXPECT_EQ(run.optimizer, "sgd");
    std::vector<int64_t> load(2);
    for (const Transfer& transfer : run.plan.transfers) {
      EXPECT_EQ(transfer.starts, StartsWhen::backward_done);
      EXPECT_LE(transfer.elements() * 4, 4'096'000);
      ++load[static_cast<std::size_t>(transfer.server)];
    }
    EXPECT_EQ(load[0] + load[1], (run.plan.elements * 4 + 4'095'999) / 4'096'000);
    EXPECT_LE(std::abs(load[0] - load[1]),
              1);  // neighbours differ in a digit, which the hash sends to the other server
    return;
  }
  FAIL() << "no such row";
}

#ifdef TUTTI_HAS_YAML
TEST(ShippedClusters, PredictPublishedRowsWithinAFewPercent) {
  const std::vector<Prediction> predictions = PublishedRuns(good_rows()).predict(shipped());
  for (const Prediction& prediction : predictions)
    EXPECT_LT(std::abs(prediction.error()), 0.10) << prediction.row.model << " " << prediction.row.network << " "
                                                  << prediction.row.method << " " << prediction.row.ranks;
  EXPECT_LT(score_of(predictions).mean, 0.03);
}
#endif

TEST(Calibration, RecoversAParameterFromWhatItsSimulationMeasured) {
  Clusters truth = unfitted_clusters();
  truth.at("10gbe").network.bytes_per_s = 0.9e9;
  std::vector<PublishedRow> rows;
  for (const PublishedRow& row : good_rows())
    if (row.network == "10gbe") rows.push_back(row);
  for (const Prediction& prediction : PublishedRuns(rows).predict(truth))
    for (PublishedRow& row : rows)
      if (row.method == prediction.row.method && row.ranks == prediction.row.ranks && row.model == prediction.row.model)
        row.throughput = static_cast<double>(row.batch) * row.ranks / prediction.step_s;
  std::vector<Knob> knobs;
  for (const Knob& knob : published_knobs())
    if (knob.network == "10gbe" && knob.name == "network.bytes_per_s") knobs.push_back(knob);
  const Calibration found = calibrate(rows, unfitted_clusters(), knobs);
  EXPECT_NEAR(found.clusters.at("10gbe").network.bytes_per_s, 0.9e9, 0.01e9);
  EXPECT_LT(score_of(PublishedRuns(rows).predict(found.clusters)).worst, 0.01);
}

TEST(Score, IsMeanAndNinetiethPercentileOfAbsoluteErrors) {
  std::vector<Prediction> predictions;
  for (int i = 1; i <= 10; ++i) {
    PublishedRow row;
    row.batch = 100;
    row.ranks = 1;
    row.throughput = 100;  // a step of one second
    predictions.push_back({row, 1 + (i % 2 == 0 ? 0.01 : -0.01) * i});
  }
  const Score score = score_of(predictions);
  EXPECT_NEAR(score.mean, 0.055, 1e-9);
  EXPECT_NEAR(score.worst_tenth, 0.09, 1e-9);
  EXPECT_NEAR(score.worst, 0.10, 1e-9);
}

TEST(Choices, PreferServersOnlyWhereTheyAreClearlyFaster) {
  PublishedRow ring, servers;
  ring.batch = servers.batch = 100;
  ring.ranks = servers.ranks = 1;
  ring.method = "MG-WFBP";
  servers.method = "WFBP-PS";
  ring.throughput = 95;
  servers.throughput = 100;
  EXPECT_EQ(choices_of({{ring, 1.0}, {servers, 0.99}})[0].chosen, "MG-WFBP");
  EXPECT_NEAR(choices_of({{ring, 1.0}, {servers, 0.99}})[0].loss, 0.05, 1e-9);
  EXPECT_EQ(choices_of({{ring, 1.0}, {servers, 0.9}})[0].chosen, "WFBP-PS");
}

}  // namespace
}  // namespace tutti
