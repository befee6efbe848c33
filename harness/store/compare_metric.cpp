#include "harness/store/compare_metric.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/statistics/two_samples.hpp"

namespace attnbench {

namespace {

using Outcome = ComparedMetric::Outcome;

Outcome changed(const ComparedMetric& m, bool rose) {
  if (m.better == Better::unstated) return Outcome::differs;
  return rose == (m.better == Better::more) ? Outcome::better : Outcome::worse;
}

// The interval decides, unless the difference is within rounding.
Outcome decided(const ComparedMetric& m, double unchanged) {
  constexpr double rounding = 1e-12;
  const bool rose = m.interval.low > unchanged, fell = m.interval.high < unchanged;
  const bool rounded = std::abs(m.b - m.a) <= rounding * std::max(std::abs(m.a), std::abs(m.b));
  return (rose || fell) && !rounded ? changed(m, rose) : Outcome::same;
}

// Moments of numbers, and their sum, which infinities of one sign leave infinite; moments turn two of them into NaN.
struct Mean {
  Moments sample;
  double sum = 0;

  void add(double x) {
    sample.add(x);
    sum += x;
  }
  double value() const { return std::isfinite(sum) ? sample.mean : sum; }
};

Mean mean_of(const PlacedNumbers& metric) {
  Mean all;
  for (const auto& [place, number] : metric.numbers) all.add(number.value);
  return all;
}

}  // namespace

void compare_numbers(const PlacedNumbers& a, const PlacedNumbers& b, double error_rate, ComparedMetric& to) {
  Mean of_a, of_b, differences;
  bool equal = true;
  for (const auto& [place, number] : a.numbers) {
    const auto other = b.numbers.find(place);
    if (other == b.numbers.end()) continue;
    const bool same = number.content == other->second.content;
    equal &= same;
    of_a.add(number.value);
    of_b.add(other->second.value);
    // Two infinities of one sign do not differ, although their difference is NaN.
    differences.add(same || number.value == other->second.value ? 0 : other->second.value - number.value);
  }
  to.pairs = static_cast<size_t>(differences.sample.count);
  if (to.pairs == 0) {
    of_a = mean_of(a);
    of_b = mean_of(b);
    equal = false;
  }
  to.a = of_a.value();
  to.b = of_b.value();
  to.change = to.pairs > 0 ? differences.value() : to.b - to.a;
  to.interval = {to.change, to.change};
  to.equal = equal;
  if (equal) return;
  if (std::isnan(to.change)) {  // each of the two is infinite where the other is finite
    constexpr double infinity = std::numeric_limits<double>::infinity();
    to.change = 0;
    to.interval = {-infinity, infinity};
    to.outcome = Outcome::ambiguous;
  } else if (!std::isfinite(to.change)) {
    to.outcome = to.pairs > 0 ? Outcome::differs : Outcome::ambiguous;  // only one of them is infinite
  } else if (of_a.sample.count < 2 || of_b.sample.count < 2) {
    to.outcome = Outcome::ambiguous;
  } else {
    to.interval = to.pairs > 0 ? mean_interval(differences.sample, error_rate)
                               : difference_interval(of_a.sample, of_b.sample, error_rate);
    to.outcome = decided(to, 0);
  }
}

void compare_sessions(const PlacedNumbers& a, const PlacedNumbers& b, double error_rate, ComparedMetric& to) {
  const auto of_a = a.all_samples(), of_b = b.all_samples();
  to.timing = true;
  to.a = median(of_a);
  to.b = median(of_b);
  to.change = to.b / to.a;
  to.interval = ratio_interval(of_a, of_b, error_rate);
  to.equal = of_a == of_b;
  if (to.equal) return;  // the same measurements
  const double resolution = to.metric.ends_with("speedup") ? resolution_of_speedups : resolution_of_seconds;
  const auto& [low, high] = to.interval;
  if (!enough_for_ratio(of_a.size(), of_b.size(), error_rate))
    to.outcome = Outcome::ambiguous;
  else if (low > resolution || high < 1 / resolution)
    to.outcome = changed(to, low > 1);
  else
    to.outcome = low >= 1 / resolution && high <= resolution ? Outcome::same : Outcome::ambiguous;
}

void compare_blocks(const PlacedNumbers& a, const PlacedNumbers& b, double error_rate, ComparedMetric& to) {
  std::vector<double> of_a, of_b, ratios;
  for (const auto& [place, samples] : a.samples) {
    const auto& others = b.samples.at(place);
    for (size_t block = 0; block < samples.size(); ++block) {
      of_a.push_back(samples[block]);
      of_b.push_back(others.at(block));
      ratios.push_back(of_b.back() / of_a.back());
    }
  }
  to.timing = true;
  to.pairs = ratios.size();
  to.a = median(of_a);
  to.b = median(of_b);
  to.change = median(ratios);
  to.interval = {to.change, to.change};
  to.outcome = Outcome::ambiguous;
  if (ratios.size() < least_for_median(error_rate)) return;
  to.interval = median_interval(ratios, error_rate);
  to.outcome = decided(to, 1);
}

}  // namespace attnbench
