#include "harness/cli/shown_results.hpp"

#include "harness/cli/terminal.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/runner/results_table.hpp"

namespace attnbench {

std::string shown_results(const std::filesystem::path& results, const std::vector<StoredCell>& cells,
                          const std::string& experiment, const std::string& metric, size_t lines) {
  ShownMetric shown{.experiment = experiment, .metric = metric};
  if (catalogue("experiments").has(experiment)) {
    const auto& entry = find<ExperimentEntry>(experiment);
    if (metric.empty() || metric == entry.headline.metric) {
      shown.metric = entry.headline.metric;
      shown.label = entry.headline.label;
    } else {
      for (const Metric& one : entry.metrics)
        if (one.name == metric) shown.label = one.text;
    }
  }
  if (shown.metric.empty()) return "";
  constexpr size_t around = 5;  // lines of the heading, and of what was cut
  return results_table(shown, measured_cells(results, cells, shown.metric),
                       {.width = terminal_width(), .rows = lines > 2 * around ? lines - around : around});
}

}  // namespace attnbench
