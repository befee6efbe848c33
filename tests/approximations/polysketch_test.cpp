// PolySketch features: the square of a sketch, its mean and mean squared error, and what it never is (methods.md A16,
// J66).
//
// Each family of scores has an error rate of 1e-3 over three base seeds together; the effects that a test must find are
// planted.
#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/cases.hpp"
#include "tests/catch.hpp"
#include "tests/scores.hpp"

namespace attnbench::polysketch_test {

namespace {

Params polysketch(Index degree, Index r) {
  return {"methods", "performer:features=polysketch,degree=" + std::to_string(degree) + ",r=" + std::to_string(r)};
}

std::unique_ptr<Approximation<double>> drawn(const Params& params, Index d, Index replicate, std::uint64_t seed = 1,
                                             const Tensors* state = nullptr) {
  return make_approximation<double>({.shape = {.nq = 1, .nk = 1, .d = d, .dv = 1},
                                     .params = params,
                                     .streams = Streams(seed),
                                     .replicate = replicate,
                                     .state = state});
}

// K(q_i, k_i), row by row.
std::vector<double> kernel(const Approximation<double>& method, const Matrix<double>& Q, const Matrix<double>& K) {
  std::vector<double> values(static_cast<size_t>(Q.rows())), log_scale(values.size());
  const Matrix<double> none(K.rows(), 0);
  Context context;
  method.kernel()->diagonal({Q, K, none}, context, values, log_scale);
  for (size_t i = 0; i < values.size(); ++i) values[i] *= std::exp(log_scale[i]);
  return values;
}

// M(x) of one token by methods.md A16, from the state: two branches at every level.
std::vector<double> sketch(const Tensors& state, const Matrix<double>& x, Index degree, Index r) {
  std::function<std::vector<double>(Index, Index)> branch = [&](Index of_degree, Index node) {
    std::vector<double> product(static_cast<size_t>(r), 1 / std::sqrt(static_cast<double>(r)));
    for (Index side = 0; side < 2; ++side) {
      const Index child = 2 * node + side;
      const std::vector<double> below = of_degree > 2 ? branch(of_degree / 2, child) : std::vector<double>();
      for (Index f = 0; f < r; ++f) {
        double sum = 0;
        for (Index l = 0; l < (below.empty() ? x.cols() : r); ++l)
          sum += below.empty() ? state.at("leaves")(child * r + f, l) * x(0, l)
                               : state.at("inner")(child * r + f, l) * below[static_cast<size_t>(l)];
        product[static_cast<size_t>(f)] *= sum;
      }
    }
    return product;
  };
  return branch(degree / 2, 0);  // the degrees here, 4 and 8, have one level of inner blocks at most
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

const Matrix<double> queries{{0.8, 0.6, 0}, {0.9, 0.2, -0.4}}, keys{{0.8, 0.6, 0}, {0.7, -0.3, -0.2}};

Pair pair(Index i) { return pair_of({queries.row(i).data(), 3}, {keys.row(i).data(), 3}); }

KernelTheory theory(const Params& params, Index d) {
  return find<MethodEntry>("performer").theory(params, {.nq = 1, .nk = 1, .d = d, .dv = 1}, nullptr).value();
}

}  // namespace

TEST_CASE("a PolySketch weight is the square of the sketches' inner product, which may be negative", "[methods]") {
  bool negative = false;
  for (const Index degree : {4, 8})
    for (const Index r : {1, 2, 7})
      for (Index replicate = 0; replicate < 20; ++replicate) {
        const auto method = drawn(polysketch(degree, r), 3, replicate);
        const Tensors state = method->state();
        const auto K = kernel(*method, queries, keys);
        for (Index i = 0; i < 2; ++i) {
          const auto of_q = sketch(state, queries.row(i), degree, r), of_k = sketch(state, keys.row(i), degree, r);
          const double S = dot(of_q, of_k), size = dot(of_q, of_q) * dot(of_k, of_k);
          negative |= S < -0.01;
          CAPTURE(degree, r, replicate, i);
          CHECK(std::abs(K[static_cast<size_t>(i)] - S * S) <= 1e-13 * size);
        }
      }
  CHECK(negative);
}

TEST_CASE("no PolySketch weight is below 0 by more than rounding", "[methods]") {
  const TestHead problem = gaussian_problem({.nq = 60, .nk = 70, .d = 6, .dv = 3}, 1.5);
  for (const Index degree : {4, 8})
    for (const Index r : {1, 16}) {
      const auto method = drawn(polysketch(degree, r), 6, 0);
      Matrix<double> K(60, 70);
      std::vector<double> of_rows(60), of_columns(70);
      Context context;
      method->kernel()->kernel(problem.head.view(), context, K, of_rows, of_columns);
      const auto norms = [&](const Matrix<double>& X) { return kernel(*method, X, X); };
      const auto of_q = norms(problem.head.Q), of_k = norms(problem.head.K);
      double least = 0;
      for (Index i = 0; i < 60; ++i)
        for (Index j = 0; j < 70; ++j) {
          const auto row = static_cast<size_t>(i), column = static_cast<size_t>(j);
          const double weight = K(i, j) * std::exp(of_rows[row] + of_columns[column]);
          least = std::min(least, weight / std::sqrt(of_q[row] * of_k[column]));
        }
      CAPTURE(degree, r);
      CHECK(least > -1e-14);
    }
  // A sketch of the same power that is not a square has weights far below 0.
  const auto tensor = drawn({"methods", "performer:features=tensor-sketch,series=power,degree=4,m=16"}, 6, 0);
  const auto K = kernel(*tensor, problem.head.Q, problem.head.K.topRows(60));
  CHECK(*std::min_element(K.begin(), K.end()) < -0.1);
}

TEST_CASE("PolySketch in one dimension, without length and at large norms", "[methods]") {
  // d = 1: M(x) = x^2 r^-1/2 g o h, so that a weight is (q k)^4 times a number of the draw.
  const auto one = drawn(polysketch(4, 5), 1, 0);
  const Matrix<double> x{{0.5}, {2}, {0}, {-3}}, y{{0.4}, {-1}, {2}, {1.5}};
  const auto K = kernel(*one, x, y);
  const double factor =
      dot(sketch(one->state(), Matrix<double>{{1}}, 4, 5), sketch(one->state(), Matrix<double>{{1}}, 4, 5));
  for (size_t i = 0; i < 4; ++i) {
    const double qk = x(static_cast<Index>(i), 0) * y(static_cast<Index>(i), 0);
    CHECK(K[i] == Approx(factor * factor * std::pow(qk, 4)).epsilon(1e-13));
  }
  // A query of zeros has no weight anywhere; a key of zeros gets none.
  TestHead problem = gaussian_problem({.nq = 5, .nk = 6, .d = 4, .dv = 2}, 1);
  problem.head.Q.row(2).setZero();
  problem.head.K.row(4).setZero();
  TestHead without = problem;
  without.head.V.row(4).setConstant(1e6);
  for (const bool causal : {false, true}) {
    const Mask mask{.causal = causal, .offset = 1};
    Shape shape = problem.shape;
    shape.mask = mask;
    const auto method = draw_method<double>(polysketch(4, 8), shape, problem);
    const Matrix<double> out = attend(*method, problem.head, mask);
    CHECK(out.allFinite());
    CHECK(out.row(2).norm() == 0);
    CHECK((attend(*method, without.head, mask) - out).norm() == 0);
  }
  for (const Index degree : {4, 8}) {
    TestHead large = gaussian_problem({.nq = 20, .nk = 20, .d = 6, .dv = 4}, 1);
    for (Matrix<double>* X : {&large.head.Q, &large.head.K})
      for (Index i = 0; i < 20; ++i) X->row(i) *= 1000 / X->row(i).norm();
    large.head.K.bottomRows(1) /= 1000;
    const auto method = draw_method<float>(polysketch(degree, 16), large.shape, large);
    CHECK(attend(*method, large.head.cast<float>(), {}).allFinite());
  }
}

TEST_CASE("PolySketch refuses a state that lacks a tensor", "[methods]") {
  const Tensors leaves{{"leaves", Matrix<double>::Ones(12, 3)}}, narrow{{"leaves", Matrix<double>::Ones(6, 2)}};
  CHECK_THROWS_WITH(drawn(polysketch(8, 3), 3, 0, 1, &leaves), ContainsSubstring("'inner' one is missing; give both"));
  CHECK_THROWS_WITH(drawn(polysketch(4, 3), 3, 0, 1, &narrow), ContainsSubstring("expected 6 x 3"));
}

namespace {

// E (g.q)^n (g.k)^n for a normal g of two dimensions: binomials and the moments of one variate.
double product_moment(double q1, double q2, double k1, double k2, int n) {
  const auto binomial = [](int a, int b) {
    return std::round(std::exp(std::lgamma(a + 1) - std::lgamma(b + 1) - std::lgamma(a - b + 1)));
  };
  const auto normal = [](int power) {
    double product = power % 2 == 0 ? 1 : 0;
    for (int odd = power - 1; odd > 1; odd -= 2) product *= odd;
    return product;
  };
  double sum = 0;
  for (int a = 0; a <= n; ++a)
    for (int b = 0; b <= n; ++b)
      sum += binomial(n, a) * binomial(n, b) * std::pow(q1, a) * std::pow(q2, n - a) * std::pow(k1, b) *
             std::pow(k2, n - b) * normal(a + b) * normal(2 * n - a - b);
  return sum;
}

}  // namespace

TEST_CASE("closed forms of PolySketch are moments of normal variates, and known numbers in one dimension",
          "[methods]") {
  const std::vector<double> q{0.9, -0.4}, k{0.5, 0.7}, unit{1};
  const Pair of_two = pair_of(q, k), of_one = pair_of(unit, unit);
  // r = 1: the weight is the fourth power of (g.q)(g.k), times that of an independent h.
  const KernelTheory single = theory(polysketch(4, 1), 2);
  const double second = product_moment(q[0], q[1], k[0], k[1], 2), fourth = product_moment(q[0], q[1], k[0], k[1], 4);
  CHECK(single.mean(of_two) == Approx(second * second).epsilon(1e-13));
  CHECK(single.variance(of_two) == Approx(fourth * fourth - std::pow(second, 4)).epsilon(1e-13));
  // q = k = 1: summands g^2 h^2 of moments 1, 9, 225, 11025. Of the mean of two, E S^2 = 5 and E S^4 = 1521.
  CHECK(theory(polysketch(4, 1), 1).mean(of_one) == 9);
  CHECK(theory(polysketch(4, 1), 1).variance(of_one) == 11025 - 81);
  CHECK(theory(polysketch(4, 2), 1).mean(of_one) == 5);
  CHECK(theory(polysketch(4, 2), 1).variance(of_one) == 1521 - 25);
  // Degree 8, r = 1: the factors g M(q) and h M'(q) of E (..)^4 = 3 E M^4 = 27 each.
  CHECK(theory(polysketch(8, 1), 1).mean(of_one) == 27 * 27);
  CHECK_FALSE(theory(polysketch(8, 1), 1).variance);
  // Many entries: (q.k)^degree, from above.
  for (const Index degree : {4, 8}) {
    const double excess = theory(polysketch(degree, 1 << 10), 1).mean(of_one) - 1;
    CHECK(excess > 0.005);
    CHECK(excess < 0.03);
  }
}

namespace {

struct Setting {
  Index degree, r, draws;
};
// Standard errors of at most 1 % for means, and of 2 to 4 % for mean squared errors at r = 64.
constexpr Setting settings[] = {{4, 8, 20'000}, {4, 64, 5000}, {8, 64, 5000}};

struct Measured {
  std::vector<Moments> weight{2}, squared_error{2}, inner{2};
};

Measured measure(const Setting& setting, std::uint64_t seed) {
  const Params params = polysketch(setting.degree, setting.r);
  const KernelTheory known = theory(params, 3);
  Measured measured;
  for (Index replicate = 0; replicate < setting.draws; ++replicate) {
    const auto method = drawn(params, 3, replicate, seed);
    const Tensors state = method->state();
    const auto K = kernel(*method, queries, keys);
    for (size_t i = 0; i < 2; ++i) {
      const auto row = static_cast<Index>(i);
      measured.weight[i].add(K[i]);
      measured.squared_error[i].add(std::pow(K[i] - known.mean(pair(row)), 2));
      measured.inner[i].add(dot(sketch(state, queries.row(row), setting.degree, setting.r),
                                sketch(state, keys.row(row), setting.degree, setting.r)));
    }
  }
  return measured;
}

}  // namespace

TEST_CASE("PolySketch's sketch is unbiased for half the power, and its square for the closed form", "[statistics]") {
  Scores family, powers, wrong_variance;
  for (const auto seed : base_seeds)
    for (const Setting& setting : settings) {
      const Measured measured = measure(setting, seed);
      const KernelTheory known = theory(polysketch(setting.degree, setting.r), 3);
      const double half = static_cast<double>(setting.degree) / 2;
      for (size_t i = 0; i < 2; ++i) {
        const Pair p = pair(static_cast<Index>(i));
        const std::string at = "degree " + std::to_string(setting.degree) + ", r = " + std::to_string(setting.r) +
                               ", pair " + std::to_string(i);
        family.push_back({at + ", sketch", score(measured.inner[i], std::pow(p.qk, half))});
        family.push_back({at + ", mean", score(measured.weight[i], known.mean(p))});
        powers.push_back({at, score(measured.weight[i], std::pow(p.qk, 2 * half))});
        if (setting.degree > 4 || setting.r < 64) continue;
        family.push_back({at + ", squared error", score(measured.squared_error[i], known.variance(p))});
        wrong_variance.push_back({at, score(measured.squared_error[i], 0.7 * known.variance(p))});
      }
    }
  check_family(family);
  for (const Score& one : powers) check_found("a square without the sketch's variance", {one}, threshold(family));
  for (const Score& one : wrong_variance) check_found("a variance 30 % off", {one}, threshold(family));
}

}  // namespace attnbench::polysketch_test
