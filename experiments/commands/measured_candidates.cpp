#include "experiments/commands/measured_candidates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "harness/experiment/experiment.hpp"
#include "harness/machine/resources.hpp"
#include "harness/runner/cells.hpp"
#include "harness/statistics/intervals.hpp"

namespace attnbench {

namespace {

// Errors are measured in double, like all experiments; times in float, as methods are used, for one head on one thread.
constexpr const char* of_errors = "attention-error:matrix=false";
constexpr const char* of_times = "speed:blocks=41,turn=5";
constexpr Index first_look = 3, all_replicates = 20;
constexpr double clearly = 2;  // times the limit

// The time of a call by formulas: accurate enough to order the budgets of one method, and to see a factor of ten
// between methods.
constexpr double model_is_right_within = 10;
double modelled_seconds(const Params& method, const Shape& shape) {
  const Work work = find<MethodEntry>(method.name()).cost(method, shape);
  return work.flops / nominal_rates.fma_peak + work.exps / nominal_rates.exp_rate;
}
double modelled_bytes(const Params& method, const Shape& shape) {
  return find<MethodEntry>(method.name()).memory(method, shape);
}

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Measured {
  Params method;
  Estimate error;
  double least = 0;  // the smallest error of any replicate, on the head where this is largest
};

// The mean of a first look at three replicates: too few for a recipe, which would refuse to judge it.
Estimate mean_of_few(const Samples& samples, double error_rate) {
  Moments all;
  for (const auto& [replicate, value] : samples) all.add(value);
  return {all.mean, mean_interval(all, error_rate), static_cast<Index>(samples.size())};
}

// The method with its budget at the default: the same for all budgets of one method.
std::string idea_of(const Params& method) {
  for (const Parameter& parameter : method.declared())
    if (parameter.budget) return method.with(parameter.name, parameter.default_value).spec();
  return method.spec();
}

// Whether y meets the error limit with its whole interval, in no more memory and less time than x: then x cannot be the
// answer.
bool dominates(const Measured& y, const Measured& x, const Needs& needs, const Shape& shape) {
  if (fit_of_error(y.error, needs) != Fit::meets || modelled_bytes(y.method, shape) > modelled_bytes(x.method, shape))
    return false;
  const double factor = idea_of(y.method) == idea_of(x.method) ? 1 : model_is_right_within;
  return factor * modelled_seconds(y.method, shape) < modelled_seconds(x.method, shape);
}

class Measuring {
 public:
  Measuring(const RunRequest& heads, const Needs& needs, Store& store, std::int64_t run_id)
      : heads_(heads), needs_(needs), store_(store), run_id_(run_id), shape_(shape_of(heads)) {}

  std::optional<MeasuredCandidates> operator()(const std::vector<Params>& candidates) {
    // Every candidate gets at most three intervals: its error after the first look, its final error, and its time.
    const double rate = recommendation_error_rate / (3 * static_cast<double>(candidates.size()));
    auto known = errors(candidates, first_look, rate);
    if (!known) return std::nullopt;
    drop_the_clear(*known);
    drop_the_dominated(*known);
    if (!refine(*known, rate)) return std::nullopt;
    std::vector<Measured> to_time;
    for (const Measured& one : *known)
      if (fit_of_error(one.error, needs_) == Fit::misses)
        found_.untimed.push_back({.method = one.method.spec(), .error = one.error});
      else
        to_time.push_back(one);
    drop_the_dominated(to_time);
    std::sort(found_.untimed.begin(), found_.untimed.end(),
              [](const Candidate& x, const Candidate& y) { return x.error.value < y.error.value; });
    if (!times(to_time, rate)) return std::nullopt;
    return std::move(found_);
  }

 private:
  // Runs the missing cells; false if the user interrupted.
  bool run_all(const RunRequest& request) {
    const RunSummary summary = run(request, store_, run_id_);
    if (found_.first_reason.empty()) found_.first_reason = summary.first_reason;
    return !summary.interrupted;
  }

  // The methods whose error could be measured; empty if the user interrupted.
  std::optional<std::vector<Measured>> errors(const std::vector<Params>& methods, Index replicates, double rate) {
    std::vector<Measured> all;
    if (methods.empty()) return all;
    RunRequest request = heads_;
    request.experiment = of_errors;
    request.precision = Precision::f64;
    request.replicates = replicates;
    request.threads = allowed_cores();
    request.methods.clear();
    for (const Params& method : methods) request.methods.push_back(method.spec());
    if (!run_all(request)) return std::nullopt;
    const Cells cells = cells_of(request, measurements_);
    for (const Params& method : methods)
      if (const auto one = on_the_worst_head(cells.method(method.spec()), rate, method))
        all.push_back(*one);
      else
        ++found_.unmeasured;
    return all;
  }

  // Adds replicates, except where all were equal bit for bit: then neither the method nor the input is random.
  // False if the user interrupted.
  bool refine(std::vector<Measured>& known, double rate) {
    const auto varies = [](const Measured& one) { return one.error.interval.low < one.error.interval.high; };
    std::vector<Params> varying;
    for (const Measured& one : known)
      if (varies(one)) varying.push_back(one.method);
    const auto again = errors(varying, all_replicates, rate);
    if (!again) return false;
    std::erase_if(known, varies);
    known.insert(known.end(), again->begin(), again->end());
    return true;
  }

