// Measures and statistics: closed values and inequalities of methods.md I, sample moments against two passes in long
// double, intervals against exact binomial sums.
//
// Tolerances are bounds on rounding. The two Monte Carlo tests have a family-wise error rate of 1e-6 each.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "harness/errors/error.hpp"
#include "harness/linalg/lapack.hpp"
#include "harness/measures/attention_matrix.hpp"
#include "harness/measures/divergence.hpp"
#include "harness/measures/sparsity.hpp"
#include "harness/measures/spectrum.hpp"
#include "harness/random/streams.hpp"
#include "harness/statistics/intervals.hpp"
#include "harness/statistics/moments.hpp"
#include "tests/catch.hpp"

namespace attnbench::measures_test {

namespace {

using Row = std::vector<double>;

constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr double infinity = std::numeric_limits<double>::infinity();

bool close(double value, double expected, double relative = 16 * epsilon) {
  return std::abs(value - expected) <= relative * std::max(1.0, std::abs(expected));
}

Row uniform_row(size_t n) { return Row(n, 1.0 / static_cast<double>(n)); }

Row one_hot(size_t n, size_t place) {
  Row p(n, 0.0);
  p[place] = 1;
  return p;
}

// A softmax row whose logits are N(0, s^2): from nearly uniform (s = 0.01) to nearly one-hot (s = 30).
Row softmax_row(Generator& generator, Index n, double s) {
  const Matrix<double> logits = s * standard_normal(generator, 1, n);
  Row p(static_cast<size_t>(n));
  double sum = 0;
  for (Index j = 0; j < n; ++j) sum += p[static_cast<size_t>(j)] = std::exp(logits(0, j) - logits.maxCoeff());
  for (double& x : p) x /= sum;
  return p;
}

constexpr double spreads[] = {0.01, 0.3, 1, 3, 30};

}  // namespace

TEST_CASE("the uniform row has full support and no inequality", "[unit]") {
  for (const size_t n : {1u, 2u, 7u, 1000u}) {
    CAPTURE(n);
    const Row p = uniform_row(n);
    const auto size = static_cast<double>(n);
    const double rounding = 4 * size * epsilon;
    CHECK(close(entropy(p), std::log(size), rounding));
    CHECK(close(effective_support(p), size, rounding));
    CHECK(close(inverse_participation(p), size, rounding));
    CHECK(close(gini(p), 0, rounding));
    CHECK(close(hoyer(p), 0, rounding));
    CHECK(close(top_mass(p, 1), 1 / size));
    CHECK(fraction_below(p, 1 / size) == 0);
    CHECK(fraction_below(p, 1.01 / size) == 1);
  }
}

TEST_CASE("a one-hot row has a support of one key", "[unit]") {
  for (const size_t n : {2u, 7u, 1000u})
    for (const size_t place : {size_t{0}, n / 2, n - 1}) {
      CAPTURE(n, place);
      const Row p = one_hot(n, place);
      const auto size = static_cast<double>(n);
      CHECK(entropy(p) == 0);
      CHECK(effective_support(p) == 1);
      CHECK(inverse_participation(p) == 1);
      CHECK(close(gini(p), 1 - 1 / size));
      CHECK(close(hoyer(p), 1));
      CHECK(top_mass(p, 1) == 1);
      CHECK(close(fraction_below(p, 0.5), 1 - 1 / size));
    }
}

TEST_CASE("one key alone is neither sparse nor unequal", "[unit]") {
  const Row p = {1};
  CHECK((entropy(p) == 0 && effective_support(p) == 1 && inverse_participation(p) == 1));
  CHECK((gini(p) == 0 && hoyer(p) == 0 && top_mass(p, 1) == 1));
  CHECK((l1_distance(p, p) == 0 && kl_divergence(p, p) == 0.0));
}

TEST_CASE("a row of zeros has no support, and nothing is divided by zero", "[unit]") {
  const Row p(5, 0.0);
  CHECK((entropy(p) == 0 && inverse_participation(p) == 0 && gini(p) == 0 && hoyer(p) == 0 && top_mass(p, 3) == 0));
  CHECK(fraction_below(p, 1e-9) == 1);
}

TEST_CASE("the relative support of a row is over the keys that it sees, not over all that there are", "[unit]") {
  // Two of the four keys that the row sees have all of its weight; four more are masked.
  const Row p = {0.5, 0.5, 0, 0, 0, 0, 0, 0};
  const RowSparsity row = row_sparsity(p, 3, 4, 2, 0.1);
  CHECK(close(row.effective_support, 2));
  CHECK(close(row.relative_support, 0.5));
  CHECK(close(row.relative_entropy, 0.5));  // log 2 / log 4
}

TEST_CASE("a row that does not sum to one is measured as its shares", "[unit]") {
  const Row p = {0.25, 0.5, 0.25, 0}, thrice = {0.75, 1.5, 0.75, 0};
  const RowSparsity one = row_sparsity(p, 3, 4, 1, 0.1), other = row_sparsity(thrice, 3, 4, 1, 0.1);
  CHECK(close(other.effective_support, std::pow(2, 1.5)));
  CHECK(close(other.inverse_participation, 8.0 / 3));
  CHECK(close(other.top_mass, 0.5));
  CHECK(close(other.sink_mass, 0.25));
  CHECK(close(other.gini, one.gini));
  CHECK(close(other.attention_distance, 0.25 * 3 + 0.5 * 2 + 0.25 * 1));
}

TEST_CASE("sparsity measures of a small row are those computed by hand", "[unit]") {
  const Row p = {0.25, 0.5, 0.25};
  CHECK(close(entropy(p), 1.5 * std::log(2)));
  CHECK(close(effective_support(p), std::pow(2, 1.5)));
  CHECK(close(inverse_participation(p), 8.0 / 3));
  CHECK(close(gini(p), 1.0 / 6));  // 2 (1/4 + 2/4 + 3/2) / 3 - 4/3
  CHECK(close(hoyer(p), (std::sqrt(3) - std::sqrt(8.0 / 3)) / (std::sqrt(3) - 1)));
  CHECK(top_mass(p, 0) == 0);
  CHECK(top_mass(p, 1) == 0.5);
  CHECK(top_mass(p, 2) == 0.75);
  CHECK(top_mass(p, 3) == 1);
  CHECK(top_mass(p, 100) == 1);
  CHECK(close(fraction_below(p, 0.3), 2.0 / 3));
  CHECK(fraction_below(p, 0.25) == 0);  // an entry at the threshold is not below it
}

TEST_CASE("measures that allow any sign read magnitudes", "[unit]") {
  const Row p = {0.25, -0.5, 0.25}, magnitudes = {0.25, 0.5, 0.25};
  CHECK(hoyer(p) == hoyer(magnitudes));
  CHECK(fraction_below(p, 0.3) == fraction_below(magnitudes, 0.3));
  CHECK(top_mass(p, 1) == 0.25);
}

TEST_CASE("sparsity measures keep their order and bounds on random rows, and read no order of keys", "[unit]") {
  Generator generator = Streams(1).stream("sparsity");
  for (const Index n : {2, 5, 64, 500})
    for (const double s : spreads)
      for (int repetition = 0; repetition < 20; ++repetition) {
        const Row p = softmax_row(generator, n, s), reversed(p.rbegin(), p.rend());
        const auto size = static_cast<double>(n);
        const double rounding = 8 * size * epsilon, slack = 1 + rounding;
        const double participation = inverse_participation(p), support = effective_support(p);
        CAPTURE(n, s, participation, support, gini(p), hoyer(p));
        CHECK((1 <= participation * slack && participation <= support * slack && support <= size * slack));
        CHECK((gini(p) >= -rounding && gini(p) <= 1 - 1 / size + rounding));
        CHECK((hoyer(p) >= -rounding && hoyer(p) <= 1 + rounding));
        Row masses;
        for (Index k = 1; k <= n; ++k) masses.push_back(top_mass(p, k) / static_cast<double>(k));
        CHECK(std::is_sorted(masses.rbegin(), masses.rend(), [&](double a, double b) { return a * slack < b; }));
        CHECK(close(masses.back(), 1 / size, rounding));
        CHECK(close(entropy(reversed), entropy(p), rounding));
        CHECK(gini(reversed) == gini(p));
        CHECK(close(hoyer(reversed), hoyer(p), rounding));
      }
}

TEST_CASE("Gini and Hoyer read no scale", "[unit]") {
  Generator generator = Streams(1).stream("scale");
  const Row p = softmax_row(generator, 50, 1);
  for (const double factor : {1e-100, 0.5, 3.0, 1e100}) {
    Row scaled = p;
    for (double& x : scaled) x *= factor;
    CHECK(close(gini(scaled), gini(p), 200 * epsilon));
    CHECK(close(hoyer(scaled), hoyer(p), 200 * epsilon));
  }
}

TEST_CASE("rows are at an L1 distance from 0 to 2", "[unit]") {
  CHECK(l1_distance(one_hot(4, 0), one_hot(4, 3)) == 2);
  CHECK(l1_distance(uniform_row(4), one_hot(4, 3)) == 1.5);
  CHECK(l1_distance(uniform_row(4), uniform_row(4)) == 0);
}

TEST_CASE("KL divergences of small rows are those computed by hand, and the two directions differ", "[unit]") {
  const Row p = {0.5, 0.5}, q = {0.25, 0.75};
  CHECK(close(kl_divergence(p, q).value(), 0.5 * std::log(4.0 / 3)));
  CHECK(close(kl_divergence(q, p).value(), 0.75 * std::log(3) - std::log(2)));
  CHECK(kl_divergence(one_hot(3, 1), Row{0.25, 0.5, 0.25}).value() == std::log(2));
  CHECK(close(kl_divergence(uniform_row(8), uniform_row(8)).value(), 0));
}

TEST_CASE("a KL divergence is infinite where the approximation has no weight, and only there", "[unit]") {
  CHECK(kl_divergence(uniform_row(3), one_hot(3, 1)) == infinity);
  CHECK(kl_divergence(one_hot(3, 0), one_hot(3, 1)) == infinity);
  CHECK(kl_divergence(Row{1, 0}, Row{1, 0}) == 0.0);
  CHECK(kl_divergence(Row{0, 1}, Row{0.5, 0.5}).value() == std::log(2));
  // A subnormal weight is a weight: p / q overflows, its logarithm does not.
  CHECK(close(kl_divergence(Row{0.5, 0.5}, Row{1e-310, 1}).value(),
              0.5 * std::log(0.5) + 0.5 * (std::log(0.5) - std::log(1e-310))));
}

TEST_CASE("a KL divergence is not defined where an entry is negative, whatever else is in the row", "[unit]") {
  CHECK_FALSE(kl_divergence(Row{0.5, 0.5}, Row{-0.1, 1.1}));
  CHECK_FALSE(kl_divergence(Row{-0.1, 1.1}, Row{0.5, 0.5}));
  CHECK_FALSE(kl_divergence(Row{0.5, 0.3, 0.2}, Row{0, 1.1, -0.1}));  // infinite before it is undefined
  CHECK_FALSE(kl_divergence(Row{0, 1}, Row{-1e-300, 1}));
  CHECK(kl_divergence(Row{-0.0, 1}, Row{0.5, 0.5}).value() == std::log(2));
}

TEST_CASE("Pinsker's inequality holds, and KL is not negative beyond rounding", "[unit]") {
  Generator generator = Streams(1).stream("Pinsker");
  for (const Index n : {2, 5, 64, 500})
    for (const double s : spreads)
      for (const double t : spreads) {
        const Row p = softmax_row(generator, n, s), q = softmax_row(generator, n, t);
        const double rounding = 8 * static_cast<double>(n) * epsilon;
        const double kl = kl_divergence(p, q).value(), l1 = l1_distance(p, q);
        CAPTURE(n, s, t, kl, l1);
        CHECK(kl >= -rounding);
        CHECK(l1 <= 2 + rounding);
        CHECK(l1 <= std::sqrt(2 * std::max(kl, 0.0)) + rounding);
      }
}

TEST_CASE("a mask that keeps the mass p is at L1 = 2 (1 - p) and KL = -log p", "[unit]") {
  Generator generator = Streams(1).stream("mask");
  const Row exact = softmax_row(generator, 40, 1.5);
  Row masked = exact;
  std::fill(masked.begin() + 25, masked.end(), 0.0);
  const double kept = std::accumulate(masked.begin(), masked.end(), 0.0);
  for (double& x : masked) x /= kept;
  CHECK(close(l1_distance(exact, masked), 2 * (1 - kept), 100 * epsilon));
  CHECK(close(kl_divergence(masked, exact).value(), -std::log(kept), 100 * epsilon));
  CHECK(kl_divergence(exact, masked) == infinity);
}

TEST_CASE("an identity matrix has every rank n, a matrix of rank one has every rank 1", "[unit]") {
  for (const Index n : {1, 2, 30}) {
    const auto identity = singular_values(Matrix<double>::Identity(n, n));
    const auto size = static_cast<double>(n);
    const double rounding = 8 * size * epsilon;
    CHECK(numerical_rank(identity, rank_tolerance(identity, n, n)) == n);
    for (const double rank :
         {stable_rank(identity), participation_ratio(identity), effective_rank(identity), effective_rank(identity, 2)})
      CHECK(close(rank, size, rounding));

    const auto single = singular_values(Matrix<double>::Constant(n, 7, 1.0 / 7));  // the uniform attention matrix
    CHECK(numerical_rank(single, rank_tolerance(single, n, 7)) == 1);
    CHECK(close(stable_rank(single), 1, 100 * epsilon));
    CHECK(close(participation_ratio(single), 1, 100 * epsilon));
    // Singular values of rounding size, r of them, add r epsilon |log epsilon| to the entropy of sigma.
    CHECK(close(effective_rank(single), 1, 36 * 7 * 8 * epsilon));
    CHECK(close(effective_rank(single, 2), 1, 100 * epsilon));
  }
}

TEST_CASE("a zero matrix and an empty one have every rank 0", "[unit]") {
  for (const auto& sigma : {Row(4, 0.0), Row{}}) {
    CHECK(rank_tolerance(sigma, 4, 4) == 0);
    CHECK(numerical_rank(sigma, 0) == 0);
    CHECK((stable_rank(sigma) == 0 && participation_ratio(sigma) == 0));
    CHECK((effective_rank(sigma) == 0 && effective_rank(sigma, 2) == 0 && principal_dimensions(sigma, 0.9) == 0));
    CHECK(cumulative_spectrum(sigma) == sigma);
  }
}

TEST_CASE("ranks of a small spectrum are those computed by hand", "[unit]") {
  const Row sigma = {2, 1};
  CHECK(close(stable_rank(sigma), 1.25));
  CHECK(close(participation_ratio(sigma), 25.0 / 17));
  CHECK(close(effective_rank(sigma), 3 / std::pow(2, 2.0 / 3)));
  CHECK((principal_dimensions(sigma, 0.79) == 1 && principal_dimensions(sigma, 0.81) == 2));
  CHECK(close(effective_rank(sigma, 2), 5 / std::pow(4, 0.8)));
  CHECK(close(cumulative_spectrum(sigma)[0], 2.0 / 3));
  CHECK(cumulative_spectrum(sigma)[1] == 1);
  CHECK(numerical_rank(Row{1, 1e-3, 1e-9}, 1e-6) == 2);
  CHECK(numerical_rank(Row{1, 1e-3}, 1e-3) == 1);  // above, not at, the tolerance
  CHECK(rank_tolerance(Row{3, 1}, 10, 20) == 3 * 20 * epsilon);
}

TEST_CASE("1 <= stable rank <= participation <= exp H(sigma^2) <= exp H(sigma) <= rank", "[unit]") {
  Generator generator = Streams(1).stream("rank chain");
  for (const Index n : {2, 5, 40})
    for (const Index columns : {3, 40})
      for (int kind = 0; kind < 4; ++kind)
        for (const double s : spreads) {
          Matrix<double> A = s * standard_normal(generator, n, columns);
          if (kind == 1) A = A.array().exp();                                                            // positive
          if (kind == 2) A = standard_normal(generator, n, 2) * standard_normal(generator, 2, columns);  // rank 2
          if (kind == 3)
            for (Index j = 0; j < columns; ++j) A.col(j) *= std::pow(10, -0.5 * static_cast<double>(j));  // graded
          const auto sigma = singular_values(A);
          const auto rank = numerical_rank(sigma, rank_tolerance(sigma, n, columns));
          const std::vector<double> chain = {1,
                                             stable_rank(sigma),
                                             participation_ratio(sigma),
                                             effective_rank(sigma, 2),
                                             effective_rank(sigma),
                                             static_cast<double>(rank)};
          CAPTURE(n, columns, kind, s, chain);
          // Singular values of rounding size count for the entropies, and not for the rank.
          const double slack = 1 + 100 * static_cast<double>(std::max(n, columns)) * epsilon * -std::log(epsilon);
          for (size_t i = 1; i < chain.size(); ++i) CHECK(chain[i - 1] <= chain[i] * slack);
          const auto cumulative = cumulative_spectrum(sigma);
          CHECK(std::is_sorted(cumulative.begin(), cumulative.end()));
          CHECK(cumulative.back() == 1);
        }
}

TEST_CASE("ranks read no scale, however far from one", "[unit]") {
  Generator generator = Streams(1).stream("rank scale");
  const auto sigma = singular_values(standard_normal(generator, 20, 20));
  for (const double factor : {1e-300, 1e-150, 1e-80, 1e80, 1e150, 1e300}) {
    CAPTURE(factor);
    Row scaled = sigma;
    for (double& s : scaled) s *= factor;
    CHECK(close(stable_rank(scaled), stable_rank(sigma), 100 * epsilon));
    CHECK(close(participation_ratio(scaled), participation_ratio(sigma), 100 * epsilon));
    CHECK(close(effective_rank(scaled), effective_rank(sigma), 100 * epsilon));
    CHECK(close(effective_rank(scaled, 2), effective_rank(sigma, 2), 100 * epsilon));
    CHECK(close(cumulative_spectrum(scaled)[5], cumulative_spectrum(sigma)[5], 100 * epsilon));
    CHECK(numerical_rank(scaled, rank_tolerance(scaled, 20, 20)) == 20);
  }
}

TEST_CASE("a matrix that is not finite is named with its first place", "[unit]") {
  Matrix<double> A = Matrix<double>::Zero(3, 4);
  CHECK_NOTHROW(require_finite<double>(A, "output"));
  A(1, 2) = infinity;
  A(2, 0) = std::numeric_limits<double>::quiet_NaN();
  try {
    require_finite<double>(A, "output");
    FAIL("not refused");
  } catch (const NumericallyInvalid& invalid) {
    CHECK(std::string(invalid.what()) == "output: inf at row 1, column 2");
  }
}

namespace {

// Count, mean and sums of powers of deviations, by two passes in long double.
struct TwoPasses {
  long double mean = 0, m2 = 0, m3 = 0, m4 = 0, magnitude3 = 0;
  explicit TwoPasses(const Row& values) {
    for (const double x : values) mean += static_cast<long double>(x) / static_cast<long double>(values.size());
    for (const double x : values) {
      const long double deviation = x - mean, square = deviation * deviation;
      m2 += square;
      m3 += square * deviation;
      m4 += square * square;
      magnitude3 += std::abs(square * deviation);
    }
  }
};

// One pass adds N roundings, and a deviation is known to the rounding of the mean: N epsilon (1 + |mean| / sd). The
// textbook sum of squares would be off by epsilon (mean / sd)^2.
void check_moments(const Moments& measured, const Row& values) {
  const TwoPasses exact(values);
  const auto count = static_cast<double>(values.size());
  const double mean = static_cast<double>(exact.mean), deviation = std::sqrt(static_cast<double>(exact.m2) / count);
  const double bound = count * epsilon * (1 + (deviation > 0 ? std::abs(mean) / deviation : 0));
  CHECK(measured.count == count);
  CHECK(std::abs(measured.mean - mean) <= bound * (deviation > 0 ? deviation : std::abs(mean)));
  CHECK(std::abs(measured.m2 - static_cast<double>(exact.m2)) <= bound * static_cast<double>(exact.m2));
  CHECK(std::abs(measured.m3 - static_cast<double>(exact.m3)) <= bound * static_cast<double>(exact.magnitude3));
  CHECK(std::abs(measured.m4 - static_cast<double>(exact.m4)) <= bound * static_cast<double>(exact.m4));
  double sum = 0, largest = 0;
  for (const double x : values) {
    sum += std::abs(x);
    largest = std::max(largest, std::abs(x));
  }
  CHECK(measured.largest_magnitude == largest);
  CHECK(close(measured.sum_of_magnitudes / sum, 1, count * epsilon));
}

std::vector<Row> samples() {
  Generator generator = Streams(1).stream("moments");
  std::vector<Row> all = {{3.5}, {-1, 2}, {0, 0, 0, 1}, {-7, -7, -7}};
  for (const auto& [offset, scale] : {std::pair<double, double>{0, 1}, {5, 0.1}, {1e6, 1}, {-1e3, 1e-3}}) {
    Row normal, lognormal;
    const Matrix<double> x = standard_normal(generator, 1, 3000);
    for (Index i = 0; i < x.size(); ++i) {
      normal.push_back(offset + scale * x(0, i));
      lognormal.push_back(offset + scale * std::exp(2 * x(0, i)));
    }
    all.push_back(normal);
    all.push_back(lognormal);
  }
  return all;
}

}  // namespace

TEST_CASE("moments of one pass are those of two passes in long double", "[unit]") {
  for (const Row& values : samples()) check_moments(moments(values), values);
}

TEST_CASE("merged moments are those of all numbers, whatever the parts", "[unit]") {
  for (const Row& values : samples())
    for (const size_t parts : {2u, 3u, 64u}) {
      Moments all;
      for (size_t part = 0; part < parts; ++part) {
        const size_t begin = part * values.size() / parts, end = (part + 1) * values.size() / parts;
        all.merge(moments(std::span(values).subspan(begin, end - begin)));  // some are empty
      }
      check_moments(all, values);
    }
  const Row values = samples().back();
  Moments uneven = moments(std::span(values).first(2999));
  uneven.merge(moments(std::span(values).last(1)));
  check_moments(uneven, values);
}

TEST_CASE("merging with nothing changes no bit", "[unit]") {
  const Moments some = moments(samples()[5]);
  Moments left, right = some;
  left.merge(some);
  right.merge(Moments());
  for (const Moments& same : {left, right}) {
    CHECK((same.count == some.count && same.mean == some.mean && same.m2 == some.m2 && same.m3 == some.m3));
    CHECK((same.m4 == some.m4 && same.sum_of_magnitudes == some.sum_of_magnitudes));
    CHECK(same.largest_magnitude == some.largest_magnitude);
  }
}

TEST_CASE("variances and standard errors of small samples are those computed by hand", "[unit]") {
  const Moments sample = moments(Row{0, 0, 0, 1});
  CHECK(close(sample.variance(), 0.25));
  CHECK(close(sample.standard_error(), 0.25));
  // mu_4 = (3 / 256 + 81 / 256) / 4; (mu_4 - sigma^4 / 3) / 4.
  CHECK(close(sample.variance_standard_error(), std::sqrt((84.0 / 256 / 4 - 0.0625 / 3) / 4)));
  CHECK(sample.share_of_largest() == 1);
  CHECK(close(moments(Row{1, -3, 2}).share_of_largest(), 0.5));
  for (const Row& none : {Row{}, Row{4}, Row{4, 4, 4}}) {
    const Moments constant = moments(none);
    CHECK((constant.variance() == 0 && constant.standard_error() == 0 && constant.variance_standard_error() == 0));
  }
  CHECK(moments(Row{}).share_of_largest() == 0);
  CHECK(moments(Row{0, 0}).share_of_largest() == 0);
}

// Hall (1992, Journal of the Royal Statistical Society B 54:221): with W the deviation of the mean over the standard
// deviation and g the skewness, W + g W^2 / 3 + g^2 W^3 / 27 + g / (6 n) is nearly normal. Of {0, 0, 0, 0, 0, 0, 0, 8}
// the mean is 1, the variance 8 and the third central moment 336 / 8 = 42, so that g = 42 / 8^1.5.
TEST_CASE("the score of a skewed sample is the one computed by hand, and that of its mirror image the negative",
          "[unit]") {
  const Row skewed = {0, 0, 0, 0, 0, 0, 0, 8}, mirrored = {0, 0, 0, 0, 0, 0, 0, -8};
  const double g = 42 / std::pow(8, 1.5);
  for (const double expected : {0.5, 1.0, 3.0}) {
    CAPTURE(expected);
    const double W = (1 - expected) / std::sqrt(8);
    const double by_hand = std::sqrt(8) * (W + g * W * W / 3 + g * g * W * W * W / 27 + g / 48);
    CHECK(close(score(moments(skewed), expected), by_hand));
    CHECK(close(score(moments(mirrored), -expected), -by_hand));
  }
  CHECK(close(score(moments(skewed), 1), 0.109375));  // of the mean itself: g / 48 root 8 = 42 / 384
  CHECK(close(score(moments(Row{-1, 1, -2, 2}), 0), 0));
}

}  // namespace attnbench::measures_test
