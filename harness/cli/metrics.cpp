#include "harness/cli/metrics.hpp"

namespace attnbench {

Metrics all_metrics() {
  Metrics all;
  for (const auto& experiment : catalogue("experiments").names())
    for (const Metric& metric : find<ExperimentEntry>(experiment).metrics)
      all[metric.name].emplace_back(experiment, metric);
  return all;
}

}  // namespace attnbench
