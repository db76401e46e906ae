// How fast samples come out of the loader when nobody uses them.
// Usage: loader_bench DATA WORKERS BATCH SECONDS [PATH]. Prints one JSON object.

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/build_info.h"
#include "base/clock.h"
#include "base/malloc_tuning.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "data/sampler.h"

namespace {

/// Time of processors that this process has used, on all its threads.
double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace tutti;
  if (argc != 5 && argc != 6) {
    std::fprintf(stderr, "usage: loader_bench DATA WORKERS BATCH SECONDS [PATH]\n");
    return 2;
  }
  tune_malloc();
  DataOptions options;
  options.name = argv[1];
  if (argc == 6) options.folder = argv[5];
  const int64_t batch = std::atoll(argv[3]);
  const double seconds = std::atof(argv[4]);
  try {
    const auto data = open_data(options).train;
    LoaderOptions loading;
    loading.workers = std::atoi(argv[2]);
    Sampler sampler(data->size(), /*seed=*/1, batch, /*ranks=*/1);
    int64_t samples = 0;
    double took_s = 0, cpu_s = 0;
    // Epoch 0, a short one, is for caches and threads to come up.
    for (; took_s < seconds; ++loading.epoch) {
      const bool is_warm_up = loading.epoch == 0;
      sampler.begin_epoch(loading.epoch);
      // Of millions, the beginning is enough.
      const int64_t steps = std::min<int64_t>(sampler.steps(), is_warm_up ? 2 * (loading.workers + 1) : 2000);
      std::vector<std::vector<int64_t>> batches;
      for (int64_t step = 0; step < steps; ++step) batches.push_back(sampler.indices(step, 0));
      const Clock::time_point start = Clock::now();
      const double cpu_start_s = cpu_seconds();
      Loader loader(data, std::move(batches), loading);
      while (loader.has_next() && took_s + seconds_since(start) < seconds) {
        const int64_t loaded = loader.next().size;
        if (!is_warm_up) samples += loaded;
      }
      if (is_warm_up) continue;
      took_s += seconds_since(start);
      cpu_s += cpu_seconds() - cpu_start_s;
    }
    const nlohmann::json record = {{"data", data->name()},
                                   {"workers", loading.workers},
                                   {"batch", batch},
                                   {"samples", samples},
                                   {"seconds", took_s},
                                   {"cpu_seconds", cpu_s},
                                   {"samples_per_s", static_cast<double>(samples) / took_s},
                                   {"commit", build_commit()},
                                   {"build", build_type()}};
    std::printf("%s\n", record.dump().c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "loader_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
