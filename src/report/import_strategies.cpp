#include <fmt/format.h>

#include <set>

#include "published/strategies_table.h"
#include "report/import.h"

namespace tutti {

std::vector<Cell> import_strategies(PublishedText& text) {
  std::vector<Cell> cells;
  std::set<std::string> baselines;
  for (const StrategiesRow& row : read_strategies(text))
    for (const PublishedRate& rate : row.rates) {
      Cell cell = published_cell(text, row.line);
      cell.id += fmt::format(":{}", rate.ranks);
      cell.config.model = row.model;
      cell.config.batch = row.batch;
      cell.config.network = row.network;
      cell.config.ranks = rate.ranks;
      cell.throughput = StatedRate{rate.samples_per_s, rate.deviation};
      cell.is_baseline = rate.is_baseline();
      // One rank synchronizes nothing: rows repeat the figure for every strategy.
      if (cell.is_baseline && !baselines
                                   .insert(fmt::format("{}\x1f{}\x1f{}", key_of(cell.config), rate.samples_per_s,
                                                       rate.deviation.value_or(-1)))
                                   .second)
        continue;
      if (!cell.is_baseline) cell.config.strategy = row.method;
      cells.push_back(std::move(cell));
    }
  return cells;
}

}  // namespace tutti
