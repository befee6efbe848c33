#include "harness/statistics/estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace attnbench {

namespace {

constexpr Interval whole_line{-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};

std::vector<double> values_of(const Samples& samples) {
  std::vector<double> values;
  for (const auto& [replicate, value] : samples) values.push_back(value);
  return values;
}

[[noreturn]] void refuse_too_few(size_t count, double error_rate) {
  throw std::logic_error(
      fmt::format("no interval of error rate {:.3g} exists for {} sample{}; plan more replicates or blocks, or take = "
                  "\"exact\" where a cell has one number",
                  error_rate, count, count == 1 ? "" : "s"));
}

Estimate mean_of_values(const std::vector<double>& values, double error_rate) {
  if (values.empty()) return unmeasured();
  const Moments all = moments(values);
  const auto count = static_cast<Index>(values.size());
  if (error_rate >= 1) return {all.mean, {all.mean, all.mean}, count};  // smoke sizes claim nothing
  if (count < replicates_for_means) refuse_too_few(values.size(), error_rate);
  return {all.mean, interval_of_averages(all, error_rate), count};
}

}  // namespace

std::string Estimate::text() const {
  if (!measured()) return "not measured";
  if (interval.low == interval.high) return fmt::format("{:.4g}", value);
  if (std::isinf(interval.low) && std::isinf(interval.high))
    return fmt::format("{:.4g} (too skewed for an interval)", value);
  return fmt::format("{:.4g} ({:.4g} to {:.4g})", value, interval.low, interval.high);
}

Estimate mean(const Samples& samples, double error_rate) { return mean_of_values(values_of(samples), error_rate); }

Estimate median_of(std::vector<double> samples, double error_rate) {
  if (samples.empty()) return unmeasured();
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  const double middle = std::midpoint(samples[(n - 1) / 2], samples[n / 2]);
  if (error_rate >= 1) return {middle, {middle, middle}, static_cast<Index>(n)};
  if (n < least_for_median(error_rate)) refuse_too_few(n, error_rate);
  return {middle, median_interval(samples, error_rate), static_cast<Index>(n)};
}

Estimate median_of(const Samples& samples, double error_rate) { return median_of(values_of(samples), error_rate); }

Estimate median_ratio(const Samples& a, const Samples& b, double error_rate) {
  return median_of(quotients(a, b), error_rate);
}

Estimate mean_ratio(const Samples& a, const Samples& b, double error_rate) {
  std::vector<double> logs;
  for (const auto& [replicate, quotient] : quotients(a, b)) {
    if (!(quotient > 0 && std::isfinite(quotient)))
      throw std::logic_error(fmt::format("a mean of log ratios of positive numbers met the ratio {}", quotient));
    logs.push_back(std::log(quotient));
  }
  const Estimate of_logs = mean_of_values(logs, error_rate);
  return {std::exp(of_logs.value), {std::exp(of_logs.interval.low), std::exp(of_logs.interval.high)}, of_logs.count};
}

Estimate share_of(Index hits, Index draws, double error_rate) {
  if (draws == 0) return unmeasured();
  const double share = static_cast<double>(hits) / static_cast<double>(draws);
  if (error_rate >= 1) return {share, {share, share}, draws};
  return {share, share_interval(static_cast<double>(hits), static_cast<double>(draws), error_rate), draws};
}

Estimate certain(double value) { return {value, {value, value}, 1}; }

Estimate unmeasured() { return {std::numeric_limits<double>::quiet_NaN(), whole_line, 0}; }

Samples quotients(const Samples& a, const Samples& b) {
  Samples all;
  for (const auto& [replicate, value] : a) {
    const auto other = b.size() == 1 ? b.begin() : b.find(replicate);
    if (other == b.end()) continue;
    all[replicate] = value == 0 && other->second == 0 ? 1 : value / other->second;
  }
  return all;
}

namespace {

Estimate extreme_of(const std::vector<Estimate>& all, const double& (*choose)(const double&, const double&)) {
  Estimate found = all.front();
  for (const Estimate& one : all) {
    if (!one.measured()) return unmeasured();
    found.value = choose(found.value, one.value);
    found.interval = {choose(found.interval.low, one.interval.low), choose(found.interval.high, one.interval.high)};
  }
  return found;
}

}  // namespace

Estimate least_of(const std::vector<Estimate>& all) { return extreme_of(all, std::min<double>); }
Estimate greatest_of(const std::vector<Estimate>& all) { return extreme_of(all, std::max<double>); }

}  // namespace attnbench
