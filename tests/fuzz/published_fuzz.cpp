// A published text goes in, all tables and records come out: nothing that can be read may break what is made of it.
#include <nlohmann/json.hpp>

#include "fuzz/fuzz.h"
#include "report/import.h"
#include "report/report.h"

namespace tutti::fuzz {

static std::string fuzz_published(std::string_view input) {
  return outcome([&] {
    PublishedText text = published_text("text", std::string(input));
    CellSet set;
    set.cells = import_published(text);
    terminal_text(build_report(set), 10);
  });
}

static std::vector<std::string> published_seeds() {
  return {
      "workers 2\nRunning with 1 GPUs\nEpoch is [1/1], batch size 16\nTraining time: 8.50 seconds\nCommunication "
      "time: 0.5 seconds\n---\n",
      "# MNIST\n## ResNet18-2080ti-128batch_size\n### lm6-120.7\n- Step200: 100.71 data/sec\n- Epoch 0 in 543.88 "
      "sec, test time 13.77 sec, test accuracy:0.86\n",
      "# Two\n## ResNet18-lm1:2x2080ti, lm6:1x2080ti-128batch_size, 163.68-2.1x, baseline: 81.84\n- Step 200 1 "
      "data/sec\n",
      "| DNN | BS | CONNECTION | METHOD | Baseline | 1 GPU | 4 GPUs |\n|---|---|\n| a | 64 | b | c | 250.0 | 500 +- "
      "5.00 |\n| a | 64 | b | d | 250.0 | 1 ± 2 |\n",
      "# MNIST x\n| #Nodes | #GPUs | Epoch | Batchsize | Steps | Runtime | Speedup | Node(s) |\n|---|\n| 1 | 1 | 10 "
      "| 64 | 938 | 2:00:00 | 1 | gn[03,05-07] |\n| **1** | **1** | **1** | **6** | **9** | **2:00:00** | **1** | "
      "**Avg** |\n",
      "# Source: x\nmodel,batch,ranks,hosts,samples_per_s,epoch,step,data_per_s,train_s\na,64,3,n0:2 "
      "n1:1,250.5,0,200,9,\n"
      "a,64,3,n0:2 n1:1,250.5,0,,,5\n",
      "data,nodes,ranks,run_s,node_list\nMNIST,2,4,60,\"gn[01,03]\"\n",
      "inf",
      "-1e999",
      "[1-2]",
      "0:00:00"};
}

static const Target kPublished("published", fuzz_published, published_seeds);

}  // namespace tutti::fuzz
