#include "harness/claims/estimate_claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/core/spec.hpp"
#include "harness/theory/sampling_law.hpp"

namespace attnbench {

namespace {

constexpr Index few_draws_of_a_row = 8;

std::vector<SamplingLaw> laws_on(const Approximation<double>& method, const Probe& one) {
  std::vector<SamplingLaw> laws;
  if (const auto* sampled = sampled_rows(method))
    for (Index i = 0; i < one.shape.nq; ++i) laws.push_back(sampled->law(one.head.view(), one.shape.mask, i));
  return laws;
}

// Few draws show soon whether errors are those of the law. Of dependent draws only the mean is known, and fewer of them
// take longer to show it.
Params with_small_budget(const Subject& subject, const Shape& shape, std::uint64_t seed) {
  const auto own = Drawing(subject, subject.params, shape, seed).draw<double>(0);
  if (const auto* sums = unbiased_sums(*own); sums && !sums->tested_at().empty())
    return tested_params(subject.params, *own);
  Params small = subject.params;
  for (const SamplingLaw& law : laws_on(*own, gaussian_probe(subject.params, shape, seed)))
    if (law.draws == SamplingLaw::Draws::dependent) return subject.params;
  for (const Parameter& p : subject.params.declared())
    if (p.budget && small.integer(p.name) > few_draws_of_a_row)
      small = small.with(p.name, std::to_string(few_draws_of_a_row));
  try {
    Drawing(subject, small, shape, seed).draw<double>(0);
    return small;
  } catch (const Misuse&) {
    return subject.params;
  }
}

// The shape with so many times more keys that some row of a method that samples keys draws one. The shape itself where
// no such number is found.
Shape long_enough(const Subject& subject, const Shape& shape, std::uint64_t seed) {
  for (const Index times : {1, 4, 16, 64}) {
    Shape longer = shape;
    longer.nk *= times;
    longer.mask.offset *= times;
    if (shape.mask.keys >= 0) longer.mask.keys *= times;
    const Params params = with_small_budget(subject, longer, seed);
    const auto method = Drawing(subject, params, longer, seed).draw<double>(0);
    const auto laws = laws_on(*method, gaussian_probe(params, longer, seed));
    const auto draws_keys = [](const SamplingLaw& law) { return law.draws_keys(); };
    if (laws.empty() || std::any_of(laws.begin(), laws.end(), draws_keys)) return longer;
  }
  return shape;
}

// log sum_j exp(q_i.k_j) over the keys that row i sees.
double log_sum(const Probe& one, Index i) {
  const Index seen = one.shape.mask.visible(i, one.shape.nk);
  const Eigen::RowVectorXd logits = one.head.Q.row(i) * one.head.K.topRows(seen).transpose();
  const double largest = logits.maxCoeff();
  return largest + std::log((logits.array() - largest).exp().sum());
}

// Null if the method estimates no logits, or says that their means are others.
const EstimatedLogits<double>* unbiased_logits(const Approximation<double>& method) {
  const auto* estimated = estimated_logits(method);
  return estimated && estimated->unbiased() ? estimated : nullptr;
}

DrawnEstimates estimates_of(const Approximation<double>& method, const EstimatePlan& plan) {
  const Probe& one = plan.probe;
  DrawnEstimates drawn;
  Context context;
  if (const auto* sums = unbiased_sums(method)) {
    drawn.numerators.resize(one.shape.nq, one.shape.dv);
    drawn.denominators.resize(static_cast<size_t>(one.shape.nq));
    std::vector<double> log_scale(drawn.denominators.size());
    sums->sums(one.head.view(), one.shape.mask, 0, context, drawn.numerators, drawn.denominators, log_scale);
    for (size_t i = 0; i < log_scale.size(); ++i) {
      const double factor = std::exp(log_scale[i] - plan.log_sums[i]);
      drawn.denominators[i] *= factor;
      drawn.numerators.row(static_cast<Index>(i)) *= factor;
    }
  }
  if (const auto* estimated = unbiased_logits(method)) {
    drawn.logits.resize(one.shape.nq, one.shape.nk);
    estimated->logits(one.head.view(), context, drawn.logits);
  }
  if (has_unbiased_rows(method)) {
    drawn.rows.resize(one.shape.nq, one.shape.dv);
    method.attend(one.head.view(), one.shape.mask, context, drawn.rows);
  }
  return drawn;
}

double squared_distance(const Eigen::RowVectorXd& a, const std::vector<double>& b) {
  return (a - Eigen::RowVectorXd::Map(b.data(), std::ssize(b))).squaredNorm();
}

// The tests of row i of a method that samples keys.
void add_row(EstimatePlan& plan, const SampledRow& theory, Index i) {
  const std::string place = fmt::format("{}, row {}", plan.probe.name(), i);
  const double size = size_of(plan.probe.head.V);
  const auto row = static_cast<size_t>(i);
  constexpr double no_variance = 1e-20;  // rounding leaves 1e-32 of a variance of 0
  const auto add = [&](const char* claim, const std::string& what, double expected, double least, double variance,
                       std::function<double(const DrawnEstimates&)> of_draw) {
    plan.tests.push_back({{claim, what + ", " + place, expected, least, variance}, std::move(of_draw)});
  };
  const bool varies = theory.denominator_variance > no_variance;
  add("mean-weights", "denominator", 1, least_mean_error, varies ? theory.denominator_variance : 0,
      [row](const DrawnEstimates& drawn) { return drawn.denominators[row]; });
  for (Index c = 0; c < plan.probe.shape.dv; ++c) {
    const double wanted = theory.output[static_cast<size_t>(c)] / size;
    add("mean-weights", fmt::format("numerator, channel {}", c), wanted, least_mean_error, 0,
        [=](const DrawnEstimates& drawn) { return drawn.numerators(i, c) / size; });
    if (!theory.variances_known) plan.tests.back().number.variance = theory.numerator_variance / (size * size);
    if (!theory.row_exact) continue;
    add("mean-rows", fmt::format("channel {}", c), wanted, least_mean_error, 0,
        [=](const DrawnEstimates& drawn) { return drawn.numerators(i, c) / drawn.denominators[row] / size; });
  }
  if (!theory.variances_known) return;
  if (varies)
    add("sampling-law", "denominator", 1, least_law_error, 0,
        [row, mean = theory.denominator_mean, variance = theory.denominator_variance](const DrawnEstimates& drawn) {
          return std::pow(drawn.denominators[row] - mean, 2) / variance;
        });
  if (theory.numerator_variance > no_variance)
    add("sampling-law", "numerator", 1, least_law_error, 0,
        [i, mean = theory.numerator_mean, variance = theory.numerator_variance](const DrawnEstimates& drawn) {
          return squared_distance(drawn.numerators.row(i), mean) / variance;
        });
  if (theory.row_exact && theory.row_squared_error > no_variance)
    add("sampling-law", "row", 1, least_law_error, 0,
        [i, row, output = theory.output, error = theory.row_squared_error](const DrawnEstimates& drawn) {
          return squared_distance(drawn.numerators.row(i) / drawn.denominators[row], output) / error;
        });
}

void add_logits(EstimatePlan& plan) {
  const Probe& one = plan.probe;
  for (Index i = 0; i < one.shape.nq; ++i)
    for (Index j = i; j < one.shape.nk; j += 5) {
      const double scale = one.head.Q.row(i).norm() * one.head.K.row(j).norm();
      plan.tests.push_back({{"mean-logits", fmt::format("query {} and key {}, {}", i, j, one.name()),
                             one.head.Q.row(i).dot(one.head.K.row(j)) / scale, least_mean_error, 0},
                            [=](const DrawnEstimates& drawn) { return drawn.logits(i, j) / scale; }});
    }
}

// Row i of softmax attention.
Eigen::RowVectorXd exact_row(const Probe& one, Index i) {
  const Index seen = one.shape.mask.visible(i, one.shape.nk);
  const Eigen::ArrayXd logits = (one.head.K.topRows(seen) * one.head.Q.row(i).transpose()).array();
  return (logits - log_sum(one, i)).exp().matrix().transpose() * one.head.V.topRows(seen);
}

// Of sums without a law.
SampledRow means_of_row(const Probe& one, Index i) {
  const Eigen::RowVectorXd output = exact_row(one, i);
  return {.variances_known = false, .denominator_mean = 1, .output = {output.begin(), output.end()}};
}

void add_unbiased_rows(EstimatePlan& plan) {
  const Probe& one = plan.probe;
  const double size = size_of(one.head.V);
  for (Index i = 0; i < one.shape.nq; ++i) {
    const Eigen::RowVectorXd output = exact_row(one, i);
    for (Index c = 0; c < one.shape.dv; ++c)
      plan.tests.push_back({{"mean-rows", fmt::format("channel {}, {}, row {}", c, one.name(), i), output[c] / size,
                             least_mean_error, 0},
                            [=](const DrawnEstimates& drawn) { return drawn.rows(i, c) / size; }});
  }
}

EstimatePlan plan_on(const Subject& subject, const Shape& short_shape, std::uint64_t seed) {
  const Shape shape = long_enough(subject, short_shape, seed);
  const Params params = with_small_budget(subject, shape, seed);
  EstimatePlan plan{.drawing = Drawing(subject, params, shape, seed), .probe = gaussian_probe(params, shape, seed)};
  plan.drawing.fit_once();
  // Logits of standard deviation 0.8: with larger ones a few keys have all weight, and variances take many draws.
  plan.probe.head.Q *= 0.8;
  plan.probe.head.K *= 0.8;
  const auto method = plan.drawing.draw<double>(0);
  if (unbiased_logits(*method)) add_logits(plan);
  if (has_unbiased_rows(*method)) add_unbiased_rows(plan);
  const auto* sums = unbiased_sums(*method);
  if (!sums) return plan;
  plan.drawing.hold(given_state(*method, *sums));
  const auto* sampled = sampled_rows(*method);
  Context context;
  for (Index i = 0; i < shape.nq; ++i) {
    const Index seen = shape.mask.visible(i, shape.nk);
    plan.log_sums.push_back(log_sum(plan.probe, i));
    if (!sampled) {
      add_row(plan, means_of_row(plan.probe, i), i);
      continue;
    }
    const auto& head = plan.probe.head;
    const SamplingLaw law = sampled->law(head.view(), shape.mask, i);
    add_row(plan,
            sampled_row(context, law, row_block(head.Q, i, 1), row_block(head.K, 0, seen), row_block(head.V, 0, seen)),
            i);
  }
  return plan;
}

double numbers_of_state(const EstimatePlan& plan) {
  double numbers = 1;
  for (const auto& [name, tensor] : plan.drawing.draw<double>(0)->state())
    numbers += static_cast<double>(tensor.size());
  return numbers;
}

ClaimResults all_skipped(const std::string& reason) {
  ClaimResults results;
  for (const auto& [claim, meaning] : estimate_claims()) results.push_back(skipped(claim, reason));
  return results;
}

}  // namespace

const std::vector<std::pair<std::string, std::string>>& estimate_claims() {
  static const std::vector<std::pair<std::string, std::string>> all{
      {"mean-weights", "random numerators and denominators have softmax's as their means; finds 2 % of them"},
      {"mean-rows",
       "a row that is claimed to have no bias, or whose denominator does not vary, is softmax's in the mean; finds 2 "
       "%"},
      {"sampling-law", "mean squared errors of these sums over draws are those of the law of the draws; finds 5 %"},
      {"mean-logits", "estimated logits are q.k in the mean over draws; finds 2 % of |q| |k|"}};
  return all;
}

double EstimatePlans::tests() const {
  double count = 0;
  for (const EstimatePlan& plan : plans) count += static_cast<double>(plan.tests.size());
  return count;
}

EstimatePlans plan_estimate_claims(const Subject& subject, std::uint64_t seed) {
  EstimatePlans all;
  for (const Shape& shape : {Shape{.nq = 2, .nk = 24, .d = 4, .dv = 3, .mask = {.keys = 20}},
                             Shape{.nq = 3, .nk = 16, .d = 4, .dv = 3, .mask = {.causal = true, .offset = 5}}}) {
    if (!subject.claims(subject.params, shape).no_form.empty()) continue;
    const auto method = Drawing(subject, subject.params, shape, seed).draw<double>(0);
    if (!unbiased_sums(*method) && !unbiased_logits(*method) && !has_unbiased_rows(*method))
      return {.reason = "it claims no unbiased sums, rows or logits"};
    try {
      all.plans.push_back(plan_on(subject, shape, seed));
    } catch (const std::exception& e) {
      return {.reason = e.what(), .failed = true};
    }
  }
  if (all.plans.empty()) all.reason = "it has no form for the heads that this is tested on";
  return all;
}

ClaimResults test_estimate_claims(const EstimatePlans& all, double threshold, double work, Context& context) {
  if (all.failed) {
    ClaimResults results = all_skipped("its law could not be read");
    results[0] = {.claim = "mean-weights", .tested = "", .outcome = Outcome::fail, .reason = all.reason};
    return results;
  }
  if (!all.reason.empty()) return all_skipped(all.reason);
  ClaimResults results;
  for (const EstimatePlan& plan : all.plans) {
    std::vector<DrawnNumber> numbers;
    for (const EstimateTest& test : plan.tests) numbers.push_back(test.number);
    const auto draw = [&](Index i, std::span<double> of_draw) {
      const DrawnEstimates drawn = estimates_of(*plan.drawing.draw<double>(i), plan);
      for (size_t t = 0; t < of_draw.size(); ++t) of_draw[t] = plan.tests[t].of_draw(drawn);
    };
    const ClaimResults part = test_over_draws(numbers, draw, numbers_of_state(plan), threshold, work, context);
    results.insert(results.end(), part.begin(), part.end());
  }
  const std::map<std::string, std::string> untested{
      {"mean-weights", "it claims no unbiased sums"},
      {"mean-rows", "it claims no unbiased rows, and the denominator of its rows varies or it samples no keys"},
      {"sampling-law", "its errors are 0 in every draw, its draws are dependent, or it samples no keys"},
      {"mean-logits", "it estimates no logits"}};
  for (const auto& [claim, reason] : untested)
    if (of_claim(results, claim).empty()) results.push_back(skipped(claim, reason));
  return results;
}

}  // namespace attnbench
