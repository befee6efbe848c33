#include "harness/runner/precision.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "harness/errors/error.hpp"
#include "harness/statistics/intervals.hpp"

namespace attnbench {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double error_rate = 0.05;

double relative_half_width(double centre, const Interval& interval) {
  const double half = (interval.high - interval.low) / 2;
  return half == 0 ? 0 : half / std::abs(centre);
}

double of_mean(const std::vector<double>& values) {
  if (values.size() < 2) return infinity;
  const Moments sample = moments(values);
  return relative_half_width(sample.mean, mean_interval(sample, error_rate));
}

double of_median(const std::vector<double>& values) {
  if (values.size() < least_for_median(error_rate)) return infinity;
  return relative_half_width(median(values), median_interval(values, error_rate));
}

}  // namespace

Until parse_until(const std::string& text) {
  Until until{.relative = 0};
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    double value = 0;
    const char* last = part.data() + part.size();
    const bool number = equals != std::string::npos &&
                        std::from_chars(part.data() + equals + 1, last, value).ptr == last && std::isfinite(value) &&
                        value > 0;
    if (number && name == "rel-ci" && until.relative == 0)
      until.relative = value;
    else if (number && name == "seconds" && !until.seconds)
      until.seconds = value;
    else
      until.relative = -1;
    if (until.relative < 0) break;
  }
  if (!(until.relative > 0))
    throw Misuse(
        fmt::format("--until {}: expected rel-ci=X or rel-ci=X,seconds=S with numbers above 0, such as "
                    "rel-ci=0.05",
                    text));
  return until;
}

Stopping stopping_of(const std::map<Index, EndedReplicate>& ended, const Until& until, Index most, bool timing) {
  std::vector<double> values;
  double seconds = 0;
  Index taken = 0;
  for (Index stage = std::min(first_replicates, most);; stage = std::min(2 * stage, most)) {
    for (; taken < stage; ++taken) {
      const auto found = ended.find(taken);
      if (found == ended.end()) return {Stopping::State::open, stage, infinity};
      values.insert(values.end(), found->second.values.begin(), found->second.values.end());
      seconds += found->second.seconds;
    }
    if (values.empty()) return {Stopping::State::unmeasured, stage, infinity};
    const double relative = timing ? of_median(values) : of_mean(values);
    if (relative <= until.relative) return {Stopping::State::precise, stage, relative};
    // An infinite value keeps the mean infinite, however many replicates follow.
    const bool hopeless = std::any_of(values.begin(), values.end(), [](double v) { return !std::isfinite(v); });
    if (stage == most || hopeless || (timing && seconds >= until.seconds.value_or(60)))
      return {Stopping::State::ambiguous, stage, relative};
  }
}

}  // namespace attnbench
