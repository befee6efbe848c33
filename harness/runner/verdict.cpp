#include "harness/runner/verdict.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>

#include "harness/runner/experiment.hpp"

namespace attnbench {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// The conditions that a cell can be asked for, spelled as in the store.
nlohmann::json columns_of(const CellRow& row) {
  auto columns = nlohmann::json::parse(row.parameters);
  columns.update({{"experiment", row.experiment},
                  {"method", row.method},
                  {"input", row.input},
                  {"nq", row.shape.nq},
                  {"n", row.shape.nk},
                  {"d", row.shape.d},
                  {"dv", row.shape.dv},
                  {"causal", row.shape.mask.causal ? 1 : 0},
                  {"logit_scale", row.logit_scale}});
  return columns;
}

Estimate estimate(const Moments& sample, double error_rate) {
  const auto count = static_cast<Index>(sample.count);
  if (count < 2) return {sample.mean, {-infinity, infinity}, count};
  return {sample.mean, mean_interval(sample, 1 - error_rate), count};
}

// An experiment is meant by its name unless the condition has options.
bool agrees(const nlohmann::json& columns, const nlohmann::json& wanted) {
  for (const auto& [name, value] : wanted.items()) {
    if (!columns.contains(name)) return false;
    const nlohmann::json& found = columns[name];
    if (name == "experiment" && value.get_ref<const std::string&>().find(':') == std::string::npos
            ? parse_spec(found.get<std::string>()).name != value
            : found != value)
      return false;
  }
  return true;
}

// How many more replicates would narrow the interval until it leaves the bound out, if value and scatter stay.
Index replicates_to_decide(const Estimate& e, double bound) {
  const double half = (e.interval.high - e.interval.low) / 2, distance = std::abs(e.value - bound);
  const double times = half / distance;
  if (!(times < 30)) return 0;  // a thousand times as many: it is at the bound, as far as this can tell
  return static_cast<Index>(std::ceil(static_cast<double>(e.replicates) * (times * times - 1)));
}

std::string numbers_of(const Comparison& c, size_t comparisons) {
  return fmt::format("{}: {}{}", c.what, c.estimate.text(),
                     comparisons > 1 ? fmt::format(", of {} comparisons", comparisons) : "");
}

}  // namespace

Results::Results(const Store& store, const std::vector<RunRequest>& requests) : store_(store) {
  for (const RunRequest& request : requests)
    for (const Cell& cell : expand(request)) add({cell, cell});
}

Results::Results(const Store& store, const std::vector<RecipeCell>& cells) : store_(store) {
  for (const RecipeCell& cell : cells) add(cell);
}

void Results::add(const RecipeCell& cell) {
  const bool timing = find<ExperimentEntry>(cell.asked.experiment.name()).timing();
  const CellRow asked = cell.asked.row(timing);
  if (asked_.insert(asked.key).second) rows_.push_back({columns_of(asked), cell.run.row(timing).key});
}

std::vector<std::string> Results::keys() const {
  std::vector<std::string> all;
  std::set<std::string> seen;  // settings can make one cell of two
  for (const Row& row : rows_)
    if (seen.insert(row.key).second) all.push_back(row.key);
  return all;
}

const std::string& Results::key_of(const nlohmann::json& where) const {
  nlohmann::json wanted = where;
  for (const auto& [column, plural] :
       {std::pair{"experiment", "experiments"}, {"method", "methods"}, {"input", "inputs"}})
    if (wanted.contains(column)) wanted[column] = Params(plural, wanted[column].get<std::string>()).spec();
  const Row* found = nullptr;
  for (const Row& row : rows_) {
    if (!agrees(row.columns, wanted)) continue;
    if (found) throw std::logic_error("several cells of the recipe agree with " + wanted.dump());
    found = &row;
  }
  if (!found) throw std::logic_error("no cell of the recipe agrees with " + wanted.dump());
  return found->key;
}

Samples Results::scalar(const nlohmann::json& where, const std::string& metric) const {
  const std::string& key = key_of(where);
  Samples samples = store_.scalars(key, metric);
  if (samples.size() < store_.ended_replicates(key).size()) samples.clear();
  return samples;
}

