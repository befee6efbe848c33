#include "experiments/recipes/growth.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "harness/runner/match.hpp"
#include "harness/statistics/power_law.hpp"

namespace attnbench {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// The factor by which the metric grows per doubling of n between two lengths, one number per block.
std::vector<double> doublings(const Cells& shorter, const Cells& longer, const std::string& metric) {
  const double doublings_between =
      std::log2(static_cast<double>(length_of(longer)) / static_cast<double>(length_of(shorter)));
  std::vector<double> factors = times(longer, shorter, metric);
  for (double& factor : factors) factor = std::pow(factor, 1 / doublings_between);
  return factors;
}

// A function of the lengths and the metric at them, evaluated for each block of turns.
std::vector<double> of_each_block(const Cells& curve, const std::string& metric,
                                  double (*function)(std::span<const double>, std::span<const double>)) {
  std::vector<double> n;
  std::vector<std::vector<double>> samples;
  size_t blocks = std::numeric_limits<size_t>::max();
  for (const Cells& one : by_length(curve)) {
    n.push_back(static_cast<double>(length_of(one)));
    samples.push_back(one.turns(metric));
    blocks = std::min(blocks, samples.back().size());
  }
  std::vector<double> all;
  for (size_t b = 0; b < blocks; ++b) {
    std::vector<double> y;
    for (const auto& of_length : samples) y.push_back(of_length[b]);
    all.push_back(function(n, y));
  }
  return all;
}

double exponent_of_flops(const std::vector<Cells>& lengths) {
  std::vector<double> n, flops;
  for (const Cells& one : lengths) {
    const Cell cell = one.all().front().run;
    const auto cost = cost_of(cell.method, cell.problem.shape, Match::Cost::flops);
    if (!cost || *cost <= 0) return std::numeric_limits<double>::quiet_NaN();
    n.push_back(static_cast<double>(length_of(one)));
    flops.push_back(*cost);
  }
  return exponent(n, flops);
}

double disturbed_share(const Cells& one) {
  const auto marks = one.turns("disturbed");
  return marks.empty() ? 0 : std::accumulate(marks.begin(), marks.end(), 0.0) / static_cast<double>(marks.size());
}

// Whether all lengths were measured in the same session, so that block b of each ran at about the same time.
bool one_session(const std::vector<Cells>& lengths) {
  const Samples first = lengths.front().scalar("session");  // rows of earlier versions lack it
  return !first.empty() &&
         std::all_of(lengths.begin(), lengths.end(), [&](const Cells& one) { return one.scalar("session") == first; });
}

// The exponents of time beside those of FLOPs: one by one for up to four curves, as a range for more.
std::string words_of(const std::vector<Curve>& curves, const std::vector<Estimate>& exponents) {
  constexpr size_t most_names = 4;
  std::vector<std::string> words;
  double least = infinity, most = -infinity;
  for (size_t i = 0; i < curves.size(); ++i) {
    least = std::min(least, exponents[i].value);
    most = std::max(most, exponents[i].value);
    words.push_back(fmt::format("{}: n^{}", curves[i].name, exponents[i].text()));
    if (const double flops = exponent_of_flops(by_length(curves[i].cells)); !std::isnan(flops))
      words.back() += fmt::format(", FLOPs n^{:.2f}", flops);
  }
  if (curves.size() > most_names) return fmt::format("n^{:.2f} to n^{:.2f} over {} curves", least, most, curves.size());
  return fmt::format("{}", fmt::join(words, "; "));
}

}  // namespace

const GrowthLaw linear_growth{"n", 0, 2.3}, n_log_n_growth{"n log n", 0, 2.17 * 1.15},
    n_root_n_growth{"n^1.5", 2.83 / 1.15, 2.83 * 1.15}, quadratic_growth{"n^2", 3.5, infinity};

std::string turns(const Recipe& recipe, int blocks_at_full_size) {
  return recipe.sized<std::string>("blocks=2,turn=1", "blocks=48,turn=1",
                                   fmt::format("blocks={},turn=10", blocks_at_full_size));
}

Panel time_panel(std::string title, const Cells& cells, std::string label) {
  return {.title = std::move(title),
          .cells = cells,
          .x = {"n"},
          .x_label = "sequence length n",
          .x_scale = "log2",
          .y = "seconds",
          .y_label = std::move(label),
          .y_scale = "log10",
          .interval = "median",
          .slope = true};
}

