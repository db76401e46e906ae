#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/gnuplot.h"
#include "report/figures.h"

namespace tutti {
namespace {

constexpr std::size_t kMostBars = 48;

/// The mean of the parts of a group's cells; without cells that have them, none.
std::optional<StepParts> mean_parts(const Group& group) {
  StepParts sum;
  std::map<std::string, double> exposed;
  double count = 0;
  for (const Cell* cell : group.cells) {
    if (!cell->parts) continue;
    ++count;
    sum.compute_s += cell->parts->compute_s;
    sum.data_wait_s += cell->parts->data_wait_s;
    sum.optimizer_s += cell->parts->optimizer_s;
    for (const auto& [cause, seconds] : cell->parts->exposed) exposed[cause] += seconds;
  }
  if (count == 0) return std::nullopt;
  sum.compute_s /= count;
  sum.data_wait_s /= count;
  sum.optimizer_s /= count;
  for (const auto& [cause, seconds] : exposed) sum.exposed.emplace_back(cause, seconds / count);
  return sum;
}

}  // namespace

void add_step_parts_figure(const std::vector<Group>& groups, std::vector<Figure>& figures,
                           std::vector<std::string>& notes) {
  std::vector<const Group*> shown;
  std::vector<StepParts> parts;
  std::set<std::string> causes;
  std::size_t left_out = 0;
  for (const Group& group : groups)
    if (std::optional<StepParts> mean = mean_parts(group)) {
      if (shown.size() == kMostBars) {
        ++left_out;
        continue;
      }
      shown.push_back(&group);
      parts.push_back(std::move(*mean));
      for (const auto& [cause, seconds] : parts.back().exposed) causes.insert(cause);
    }
  if (shown.empty()) return;
  if (left_out > 0) notes.push_back(fmt::format("{} more configurations are not in the figure of steps", left_out));
  std::vector<std::string> names = {"compute"};
  for (const std::string& cause : causes) names.push_back("exposed: " + cause);
  names.insert(names.end(), {"data wait", "optimizer"});
  const std::vector<std::string> labels = short_labels(shown);
  Figure figure;
  figure.id = "step-parts";
  figure.title = "Where the time of a step goes";
  figure.caption = "Milliseconds per step, mean over ranks. Exposed: communication that computation waited for.";
  figure.width = std::max(700, 260 + 48 * static_cast<int>(shown.size()));
  figure.height = 600;
  figure.program =
      "set style data histograms\nset style histogram rowstacked\nset style fill solid 0.85 border -1\n"
      "set boxwidth 0.7\nset ylabel 'ms per step'\nset yrange [0:*]\nset grid y\nset key outside right noenhanced\n"
      "set xtics (";
  for (std::size_t i = 0; i < shown.size(); ++i)
    figure.program += fmt::format("{}{} {}", i == 0 ? "" : ", ", gnuplot_tic_label(labels[i]), i);
  figure.program += ") rotate by -45 noenhanced\n$parts << END\n";
  for (std::size_t i = 0; i < shown.size(); ++i) {
    figure.program += fmt::format("{:.9g}", parts[i].compute_s * 1e3);
    for (const std::string& cause : causes) {
      const auto found = std::find_if(parts[i].exposed.begin(), parts[i].exposed.end(),
                                      [&](const auto& part) { return part.first == cause; });
      figure.program += fmt::format(" {:.9g}", found == parts[i].exposed.end() ? 0.0 : found->second * 1e3);
    }
    figure.program += fmt::format(" {:.9g} {:.9g}\n", parts[i].data_wait_s * 1e3, parts[i].optimizer_s * 1e3);
  }
  figure.program += "END\nplot ";
  for (std::size_t i = 0; i < names.size(); ++i)
    figure.program += fmt::format("{}$parts using {} title {}", i == 0 ? "" : ", ", i + 1, gnuplot_quoted(names[i]));
  figures.push_back(std::move(figure));
}

}  // namespace tutti
