// Rank correlations over cells that are not independent, and of the order of methods with their order everywhere.
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/runner/numbers_function.hpp"
#include "harness/statistics/rank_correlation.hpp"

namespace attnbench {
namespace {

using NamedCells = NumbersFunction::NamedCells;

// A metric of cells. Cells without numbers are left out of what is correlated.
struct Measure {
  std::string metric;
  Cells cells;
};

// Over all cells and replicates as one sample, whose points depend by that column of x's cells and by replicate. Cells
// go together in order, each of x with as many of y: of each head with those of its methods.
Estimate clustered(const Measure& x, const Measure& y, const std::string& column, double error_rate) {
  std::vector<double> of_x, of_y;
  std::vector<std::vector<size_t>> clusterings(2);
  std::map<std::string, size_t> clusters;
  const auto xs = x.cells.one_by_one(), ys = y.cells.one_by_one();
  for (size_t i = 0; i < ys.size(); ++i) {
    const Cells& one = xs[i * xs.size() / ys.size()];
    const size_t cluster = clusters.try_emplace(one.by({column}).front().name, clusters.size()).first->second;
    const Samples numbers = one.scalar(x.metric);
    for (const auto& [replicate, number] : ys[i].scalar(y.metric)) {
      const auto other = numbers.find(replicate);
      if (other == numbers.end()) continue;
      of_x.push_back(other->second);
      of_y.push_back(number);
      clusterings[0].push_back(cluster);
      clusterings[1].push_back(static_cast<size_t>(replicate));
    }
  }
  if (of_x.empty()) return unmeasured();
  Estimate found = certain(rank_correlation(of_x, of_y));
  if (error_rate < 1) found.interval = clustered_rank_correlation_interval(of_x, of_y, clusterings, error_rate);
  found.count = std::ssize(of_x);
  return found;
}

// A statement's further selections are named by their metrics: the correlation of each with this metric of the
// statement's own cells.
std::vector<Number> clustered_correlations(const NamedCells& cells, const std::string& metric,
                                           const std::string& column) {
  std::vector<Number> all;
  const Measure own{metric, cells.at("")};
  for (const auto& [name, of_name] : cells)
    if (!name.empty())
      all.push_back({.what = name, .estimate = [=, other = Measure{name, of_name}](double error_rate) {
                       return clustered(other, own, column, error_rate);
                     }});
  return all;
}

// By replicate, the rank correlation over methods of the kept mass on one input with its sum over all inputs.
Samples agreement(const Cells& here, const Cells& everywhere) {
  const std::string metric = "mass_recall";
  std::map<Index, std::vector<double>> numbers, sums;
  for (const Cells::Part& method : here.by({"method"})) {
    Samples sum;
    for (const Cells& one : everywhere.where(method.shared).one_by_one())
      for (const auto& [replicate, number] : one.scalar(metric)) sum[replicate] += number;
    for (const auto& [replicate, number] : method.cells.scalar(metric)) {
      numbers[replicate].push_back(number);
      sums[replicate].push_back(sum[replicate]);
    }
  }
  Samples all;
  for (const auto& [replicate, of_methods] : numbers)
    if (const double found = rank_correlation(of_methods, sums[replicate]); std::isfinite(found))
      all[replicate] = found;
  return all;
}

std::vector<Number> agreements(const NamedCells& cells) {
  std::vector<Number> all;
  const Cells everywhere = cells.at("");
  for (const Cells::Part& input : everywhere.by({"input_name"}))
    all.push_back({.what = input.name, .samples = [=, here = input.cells] { return agreement(here, everywhere); }});
  return all;
}

bool function(const char* name, const char* summary, std::function<std::vector<Number>(const NamedCells&)> plan) {
  return add(NumbersFunction{.text = {.name = name, .summary = summary}, .plan = std::move(plan)});
}

const bool registered[]{
    function("loss-correlations",
             "Spearman's correlation of each metric with excess_bits over cells and texts, whose points depend by "
             "layer and by text",
             [](const NamedCells& cells) { return clustered_correlations(cells, "excess_bits", "layer"); }),
    function("rank-correlations",
             "Spearman's correlation of each metric with effective_rank over cells and texts, whose points depend by "
             "input and by text",
             [](const NamedCells& cells) { return clustered_correlations(cells, "effective_rank", "input"); }),
    function("order-of-kept-mass",
             "for each input, Spearman's correlation over methods of mass_recall with its sum over all inputs",
             agreements)};

}  // namespace
}  // namespace attnbench