Panel speedup_panel(std::string title, const Cells& cells) {
  return {.title = std::move(title),
          .cells = cells,
          .x = {"n"},
          .x_label = "sequence length n",
          .x_scale = "log2",
          .y = "speedup",
          .y_label = "times faster than softmax",
          .y_scale = "log2",
          .interval = "median",
          .theory = "speedup_by_flops",
          .crossing = true};
}

std::vector<Curve> curves_of(const Cells& cells, const std::vector<std::string>& methods) {
  std::vector<Curve> curves;
  for (const auto& method : methods) curves.push_back({method, cells.method(method)});
  return curves;
}

Finding with_disturbances(Finding finding, const std::vector<Curve>& curves) {
  size_t all = 0, loud = 0;
  double worst = 0;
  std::string where;
  for (const Curve& curve : curves)
    for (const Cells& one : by_length(curve.cells)) {
      ++all;
      const double share = disturbed_share(one);
      loud += share > 0.5;
      if (share <= worst) continue;
      worst = share;
      where = fmt::format("{} at n = {}", curve.name, length_of(one));
    }
  if (loud == 0) return finding;
  finding.numbers += fmt::format("; other work disturbed most turns of {} of {} cells, worst {:.0f} % of {}", loud, all,
                                 100 * worst, where);
  return finding;
}

Finding grows_as(const Recipe& recipe, const GrowthLaw& law, const std::vector<Curve>& curves,
                 const std::string& metric) {
  size_t intervals = curves.size();  // for the exponents
  for (const Curve& curve : curves) intervals += curve.cells.size() - 1;
  const double rate = recipe.error_rate(intervals);
  std::vector<Comparison> comparisons;
  std::vector<Estimate> of_curves;
  std::vector<std::string> apart;
  for (const Curve& curve : curves) {
    const auto lengths = by_length(curve.cells);
    for (size_t i = 1; i < lengths.size(); ++i)
      comparisons.push_back({fmt::format("{}, factor of a doubling from n = {} to {}", curve.name,
                                         length_of(lengths[i - 1]), length_of(lengths[i])),
                             median_of(doublings(lengths[i - 1], lengths[i], metric), rate)});
    of_curves.push_back(median_of(exponents(last_three(curve.cells), metric), rate));
    if (!one_session(lengths)) apart.push_back(curve.name);
  }
  Finding finding = law.most == infinity ? all_above(law.least, comparisons)
                    : law.least == 0     ? all_below(law.most, comparisons)
                                         : all_between(law.least, law.most, comparisons);
  finding.numbers = fmt::format("{}; {}", finding.numbers, words_of(curves, of_curves));
  for (size_t i = 0; i < curves.size(); ++i)
    finding.compared.push_back({curves[i].name + ", exponent", "", of_curves[i].value, of_curves[i].interval.low,
                                of_curves[i].interval.high, static_cast<long>(of_curves[i].count)});
  if (!apart.empty()) {
    finding.ruling = Ruling::open;
    finding.numbers += fmt::format(
        "; the lengths of {} were measured in different sessions, so that a drift of the "
        "machine in between would be in the exponent",
        fmt::join(apart, ", "));
  }
  return with_disturbances(std::move(finding), curves);
}

std::vector<double> exponents(const Cells& curve, const std::string& metric) {
  return of_each_block(curve, metric, exponent);
}

std::vector<double> crossings(const Cells& curve, const std::string& speedup) {
  return of_each_block(curve, speedup, last_rise_through_one);
}

Index length_of(const Cells& one) { return one.all().front().run.problem.shape.nk; }

Cells last_three(const Cells& curve) {
  const auto lengths = by_length(curve);
  const size_t count = lengths.size();
  Cells last = lengths[count - 1];
  for (size_t i = count - std::min<size_t>(count, 3); i + 1 < count; ++i) last = last + lengths[i];
  return last;
}

std::vector<Cells> by_length(const Cells& curve) {
  std::vector<Index> lengths;
  for (const RecipeCell& cell : curve.all()) lengths.push_back(cell.run.problem.shape.nk);
  std::sort(lengths.begin(), lengths.end());
  std::vector<Cells> all;
  for (const Index n : lengths) all.push_back(curve.n(n));
  return all;
}

}  // namespace attnbench