std::vector<double> Results::array(const nlohmann::json& where, const std::string& metric) const {
  const std::string& key = key_of(where);
  const auto arrays = store_.arrays(key, metric);
  std::vector<double> all;
  if (arrays.size() < store_.ended_replicates(key).size()) return all;
  for (const auto& [replicate, values] : arrays) all.insert(all.end(), values.begin(), values.end());
  return all;
}

std::string Estimate::text() const {
  if (interval.low == interval.high) return fmt::format("{:.4g}", value);
  if (interval.low == -infinity && interval.high == infinity) return fmt::format("{:.3g} (no interval)", value);
  return fmt::format("{:.4g} ({:.4g} to {:.4g})", value, interval.low, interval.high);
}

Estimate mean(const Samples& samples, double error_rate) {
  Moments all;
  for (const auto& [replicate, value] : samples) all.add(value);
  return estimate(all, error_rate);
}

Estimate ratio(const Samples& a, const Samples& b, double error_rate) {
  Moments logs;
  for (const auto& [replicate, value] : a) {
    const auto other = b.find(replicate);
    if (other != b.end() && value > 0 && other->second > 0) logs.add(std::log(value / other->second));
  }
  Estimate of_logs = estimate(logs, error_rate);
  return {
      std::exp(of_logs.value), {std::exp(of_logs.interval.low), std::exp(of_logs.interval.high)}, of_logs.replicates};
}

Estimate median_of(std::vector<double> samples, double error_rate) {
  if (samples.empty()) return {std::numeric_limits<double>::quiet_NaN(), {-infinity, infinity}, 0};
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  const double middle = std::midpoint(samples[(n - 1) / 2], samples[n / 2]);
  const bool enough = std::exp2(1 - static_cast<double>(n)) <= error_rate;
  return {middle, enough ? median_interval(samples, 1 - error_rate) : Interval{-infinity, infinity},
          static_cast<Index>(n)};
}

Verdict all_below(double bound, const Statement& statement, const std::vector<Comparison>& comparisons) {
  using Outcome = Verdict::Outcome;
  if (comparisons.empty()) return {Outcome::ambiguous, statement, "nothing was measured"};
  const auto greatest = [&](auto&& number) {
    return *std::max_element(comparisons.begin(), comparisons.end(), [&](const Comparison& x, const Comparison& y) {
      return number(x.estimate) < number(y.estimate);
    });
  };
  const Comparison failed = greatest([](const Estimate& e) { return e.interval.low; });
  if (failed.estimate.above(bound)) return {Outcome::fail, statement, numbers_of(failed, comparisons.size())};
  const Comparison closest = greatest([](const Estimate& e) { return e.interval.high; });
  if (closest.estimate.below(bound))
    return {Outcome::pass, statement, "greatest, " + numbers_of(closest, comparisons.size())};
  const Index more = closest.estimate.replicates < 2 ? 2 : replicates_to_decide(closest.estimate, bound);
  return {Outcome::ambiguous, statement,
          numbers_of(closest, comparisons.size()) +
              (more > 0 ? fmt::format("; about {} more replicates would decide", more)
                        : fmt::format("; too near {} for any number of replicates", bound))};
}

Verdict all_contain(double value, double resolution, const Statement& statement,
                    const std::vector<Comparison>& comparisons) {
  using Outcome = Verdict::Outcome;
  if (comparisons.empty()) return {Outcome::ambiguous, statement, "nothing was measured"};
  const auto half = [](const Comparison& c) { return (c.estimate.interval.high - c.estimate.interval.low) / 2; };
  const auto outside = [&](const Comparison& c) {  // in half widths; 1 is the edge
    const double off = std::abs(c.estimate.value - value);
    return off == 0 ? 0 : off / half(c);
  };
  const auto farthest = *std::max_element(comparisons.begin(), comparisons.end(),
                                          [&](const auto& x, const auto& y) { return outside(x) < outside(y); });
  if (outside(farthest) > 1) return {Outcome::fail, statement, numbers_of(farthest, comparisons.size())};
  const auto widest = *std::max_element(comparisons.begin(), comparisons.end(),
                                        [&](const auto& x, const auto& y) { return half(x) < half(y); });
  if (!(half(widest) <= resolution))
    return {Outcome::ambiguous, statement,
            "all intervals hold it, but the widest says little; " + numbers_of(widest, comparisons.size())};
  return {Outcome::pass, statement,
          "farthest, " + numbers_of(farthest, comparisons.size()) + "; widest, " + numbers_of(widest, 1)};
}

