#include "harness/runner/judgement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <stdexcept>

#include "harness/experiment/experiment.hpp"

namespace attnbench {

namespace {

Estimate share(const Samples& samples, double rate) {
  const auto hits = std::ranges::count_if(samples, [](const auto& sample) { return sample.second > 0.5; });
  return samples.empty() ? unmeasured() : share_of(hits, std::ssize(samples), rate);
}

Estimate estimate_of(const Number& one, Take take, double rate) {
  if (one.estimate) return one.estimate(rate);
  const Samples samples = one.samples();
  switch (one.take.value_or(take)) {
    case Take::median:
      return median_of(samples, rate);
    case Take::mean:
      return mean(samples, rate);
    case Take::mean_of_logs:
      return mean_ratio(samples, {{0, 1.0}}, rate);
    case Take::share:
      return share(samples, rate);
    default:
      if (samples.size() > 1)
        throw std::logic_error(fmt::format("{}: {} samples of a number taken as exact, which needs exactly one",
                                           one.what, samples.size()));
      return samples.empty() ? unmeasured() : certain(samples.begin()->second);
  }
}

Finding every_sample_at_most(const Judgement& judgement) {
  std::vector<Bounded> all;
  size_t without = 0;
  for (const Number& one : judgement.numbers) {
    const Samples samples = one.samples(), bounds = one.bounds ? one.bounds() : Samples{{0, judgement.rule.bound}};
    size_t compared = 0;
    for (const auto& [replicate, value] : samples) {
      const auto bound = bounds.size() == 1 ? bounds.begin() : bounds.find(replicate);
      if (bound == bounds.end()) continue;
      all.push_back({one.what, value, bound->second});
      ++compared;
    }
    without += compared == 0;
  }
  Finding finding = all_at_most(all);
  if (without > 0) {
    finding.numbers += fmt::format("; {} of {} cells have no such number", without, judgement.numbers.size());
    if (finding.ruling == Ruling::holds) finding.ruling = Ruling::open;
  }
  return finding;
}

Finding by_rule(const Rule& rule, const std::vector<Comparison>& comparisons, const std::vector<Region>& regions) {
  switch (rule.kind) {
    case Rule::Kind::below:
      return rule.by_region ? below_where(rule.bound, regions, rule.axis, rule.equal_within)
                            : all_below(rule.bound, comparisons);
    case Rule::Kind::above:
      return rule.by_region ? above_where(rule.bound, regions, rule.axis, rule.equal_within)
                            : all_above(rule.bound, comparisons);
    case Rule::Kind::between:
      return all_between(rule.bound, rule.high, comparisons);
    case Rule::Kind::contains:
      return all_contain(rule.bound, rule.resolution, comparisons);
    default:
      return values_of(comparisons, rule.thresholds);
  }
}

Finding every_number_by_rule(const Judgement& judgement, double rate) {
  const Rule& rule = judgement.rule;
  std::vector<Comparison> comparisons;
  std::vector<Region> regions;
  for (const Number& one : judgement.numbers) {
    const Comparison comparison{one.what, estimate_of(one, judgement.take, rate)};
    if (rule.measured_only && !comparison.estimate.measured()) continue;
    comparisons.push_back(comparison);
    auto region = std::find_if(regions.begin(), regions.end(), [&](const Region& r) { return r.name == one.region; });
    if (region == regions.end())
      region = regions.insert(regions.end(),
                              {one.region, {}, one.coordinate, rule.any ? Region::Rule::some : Region::Rule::all});
    region->comparisons.push_back(comparison);
  }
  Finding finding = by_rule(rule, comparisons, regions);
  if (rule.measured_only)
    finding.numbers = fmt::format("at the {} of {} settings where it can be estimated: {}", comparisons.size(),
                                  judgement.numbers.size(), finding.numbers);
  return finding;
}

// Other work that disturbed most turns of a cell. The ruling stays the same: both sides of each ratio ran in the same
// blocks, so a load slows both, and the interval includes the scatter that it causes (docs/engines.md measures the
// effect of a load).
std::string disturbances(const Cells& cells) {
  size_t all = 0, loud = 0;
  double worst = 0;
  std::string where;
  for (const Cells& one : cells.one_by_one()) {
    const Cell cell = one.all().front().run;
    if (!cell.timing()) continue;
    ++all;
    const auto marks = one.turns("disturbed");
    const double share =
        marks.empty() ? 0 : std::accumulate(marks.begin(), marks.end(), 0.0) / static_cast<double>(marks.size());
    loud += share > 0.5;
    if (share <= worst) continue;
    worst = share;
    where = fmt::format("{} at n = {}", cell.method.spec(), cell.problem.shape.nk);
  }
  if (loud == 0) return "";
  return fmt::format("; other work disturbed most turns of {} of {} cells, worst {:.0f} % of {}", loud, all,
                     100 * worst, where);
}

// Remarks of experiments about their cells, such as when models were trained.
std::string remarks_of(const Cells& cells) {
  std::map<std::string, std::vector<Cell>> by_experiment;
  std::map<std::string, Index> replicates;  // that all cells have
  for (const RecipeCell& cell : cells.all()) {
    const std::string name = cell.run.experiment.name();
    by_experiment[name].push_back(cell.run);
    const auto [place, fresh] = replicates.try_emplace(name, cell.replicates);
    if (!fresh) place->second = std::min(place->second, cell.replicates);
  }
  std::string all;
  for (const auto& [name, of_experiment] : by_experiment)
    if (const auto& entry = find<ExperimentEntry>(name); entry.remark)
      all += "; " + entry.remark(of_experiment, replicates[name]);
  return all;
}

}  // namespace

Rule Rule::where(std::string axis_of_regions, double equal) const {
  Rule rule = *this;
  rule.by_region = true;
  rule.axis = std::move(axis_of_regions);
  rule.equal_within = equal;
  return rule;
}

Rule below(double bound) { return {.kind = Rule::Kind::below, .bound = bound}; }
Rule above(double bound) { return {.kind = Rule::Kind::above, .bound = bound}; }
Rule between(double low, double high) { return {.kind = Rule::Kind::between, .bound = low, .high = high}; }
Rule contains(double value, double resolution) {
  return {.kind = Rule::Kind::contains, .bound = value, .resolution = resolution};
}
Rule at_most(double bound) { return {.kind = Rule::Kind::at_most, .bound = bound}; }
Rule report(std::vector<double> thresholds) {
  return {.kind = Rule::Kind::report, .thresholds = std::move(thresholds)};
}

double shared_rate(double error_rate, size_t intervals) {
  return error_rate < 1 ? error_rate / static_cast<double>(std::max<size_t>(intervals, 1)) : 1;
}

Finding judged(const Judgement& judgement, double error_rate) {
  const double rate = shared_rate(error_rate, judgement.numbers.size() + judgement.beside.size());
  Finding finding = judgement.rule.kind == Rule::Kind::at_most ? every_sample_at_most(judgement)
                                                               : every_number_by_rule(judgement, rate);
  std::vector<Comparison> named;
  for (const Number& one : judgement.beside) {
    const Estimate estimate = estimate_of(one, judgement.take, rate);
    finding.compared.push_back({one.what, "", estimate.value, estimate.interval.low, estimate.interval.high,
                                static_cast<long>(estimate.count)});
    named.push_back({one.what, estimate});
  }
  if (!named.empty()) finding.numbers += "; beside: " + values_of(named).numbers;
  if (judgement.remark) judgement.remark(finding);
  finding.numbers += disturbances(judgement.cells) + remarks_of(judgement.cells);
  // Only the source's own setting refutes the source.
  if (finding.ruling == Ruling::refuted && !judgement.statement.setting.empty()) finding.ruling = Ruling::not_seen;
  return finding;
}

Samples samples_of(const Cells& one, const std::string& metric) {
  if (!one.all().front().run.timing()) return one.scalar(metric);
  Samples blocks;
  for (const double turn : one.turns(metric)) blocks[std::ssize(blocks)] = turn;
  return blocks.empty() ? one.scalar(metric) : blocks;  // such as peak memory, a number of the whole cell
}

Number number(std::string what, const Cells& one, const std::string& metric) {
  return {.what = std::move(what), .samples = [=] { return samples_of(one, metric); }};
}

Number ratio(std::string what, const Cells& one, const Cells& other, const std::string& metric) {
  return {.what = std::move(what),
          .samples = [=] { return quotients(samples_of(one, metric), samples_of(other, metric)); }};
}

}  // namespace attnbench
