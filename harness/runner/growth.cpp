#include "harness/runner/growth.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <stdexcept>

#include "harness/runner/match.hpp"
#include "harness/statistics/power_law.hpp"

namespace attnbench {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// A function of a column and of the metric along it, evaluated for each block of turns or replicate that all cells
// have.
Samples of_each_sample(const Cells& curve, const std::string& metric, const std::string& along,
                       double (*function)(std::span<const double>, std::span<const double>)) {
  std::map<double, Samples> by_place;
  for (const Cells& one : curve.one_by_one()) {
    const auto place = one.number(along);
    if (!place) throw std::logic_error(fmt::format("'{}' is no number of every cell of a curve", along));
    by_place[*place] = samples_of(one, metric);
  }
  Samples all;
  for (const auto& [sample, ignored] : by_place.begin()->second) {
    std::vector<double> x, y;
    for (const auto& [place, samples] : by_place)
      if (const auto found = samples.find(sample); found != samples.end()) {
        x.push_back(place);
        y.push_back(found->second);
      }
    if (x.size() == by_place.size()) all[sample] = function(x, y);
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

// Whether all lengths were measured in the same session, so that block b of each ran at about the same time.
bool one_session(const std::vector<Cells>& lengths) {
  const Samples first = lengths.front().scalar("session");  // rows of earlier versions lack it
  return !first.empty() &&
         std::all_of(lengths.begin(), lengths.end(), [&](const Cells& one) { return one.scalar("session") == first; });
}

// The exponents of FLOPs, which no noise moves: one by one for up to four curves, as a range for more.
std::string words_of(const std::vector<Curve>& curves) {
  constexpr size_t most_names = 4;
  std::vector<std::string> words;
  double least = infinity, most = -infinity;
  for (const Curve& curve : curves) {
    const double flops = exponent_of_flops(by_length(curve.cells));
    if (std::isnan(flops)) continue;
    least = std::min(least, flops);
    most = std::max(most, flops);
    words.push_back(fmt::format("{} n^{:.2f}", curve.name, flops));
  }
  if (words.empty()) return "";
  if (words.size() > most_names) return fmt::format("; FLOPs n^{:.2f} to n^{:.2f}", least, most);
  return fmt::format("; FLOPs of {}", fmt::join(words, ", "));
}

}  // namespace

const GrowthLaw linear_growth{"n", 0, 1.2}, n_log_n_growth{"n log n", 0, 1.32}, n_root_n_growth{"n^1.5", 1.3, 1.7},
    quadratic_growth{"n^2", 1.8, infinity}, n_root_n_growth_at_most{"n^1.5 at most", 0, n_root_n_growth.most};

const std::vector<GrowthLaw>& growth_laws() {
  static const std::vector<GrowthLaw> all{linear_growth, n_log_n_growth, n_root_n_growth, n_root_n_growth_at_most,
                                          quadratic_growth};
  return all;
}

Judgement growth(Statement statement, const GrowthLaw& law, const std::vector<Curve>& curves,
                 const std::string& metric) {
  Judgement all{.statement = std::move(statement),
                .rule = law.most == infinity ? above(law.least)
                        : law.least == 0     ? below(law.most)
                                             : between(law.least, law.most)};
  for (const Curve& curve : curves) {
    all.numbers.push_back(
        {.what = curve.name + ", exponent", .samples = [=] { return exponents(curve.cells, metric); }});
    all.cells = all.cells + curve.cells;
  }
  all.remark = [curves](Finding& finding) {
    finding.numbers += words_of(curves);
    std::vector<std::string> apart;
    for (const Curve& curve : curves)
      if (!one_session(by_length(curve.cells))) apart.push_back(curve.name);
    if (apart.empty()) return;
    finding.ruling = Ruling::open;
    finding.numbers += fmt::format(
        "; the lengths of {} were measured in different sessions, so that a drift of the machine in between would be "
        "in the exponent",
        fmt::join(apart, ", "));
  };
  return all;
}

Samples exponents(const Cells& curve, const std::string& metric, const std::string& along) {
  return of_each_sample(curve, metric, along, exponent);
}

Index length_of(const Cells& one) { return one.all().front().run.problem.shape.nk; }

std::vector<Cells> by_length(const Cells& curve) {
  std::vector<Index> lengths;
  for (const RecipeCell& cell : curve.all()) lengths.push_back(cell.run.problem.shape.nk);
  std::sort(lengths.begin(), lengths.end());
  std::vector<Cells> all;
  for (const Index n : lengths) all.push_back(curve.n(n));
  return all;
}

}  // namespace attnbench