Verdict all_at_most(const Statement& statement, const std::vector<Bounded>& all) {
  if (all.empty()) return {Verdict::Outcome::ambiguous, statement, "nothing was measured"};
  const Bounded& nearest = *std::max_element(
      all.begin(), all.end(), [](const Bounded& x, const Bounded& y) { return x.value - x.bound < y.value - y.bound; });
  return {nearest.value <= nearest.bound ? Verdict::Outcome::pass : Verdict::Outcome::fail, statement,
          fmt::format("nearest, {}: {:.6g} and at most {:.6g}, of {} compared", nearest.what, nearest.value,
                      nearest.bound, all.size())};
}

Verdict below_where(double bound, const Statement& statement, const std::vector<Region>& regions) {
  using Outcome = Verdict::Outcome;
  std::vector<std::string> holds, fails, mixed, in_part, undecided, ranges;
  Index more = 0;
  for (const auto& [name, comparisons] : regions) {
    size_t below = 0, above = 0;
    double least = infinity, greatest = -infinity;
    for (const Comparison& c : comparisons) {
      below += c.estimate.below(bound);
      above += c.estimate.above(bound);
      if (!c.estimate.below(bound) && !c.estimate.above(bound))
        more = std::max(more, replicates_to_decide(c.estimate, bound));
      least = std::min(least, c.estimate.value);
      greatest = std::max(greatest, c.estimate.value);
    }
    auto& group = below > 0 && below == comparisons.size()   ? holds
                  : above > 0 && above == comparisons.size() ? fails
                  : below > 0 && above > 0                   ? mixed
                  : below > 0                                ? in_part
                                                             : undecided;
    group.push_back(name);
    ranges.push_back(comparisons.size() == 1 ? fmt::format("{}: {}", name, comparisons[0].estimate.text())
                                             : fmt::format("{}: {:.3g} to {:.3g}", name, least, greatest));
  }
  std::vector<std::string> words;
  for (const auto& [word, group] : {std::pair{"holds", &holds},
                                    {"holds in part", &mixed},
                                    {"holds in part, the rest undecided", &in_part},
                                    {"fails", &fails},
                                    {"undecided", &undecided}})
    if (!group->empty()) words.push_back(fmt::format("{} at {}", word, fmt::join(*group, ", ")));
  const bool somewhere = !holds.empty() || !in_part.empty(), elsewhere = !fails.empty();
  const Outcome outcome = !regions.empty() && holds.size() == regions.size()   ? Outcome::pass
                          : !regions.empty() && fails.size() == regions.size() ? Outcome::fail
                          : !mixed.empty() || (somewhere && elsewhere)         ? Outcome::conditional
                                                                               : Outcome::ambiguous;
  const bool whole = outcome == Outcome::pass || outcome == Outcome::fail;
  std::string numbers = ranges.empty() ? "nothing was measured" : fmt::format("{}", fmt::join(ranges, "; "));
  if (outcome == Outcome::ambiguous && more > 0)
    numbers += fmt::format("; about {} more replicates would decide", more);
  return {outcome, statement, numbers, whole ? "" : fmt::format("{}", fmt::join(words, "; "))};
}

std::vector<Verdict> agreed(const std::vector<std::vector<Verdict>>& by_seed) {
  std::vector<Verdict> all = by_seed.at(0);
  for (size_t i = 0; i < all.size(); ++i) {
    std::map<Verdict::Outcome, std::vector<size_t>> seeds;
    for (size_t s = 0; s < by_seed.size(); ++s) seeds[by_seed[s].at(i).outcome].push_back(s + 1);
    if (by_seed.size() == 1) continue;
    if (seeds.size() == 1) {
      all[i].numbers += fmt::format("; the same with {} seeds", by_seed.size());
      continue;
    }
    std::vector<std::string> words;
    for (const auto& [outcome, which] : seeds)
      words.push_back(
          fmt::format("{} with seed{} {}", to_string(outcome), which.size() > 1 ? "s" : "", fmt::join(which, ", ")));
    all[i].outcome = Verdict::Outcome::ambiguous;
    all[i].numbers = fmt::format("{}; with the first: {}", fmt::join(words, ", "), all[i].numbers);
  }
  return all;
}

}  // namespace attnbench
