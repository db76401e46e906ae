// Published figures and texts go in; out come the tables of `tutti report`, and what `tutti calibrate` says.
#include "fuzz/command.h"

namespace tutti::fuzz {

static std::string fuzz_published_file(std::string_view input) {
  write_input(input, {"figures.csv"});
  const std::string file = (command_folder() / "figures.csv").string();
  return command_outcome({"report", file, "--csv"}) + command_outcome({"report", file, "--json"}) +
         command_outcome({"calibrate", file});
}

static std::vector<std::string> published_file_seeds() {
  return {
      "# Source: x\nmodel,batch,ranks,hosts,samples_per_s,epoch,step,data_per_s,train_s\na,64,3,n0:2 "
      "n1:1,250.5,0,200,9,\na,64,3,n0:2 n1:1,250.5,0,,,5\n",
      "data,nodes,ranks,run_s,node_list\nMNIST,2,4,60,\"gn[01,03]\"\n",
      "| DNN | BS | CONNECTION | METHOD | Baseline | 1 GPU | 4 GPUs |\n|---|---|\n| a | 64 | b | c | 250.0 | 500 +- "
      "5.00 |\n| a | 64 | b | d | 250.0 | 1 ± 2 |\n",
      "# MNIST\n## ResNet18-2080ti-128batch_size\n### lm6-120.7\n- Step200: 100.71 data/sec\n- Epoch 0 in 543.88 "
      "sec, test time 13.77 sec, test accuracy:0.86\n",
      "inf",
      "-1e999",
      "[1-65535],m[1-65535]",
      "0:00:00"};
}

static const Target kPublishedFile("published_file", fuzz_published_file, published_file_seeds);

}  // namespace tutti::fuzz
