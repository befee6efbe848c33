#include "harness/runner/cells_function.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/statistics/power_law.hpp"
#include "harness/statistics/power_law_between.hpp"
#include "harness/statistics/rank_correlation.hpp"

namespace attnbench {
namespace {

using Columns = CellsFunction::Columns;

double sum(const Columns& of) { return std::accumulate(of[0].begin(), of[0].end(), 0.0); }

// Sorts both columns by the second one, the size, and calls `function` with the sizes and the numbers.
template <double (*function)(std::span<const double>, std::span<const double>)>
double along(const Columns& of) {
  std::vector<std::pair<double, double>> points;
  for (size_t i = 0; i < of[0].size(); ++i) points.emplace_back(of[1].at(i), of[0][i]);
  std::sort(points.begin(), points.end());
  std::vector<double> x, y;
  for (const auto& [place, number] : points) {
    x.push_back(place);
    y.push_back(number);
  }
  return function(x, y);
}

// y at x = third.
double power_law_at(const Columns& of) { return PowerLawBetween(of[0], of[1]).at(of[2].at(0)); }

bool function(const char* name, const char* summary, size_t arguments, double (*value)(const Columns&)) {
  return add(CellsFunction{.text = {.name = name, .summary = summary}, .arguments = arguments, .value = value});
}

const bool registered[]{
    function("least", "the least number", 1,
             [](const Columns& of) { return *std::min_element(of[0].begin(), of[0].end()); }),
    function("greatest", "the greatest number", 1,
             [](const Columns& of) { return *std::max_element(of[0].begin(), of[0].end()); }),
    function("sum", "the sum", 1, sum),
    function("mean", "the arithmetic mean", 1,
             [](const Columns& of) { return sum(of) / static_cast<double>(of[0].size()); }),
    function("rank_correlation", "Spearman's correlation of two numbers", 2,
             [](const Columns& of) { return rank_correlation(of[0], of[1]); }),
    function("exponent", "the least-squares power of a size", 2, along<exponent>),
    function("power_law_at",
             "a number at another size, by power laws between its sizes: (number, size, the other size)", 3,
             power_law_at),
    function("crossing",
             "the size from which on a number stays at or above 1, 0 or infinite where it always or never does", 2,
             along<last_rise_through_one>)};

}  // namespace

template class Registry<CellsFunction>;

}  // namespace attnbench