  // The mean error on the worst head. Its interval runs from the largest lower end to the largest upper end.
  std::optional<Measured> on_the_worst_head(const Cells& cells, double rate, const Params& method) const {
    Measured worst{.method = method, .error = {0, {-infinity, -infinity}, 0}};
    for (const std::string& input : heads_.inputs) {
      const Samples samples = cells.input(input).scalar("relative_output_error");
      if (samples.empty()) return std::nullopt;
      const auto [value, interval, replicates] = mean_of_few(samples, rate / static_cast<double>(heads_.inputs.size()));
      worst.error.value = std::max(worst.error.value, value);
      worst.error.interval.low = std::max(worst.error.interval.low, interval.low);
      worst.error.interval.high = std::max(worst.error.interval.high, interval.high);
      worst.error.count = replicates;
      double least = infinity;
      for (const auto& [replicate, error] : samples) least = std::min(least, error);
      worst.least = std::max(worst.least, least);
    }
    return worst;
  }

  void drop_the_clear(std::vector<Measured>& all) {
    double least_error = infinity;
    std::erase_if(all, [&](const Measured& one) {
      if (one.least <= clearly * needs_.error) return false;
      ++found_.dropped;
      if (one.error.value < least_error) {
        least_error = one.error.value;
        found_.least_dropped = fmt::format("{} ({:.3g})", one.method.spec(), one.error.value);
      }
      return true;
    });
  }

  void drop_the_dominated(std::vector<Measured>& all) {
    const std::vector<Measured> before = all;
    found_.dominated += std::erase_if(all, [&](const Measured& one) {
      return std::any_of(before.begin(), before.end(),
                         [&](const Measured& other) { return dominates(other, one, needs_, shape_); });
    });
  }

  bool times(const std::vector<Measured>& methods, double rate) {
    RunRequest request = heads_;
    request.experiment = of_times;
    request.precision = Precision::f32;
    request.replicates = 1;
    request.threads = 1;
    request.inputs = {heads_.inputs.at(0)};
    request.methods = {"softmax"};
    for (const Measured& one : methods) request.methods.push_back(one.method.spec());
    if (!run_all(request)) return false;
    const Cells cells = cells_of(request, measurements_);
    const auto timed = [&](const std::string& method, const Estimate& error) -> std::optional<Candidate> {
      const Cells cell = cells.method(method);
      const auto seconds = cell.turns("seconds");
      if (seconds.empty()) return std::nullopt;
      std::vector<double> times;
      for (const double speedup : cell.turns("speedup")) times.push_back(1 / speedup);
      Candidate candidate{.method = method, .error = error, .time = median_of(times, rate), .seconds = median(seconds)};
      const auto bytes = cell.scalar("peak_bytes");
      if (!bytes.empty()) candidate.bytes = bytes.begin()->second;
      const auto rounding = cell.scalar("rounding_error");
      if (!rounding.empty()) candidate.rounding = rounding.begin()->second;
      return candidate;
    };
    const auto exact = timed("softmax", certain(0));
    if (!exact)
      throw Misuse(
          fmt::format("recommend: exact softmax could not be timed on this head ({}), and everything is "
                      "compared with it; give a smaller -n",
                      found_.first_reason));
    found_.exact = *exact;
    found_.exact.time = certain(1);
    std::set<std::string> fitted;
    for (const auto& [method, error, least] : methods) {
      const auto candidate = timed(method.spec(), error);
      if (!candidate) {
        ++found_.unmeasured;
        continue;
      }
      found_.timed.push_back(*candidate);
      const bool own_head = std::any_of(heads_.inputs.begin(), heads_.inputs.end(), [](const std::string& input) {
        return !has_calibration(Params("inputs", input));
      });
      if (own_head && find<MethodEntry>(method.name()).fitted(method)) fitted.insert(method.name());
    }
    found_.fitted.assign(fitted.begin(), fitted.end());
    return true;
  }

  const RunRequest& heads_;
  const Needs& needs_;
  Store& store_;
  StoredMeasurements measurements_{store_};
  std::int64_t run_id_;
  Shape shape_;
  MeasuredCandidates found_ = {};
};

}  // namespace

Shape shape_of(const RunRequest& heads) {
  RunRequest request = heads;
  request.experiment = of_errors;
  request.methods = {"softmax"};
  const auto cells = expand(request);
  const Shape& shape = cells.at(0).problem.shape;
  for (const Cell& cell : cells) {
    const Shape& other = cell.problem.shape;
    if (std::tie(other.nq, other.nk, other.d, other.dv) != std::tie(shape.nq, shape.nk, shape.d, shape.dv) ||
        other.mask != shape.mask)
      throw Misuse(
          fmt::format("{} (n={} d={} dv={}{}) and {} (n={} d={} dv={}{}) are heads of different shapes, which "
                      "one answer cannot be for; give heads of one shape, or -n and --causal for all",
                      cells.at(0).input.spec(), shape.nk, shape.d, shape.dv, shape.mask.causal ? " causal" : "",
                      cell.input.spec(), other.nk, other.d, other.dv, other.mask.causal ? " causal" : ""));
  }
  return shape;
}

std::optional<MeasuredCandidates> measure_candidates(const RunRequest& heads, const std::vector<Params>& candidates,
                                                     const Needs& needs, Store& store, std::int64_t run_id) {
  return Measuring(heads, needs, store, run_id)(candidates);
}

}  // namespace attnbench
