#include "harness/claims/over_draws.hpp"

#include <algorithm>
#include <cmath>

#include "harness/statistics/moments.hpp"

namespace attnbench {

namespace {

constexpr Index pilot_draws = 256;    // give the standard deviation of skewed estimates to a quarter
constexpr Index fewest_draws = 1024;  // with fewer draws, z-scores are not normal
constexpr Index most_draws = 1 << 20;
constexpr Index batch = 128;

struct Sampler {
  const std::vector<DrawnNumber>& tests;
  const NumbersOfDraw& numbers_of_draw;

  // Moments of each number over draws [begin, begin + draws). Batches have a fixed size and are merged in order.
  std::vector<Moments> operator()(Index begin, Index draws, Context& context) const {
    std::vector<std::vector<Moments>> batches(static_cast<size_t>((draws + batch - 1) / batch),
                                              std::vector<Moments>(tests.size()));
    context.for_blocks(draws, batch, [&](Context&, Index first, Index count) {
      auto& moments = batches[static_cast<size_t>(first / batch)];
      std::vector<double> numbers(tests.size());
      for (Index i = first; i < first + count; ++i) {
        numbers_of_draw(begin + i, numbers);
        for (size_t t = 0; t < moments.size(); ++t) moments[t].add(numbers[t]);
      }
    });
    std::vector<Moments> all(tests.size());
    for (const auto& moments : batches)
      for (size_t t = 0; t < all.size(); ++t) all[t].merge(moments[t]);
    return all;
  }
};

bool fails_anyway(const DrawnNumber& test, const Moments& seen, double threshold) {
  return std::abs(score(seen, test.expected)) > 2 * threshold;
}

// N = (sigma (t + 3.1) / least effect)^2. Uses the closed form's sigma if it is larger, because a small sample of a
// skewed estimate shows too little. Returns 0 beyond twice the threshold: the test fails anyway, and the squared errors
// of a wrong kernel would ask for the maximum.
double draws_needed(const DrawnNumber& test, const Moments& seen, double threshold) {
  if (fails_anyway(test, seen, threshold)) return 0;
  const double errors = (threshold + power_quantile) / test.least_effect;
  return std::max(seen.variance(), test.variance) * errors * errors;
}

double most_needed(const std::vector<DrawnNumber>& tests, const std::vector<Moments>& seen, double threshold) {
  double most = 0;
  for (size_t t = 0; t < seen.size(); ++t) most = std::max(most, draws_needed(tests[t], seen[t], threshold));
  return most;  // an estimate that is NaN needs no draws
}

Result judged(const DrawnNumber& test, const Moments& seen, double threshold) {
  if (seen.variance() <= 1e-24 && test.variance == 0)  // deterministic, though no closed form says so
    return compared(test.claim, test.tested, std::abs(seen.mean - test.expected), exact_tolerance);
  Result result{.claim = test.claim, .tested = test.tested};
  const double effect = seen.mean - test.expected, width = threshold * seen.standard_error();
  Evidence evidence{.z = score(seen, test.expected),
                    .effect = effect,
                    .interval = {effect - width, effect + width},
                    .draws = seen.count};
  if (test.claim == "unbiased" && test.expected != 0) evidence.of_mean = effect / test.expected;
  const double needed = draws_needed(test, seen, threshold);
  // With half of the stated variance unseen, the sample also misses the tail that makes the mean. That tail may be all
  // of an effect that the draws are too few for, or of one below the least.
  const bool unseen_tail =
      seen.variance() < test.variance / 2 && (needed > seen.count || std::abs(effect) < test.least_effect);
  if (!(std::abs(evidence.z) <= threshold) && !unseen_tail) {
    result.outcome = Outcome::fail;
  } else if (needed > seen.count) {
    result.outcome = Outcome::undecided;
    evidence.draws_to_decide = std::ceil(needed);
  } else {
    result.outcome = Outcome::pass;
  }
  result.evidence = evidence;
  return result;
}

// Samples in parts, each as large as all before it. Stops when every test fails anyway or has the draws that `earlier`
// asks for: a variance that is four times too large shows in a fiftieth of the draws that find 10 %.
std::vector<Moments> sample_until_decided(const Sampler& sample, Index begin, Index draws,
                                          const std::vector<Moments>& earlier, double threshold, Context& context) {
  std::vector<Moments> seen(sample.tests.size());
  for (Index done = 0; done < draws;) {
    const Index part = std::min(std::max(fewest_draws, done), draws - done);
    const std::vector<Moments> more = sample(begin + done, part, context);
    done += part;
    double wanted = 0;
    for (size_t t = 0; t < seen.size(); ++t) {
      seen[t].merge(more[t]);
      if (!fails_anyway(sample.tests[t], seen[t], threshold))
        wanted = std::max(wanted, 1.5 * draws_needed(sample.tests[t], earlier[t], threshold));
    }
    if (static_cast<double>(done) >= wanted) break;
  }
  return seen;
}

}  // namespace

ClaimResults test_over_draws(const std::vector<DrawnNumber>& tests, const NumbersOfDraw& draw, double numbers_of_state,
                             double threshold, double work, Context& context) {
  if (tests.empty()) return {};
  const Sampler sample{tests, draw};
  const auto affordable = static_cast<Index>(std::clamp(work / numbers_of_state, 2.0, static_cast<double>(most_draws)));
  // Each sample is fresh, and the previous one determines its size. A sample that determined its own size would favour
  // the draws in which a skewed estimate has a small variance, and those are low. We take half as many again as needed,
  // because the pilot knows the variance only to a quarter.
  Index begin = 0, draws = std::min(pilot_draws, affordable);
  std::vector<Moments> seen = sample(begin, draws, context);
  do {
    begin += draws;
    const double wanted = 1.5 * most_needed(tests, seen, threshold);
    draws = std::min(affordable, static_cast<Index>(std::clamp(wanted, static_cast<double>(fewest_draws),
                                                               static_cast<double>(most_draws))));
    seen = sample_until_decided(sample, begin, draws, seen, threshold, context);
  } while (draws < affordable && most_needed(tests, seen, threshold) > static_cast<double>(draws));
  ClaimResults results;
  for (size_t t = 0; t < seen.size(); ++t) results.push_back(judged(tests[t], seen[t], threshold));
  return results;
}

}  // namespace attnbench
