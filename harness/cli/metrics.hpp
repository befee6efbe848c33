// The metrics of all experiments, for `list metrics`, `describe METRIC` and completion.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/experiment/experiment.hpp"

namespace attnbench {

// By name, each metric as every experiment that measures it describes it.
using Metrics = std::map<std::string, std::vector<std::pair<std::string, Metric>>>;
Metrics all_metrics();

}  // namespace attnbench
