// Closed forms of projection ensembles and the estimators that they make: special functions against arbitrary
// precision, mean squared errors against draws, and which ensemble is better than which (methods.md A, B, J8, J9, J11,
// J15).
//
// Each family of scores has an error rate of 1e-3 over three base seeds together. |q + k|^2 <= 0.6 for means and 0.1
// for mean squared errors of positive features, whose tails allow no more (methods.md J).
#include <cmath>
#include <limits>

#include "harness/core/feature_map.hpp"
#include "harness/theory/normal_rows.hpp"
#include "harness/theory/oprf.hpp"
#include "harness/theory/special_functions.hpp"
#include "tests/scores.hpp"

namespace attnbench::ensemble_moments_test {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// A pair with |q + k|^2 = plus2, |q - k|^2 = minus2 and |q| = |k|.
Pair pair_of(Index d, double plus2, double minus2) {
  const double s = (plus2 + minus2) / 2;
  return {d, s / 2, s / 2, (plus2 - minus2) / 4};
}

Params performer(const std::string& features, const std::string& projection, Index m) {
  return {"methods", "performer:features=" + features + ",projection=" + projection + ",m=" + std::to_string(m)};
}

KernelTheory theory(const std::string& features, const std::string& projection, Index m, Index d) {
  const Shape shape{.nq = 1, .nk = 1, .d = d, .dv = 1};
  return find<MethodEntry>("performer").theory(performer(features, projection, m), shape, nullptr).value();
}

double variance(const std::string& features, const std::string& projection, Index m, const Pair& pair) {
  return theory(features, projection, m, pair.d).variance(pair);
}

}  // namespace

TEST_CASE("0F1 has the values of arbitrary precision arithmetic, and overflows to infinity", "[methods]") {
  struct Value {
    double b, x, value;  // mpmath 1.3 with 60 digits
  };
  for (const auto& [b, x, value] : {Value{0.5, -300, -0.99651615342348001},
                                    {0.5, 2, 8.4889672125599265},
                                    {1, -3, -0.37492595624331005},
                                    {1.5, 7, 18.769399228693842},
                                    {2, -9, -0.092227952709188536},
                                    {2, 1.19, 1.7254355440296483},
                                    {2, 128, 48931313.857584214},
                                    {4, -17, -0.024357758229844757},
                                    {8.5, -100, -6.8932956695059802e-5},
                                    {8.5, 2500, 2.056454272468545e+33},
                                    {32, -127, 0.014189363356097878},
                                    {32, -129, 0.013195519106820388},
                                    {32, 16, 1.6426067357395285},
                                    {32, 512, 716186.29491842866},
                                    {64, -2000, 1.8963450807533006e-18},
                                    {512, -3000, 0.0027577035240253468},
                                    {512, 30000, 1.5025391976118235e+24}}) {
    CAPTURE(b, x);
    CHECK(hypergeometric_0f1(b, x) == Approx(value).epsilon(1e-13).margin(0));
  }
  CHECK(hypergeometric_0f1(3, 0) == 1);
  for (const double x : {1e6, 1e300, infinity}) CHECK(hypergeometric_0f1(2, x) == infinity);
}

TEST_CASE("the normal quantile inverts the normal distribution, and is finite at 0 and 1", "[methods]") {
  for (const double u : {1e-15, 1e-3, 0.2, 0.5, 0.8})
    CHECK(std::erfc(-normal_quantile(u) / std::sqrt(2)) / 2 == Approx(u).epsilon(1e-14).margin(0));
  CHECK(normal_quantile(0) == Approx(-8.2095361516).epsilon(1e-10));
  CHECK(normal_quantile(1) == -normal_quantile(0));
}

namespace {

// methods.md B6 transcribed: sum_k (t/4)^k E[R^2k] / ((d/2)_k k!) with R^2 = R_1^2 + R_2^2 + 2 c R_1 R_2 multiplied
// out, E R^p = 2^(p/2) Gamma((d+p)/2) / Gamma(d/2). For small |t|: the powers of c alternate.
double chi_pair_series(double d, double t, double c) {
  const auto log_gamma = [](double x) { return std::lgamma(static_cast<long double>(x)); };
  long double sum = 0, added = 1;
  for (int k = 0; std::abs(added) > 1e-18L * std::abs(sum); ++k) {
    added = 0;
    for (int l = 0; l <= k; ++l)
      for (int i = 0; i + l <= k; ++i) {
        const int j = k - l - i, p = 2 * i + l, r = 2 * j + l;
        const long double log_size = log_gamma(d / 2 + p / 2.0) + log_gamma(d / 2 + r / 2.0) - log_gamma(d / 2) -
                                     log_gamma(d / 2 + k) - log_gamma(i + 1) - log_gamma(j + 1) - log_gamma(l + 1);
        added += std::pow(2 * static_cast<long double>(c), l) * std::exp(log_size);  // k! of the multinomial cancels
      }
    added *= std::pow(static_cast<long double>(t) / 2, k);  // 2^((p+r)/2) = 2^k
    sum += added;
  }
  return static_cast<double>(sum);
}

}  // namespace

TEST_CASE("chi_pair_moment is the series of methods.md, and has the values of arbitrary precision", "[methods]") {
  for (const Index d : {2, 3, 4, 16, 65, 128})
    for (const double cosine : {-1 / static_cast<double>(d - 1), 1 / static_cast<double>(d - 1), 0.3, 0.0})
      for (const double t : {-3.0, -0.5, 0.2, 4.0}) {
        CAPTURE(d, cosine, t);
        CHECK(chi_pair_moment(d, t, cosine, 0) ==
              Approx(chi_pair_series(static_cast<double>(d), t, cosine)).epsilon(1e-12).margin(1e-14));
      }
  struct Value {
    Index d;
    double t;
    int sign;  // of the cosine 1/(d-1)
    double value;
  };
  for (const auto& [d, t, sign, value] : {Value{2, -6, 1, -0.023405944278551816},
                                          {2, 0.5, -1, 1.1168893397440098},
                                          {2, 200, -1, 2.6620193656182509e+41},
                                          {3, -6, 1, -0.012500970295594335},
                                          {3, 40, -1, 48404180.568900475},
                                          {4, -40, -1, 1.8105411475525524e-5},
                                          {4, 4, -1, 11.359217464507858},
                                          {4, 4, 1, 63.142832460210295},
                                          {5, 400, 1, 6.1601784103340565e+112},
                                          {16, -6, 1, -0.0005945598278520049},
                                          {16, 0.5, -1, 1.5870623626613682},
                                          {17, -6, -1, -0.0001441606266072395},
                                          {64, -40, 1, 1.9200221756262145e-18},
                                          {64, 6, -1, 292.57957194885059},
                                          {65, 200, 1, 1.9414524738155106e+61},
                                          {128, -40, -1, -5.0943001705585206e-22},
                                          {128, 6, -1, 339.54864970922557},
                                          {512, 40, 1, 65247576525586449.0}}) {
    CAPTURE(d, t, sign);
    CHECK(chi_pair_moment(d, t, sign / static_cast<double>(d - 1), 0) == Approx(value).epsilon(1e-12).margin(0));
  }
}

TEST_CASE("chi_pair_moment without quadrature: one vector twice, none, a tilt, and beyond double", "[methods]") {
  for (const Index d : {2, 3, 16, 128})
    for (const double cosine : {-1.0, -1 / static_cast<double>(d - 1), 0.0, 1.0}) {
      CHECK(chi_pair_moment(d, 0, cosine, 0) == Approx(1).epsilon(1e-14));
      const double alpha = -0.3, width = 1 - 2 * alpha;  // radii shorter by sqrt(width)
      CHECK(chi_pair_moment(d, 5, cosine, alpha) ==
            Approx(std::pow(width, -d) * chi_pair_moment(d, 5 / width, cosine, 0)).epsilon(1e-14));
      for (const double t : {3000.0, 1e6, infinity})
        if (cosine > -1) CHECK(chi_pair_moment(d, t, cosine, 0) == infinity);
    }
  // Equal directions: the radii add up, E 0F1(; 1/2; (R_1 + R_2)^2 t / 4) = E cosh((R_1 + R_2) sqrt(t)) at d = 1.
  const double t = 0.7, half = std::exp(t / 2), odd = std::erf(std::sqrt(t / 2));
  CHECK(chi_pair_moment(1, t, 1, 0) == Approx(half * half * (1 + odd * odd)).epsilon(1e-12));
  CHECK(chi_pair_moment(1, t, -1, 0) == Approx(half * half * (1 - odd * odd)).epsilon(1e-12));
}

namespace {

struct Setting {
  std::string features, projection;
  Index d, m;
  std::string name() const {
    return features + " " + projection + " d=" + std::to_string(d) + " m=" + std::to_string(m);
  }
};

// iid and orthogonal rows are in estimators_test. Full and partial blocks; closed forms of the other ensembles are 13 %
// to 2000 % off, and an estimated error has a relative standard error of 1.6 % or less.
std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const auto& [features, projection] : {std::pair{"positive", "simplex"},
                                             {"positive", "antithetic"},
                                             {"trig", "simplex"},
                                             {"hyperbolic", "simplex"},
                                             {"oprf,a=-0.0574", "simplex"}})
    for (const auto& [d, m] : {std::pair<Index, Index>{4, 4}, {4, 6}, {16, 16}, {16, 24}})
      all.push_back({features, projection, d, m});
  return all;
}

// Six pairs. Trig features see q - k and the others q + k; squared lengths are 1 for the light tails of trig and OPRF,
// otherwise 0.1 or less.
constexpr Index pairs = 6;
struct Pairs {
  explicit Pairs(const Setting& setting) {
    Generator generator = Streams(1).stream("pairs", setting.d);
    const double plus = setting.features.starts_with("oprf") ? 1 : std::sqrt(0.1),
                 minus = setting.features == "trig" ? 1 : std::sqrt(0.1);
    const Matrix<double> z = plus * standard_normal(generator, pairs, setting.d).rowwise().normalized(),
                         delta = minus * standard_normal(generator, pairs, setting.d).rowwise().normalized();
    Q = (z + delta) / 2;
    K = (z - delta) / 2;
  }
  Pair operator[](Index i) const {
    return {Q.cols(), Q.row(i).squaredNorm(), K.row(i).squaredNorm(), Q.row(i).dot(K.row(i))};
  }
  Matrix<double> Q, K;
};

// Mean over the pairs of the squared relative error, draw by draw.
Moments squared_errors(const Setting& setting, std::uint64_t seed) {
  const Params params = performer(setting.features, setting.projection, setting.m);
  const Pairs heads(setting);
  const Matrix<double> none(pairs, 0);
  Matrix<double> block(pairs, pairs);
  std::vector<double> rows(pairs), columns(pairs);
  Context context;
  Moments errors;
  const Index draws = setting.d == 4 ? 15'000 : 3000;
  for (Index replicate = 0; replicate < draws; ++replicate) {
    const auto method = make_approximation<double>({.shape = {.nq = 1, .nk = 1, .d = setting.d, .dv = 1},
                                                    .params = params,
                                                    .streams = Streams(seed),
                                                    .replicate = replicate});
    method->kernel()->kernel({heads.Q, heads.K, none}, context, block, rows, columns);
    double sum = 0;
    for (Index i = 0; i < pairs; ++i) {
      const double log_scale = rows[static_cast<size_t>(i)] + columns[static_cast<size_t>(i)];
      sum += std::pow(block(i, i) * std::exp(log_scale) / heads[i].softmax() - 1, 2);
    }
    errors.add(sum / pairs);
  }
  return errors;
}
double closed_form(const Setting& setting) {
  const Pairs heads(setting);
  double sum = 0;
  for (Index i = 0; i < pairs; ++i)
    sum += variance(setting.features, setting.projection, setting.m, heads[i]) / std::pow(heads[i].softmax(), 2);
  return sum / pairs;
}

}  // namespace

TEST_CASE("mean squared errors with every ensemble are the closed forms, and not another ensemble's", "[statistics]") {
  Scores family;
  const double limit = z_threshold(family_error_rate, static_cast<double>(std::size(base_seeds) * settings().size()));
  for (const Setting& setting : settings())
    for (const auto seed : base_seeds) {
      const Moments errors = squared_errors(setting, seed);
      family.push_back({setting.name(), score(errors, closed_form(setting))});
      for (const char* other : {"iid", "orthogonal"}) {
        Setting mistaken = setting;
        mistaken.projection = other;
        check_found(setting.name() + " with the closed form of " + other,
                    {{other, score(errors, closed_form(mistaken))}}, limit);
      }
    }
  check_family(family);
}

TEST_CASE("closed forms of simplex, hyperbolic and OPRF give the numbers that methods.md quotes", "[methods]") {
  // d = 4, |q + k|^2 = 0.545, |q - k|^2 = 0.393, to the rounding of the pair and of the number.
  const Pair pair = pair_of(4, 0.545, 0.393);
  CHECK(variance("positive", "simplex", 4, pair) == Approx(0.0680).margin(2e-4));
  CHECK(variance("positive", "simplex", 8, pair) == Approx(0.0340).margin(1e-4));
  CHECK(variance("hyperbolic", "orthogonal", 4, pair) == Approx(0.02363).margin(1e-4));
  CHECK(variance("hyperbolic", "iid", 4, pair) == Approx(0.0411).margin(2e-4));
  CHECK(variance("oprf,a=-0.0574", "orthogonal", 4, pair_of(4, 0.545, 0.393)) <
        variance("oprf,a=-0.0574", "iid", 4, pair));
  // Two hyperbolic summands of a block at |q + k|^2 = 4, in units of mu^2.
  const auto cross = [](const char* projection) {
    const EnsembleLaw law = find<ProjectionEntry>(projection).law(performer("hyperbolic", projection, 4), 4);
    return (law.pair_moment(4, 1, 0) + law.pair_moment(4, -1, 0)) / 2 * std::exp(-4);
  };
  CHECK(cross("simplex") == Approx(0.682).margin(5e-4));
  CHECK(cross("orthogonal") == Approx(0.496).margin(5e-4));
  const Pair at4 = pair_of(4, 4, 1);
  CHECK(variance("hyperbolic", "simplex", 4, at4) > variance("hyperbolic", "orthogonal", 4, at4));
}

TEST_CASE("an ensemble that prefers directions has the moments of its own law", "[methods]") {
  // Rows of N(0, diag(s)): E exp(omega.z) = exp(sum_l s_l z_l^2 / 2), and with a minus E cos(omega.z).
  const std::vector<double> s{2, 0.5, 1}, q{0.3, -0.2, 0.1}, k{0.2, 0.4, -0.3};
  const EnsembleLaw law{.directed_moment =
                            [&](std::span<const double> z, int sign, double) {
                              double sum = 0;
                              for (size_t l = 0; l < z.size(); ++l) sum += s[l] * z[l] * z[l];
                              return std::exp(sign * sum / 2);
                            },
                        .gaussian = false,
                        .dependent_pairs = [](Index) { return 0.0; }};
  const Pair pair = attnbench::pair_of(q, k);
  double plus = 0, minus = 0;
  for (size_t l = 0; l < s.size(); ++l) {
    plus += s[l] * (q[l] + k[l]) * (q[l] + k[l]);
    minus += s[l] * (q[l] - k[l]) * (q[l] - k[l]);
  }
  const double norms = pair.q2 + pair.k2;
  const auto theory = [&](const char* features, const EnsembleLaw& of) {
    return find<FeatureMapEntry>(features).theory(performer(features, "iid", 8), 3, of, nullptr).value();
  };
  CHECK(theory("positive", law).mean(pair) == Approx(std::exp((plus - norms) / 2)).epsilon(1e-14));
  CHECK(theory("positive", law).variance(pair) ==
        Approx((std::exp(2 * plus - norms) - std::exp(plus - norms)) / 8).epsilon(1e-12));
  CHECK(theory("trig", law).mean(pair) == Approx(std::exp((norms - minus) / 2)).epsilon(1e-14));
  CHECK(theory("trig", law).variance(pair) ==
        Approx(std::exp(norms) * ((1 + std::exp(-2 * minus)) / 2 - std::exp(-minus)) / 8).epsilon(1e-12));
  CHECK(theory("positive", law).target == "the mean under rows that are not normal, near exp(q.k)");
  // Of dependent rows whose joint law is not stated, and below the least m, the variance is not known.
  EnsembleLaw dependent = law;
  dependent.dependent_pairs = [](Index m) { return static_cast<double>(m); };
  CHECK_FALSE(theory("positive", dependent).variance);
  EnsembleLaw from_nine = law;
  from_nine.least_m = 9;
  CHECK_FALSE(theory("positive", from_nine).variance);
  from_nine.least_m = 8;
  CHECK(theory("positive", from_nine).variance);
}

TEST_CASE("antithetic pairs are hyperbolic for positive features and worth one for even functions", "[methods]") {
  for (const Index d : {1, 4, 16})
    for (const Index m : {2, 8, 64}) {
      const Pair pair = pair_of(d, 0.8, 0.6);
      CAPTURE(d, m);
      CHECK(variance("positive", "antithetic", m, pair) ==
            Approx(variance("hyperbolic", "iid", m / 2, pair)).epsilon(1e-12));
      for (const char* even : {"hyperbolic", "trig"})
        CHECK(variance(even, "antithetic", m, pair) == Approx(variance(even, "iid", m / 2, pair)).epsilon(1e-12));
      CHECK(variance("positive", "antithetic", 1, pair) == Approx(variance("positive", "iid", 1, pair)).epsilon(1e-14));
    }
}

TEST_CASE("simplex rows are never worse than orthogonal ones, nor those than iid ones", "[methods]") {
  for (const Index d : {1, 2, 3, 4, 8, 16, 17, 64, 128})
    for (const Index m : {Index{1}, (d + 1) / 2, d, d + 1, 3 * d + d / 2})
      for (const double plus2 : {1e-3, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 150.0}) {
        const Pair pair = pair_of(d, plus2, 0.4);
        CAPTURE(d, m, plus2);
        const auto ordered = [&](const std::string& features, const char* better, const char* worse) {
          const double a = variance(features, better, m, pair), b = variance(features, worse, m, pair);
          // Differences of second moments, known to a rounding of the square of the mean a term.
          CHECK(a <= b + 1e-14 * std::exp(2 * pair.qk) * (1 + plus2) + 1e-12 * b);
        };
        ordered("positive", "simplex", "orthogonal");
        ordered("positive", "orthogonal", "iid");
        ordered("hyperbolic", "orthogonal", "iid");
        for (const char* a : {"-0.5", "-0.0574", "0", "0.1"}) ordered(std::string("oprf,a=") + a, "orthogonal", "iid");
        if (m > d) continue;
        const double orthogonal = variance("positive", "orthogonal", m, pair), bound = performer_bound(pair, m);
        CHECK(orthogonal <= bound + 1e-14 * std::exp(2 * pair.qk) * (1 + plus2) + 1e-12 * bound);
      }
  // The reverse order, and the theorem for iid rows, are found by the same inequalities.
  const Pair pair = pair_of(4, 0.5, 0.4);
  CHECK(variance("positive", "orthogonal", 4, pair) > 1.1 * variance("positive", "simplex", 4, pair));
  CHECK(variance("positive", "iid", 4, pair) > 1.01 * performer_bound(pair, 4));
}

TEST_CASE("fixed norms estimate a kernel below exp(q.k), by the closed form's bias", "[methods]") {
  const auto log_bias = [](Index d, double plus2) {
    const Pair pair = pair_of(d, plus2, 1);
    const KernelTheory known = theory("positive", "orthogonal-fixed-norm", 8, d);
    CHECK(known.exact);
    return std::log(known.mean(pair)) - pair.qk;
  };
  CHECK(log_bias(64, 1) == Approx(-0.0037).margin(5e-5));
  CHECK(log_bias(64, 8) == Approx(-0.21).margin(5e-3));
  CHECK(log_bias(64, 32) == Approx(-2.52).margin(5e-3));
  CHECK(log_bias(4, 1) == Approx(-0.036).margin(5e-4));
  CHECK(log_bias(4, 8) == Approx(-1.24).margin(5e-3));
  CHECK(log_bias(4, 32) == Approx(-8.6).margin(5e-2));
  for (const Index d : {1, 2, 3, 4, 16, 64, 128})
    for (double plus2 = 0.01; plus2 < 200; plus2 *= 1.7) {
      CAPTURE(d, plus2);
      CHECK(log_bias(d, plus2) < 0);
    }
}

TEST_CASE("draws of fixed norms have the mean and error of the Bessel kernel, not of exp(q.k)", "[statistics]") {
  // |q + k|^2 = 1: the mean is 3.5 % below exp(q.k) at d = 4, 17 standard errors of 40 000 draws, and 1.3 % at d = 16,
  // seven of 20 000.
  Scores family, softmax;
  for (const auto seed : base_seeds)
    for (const auto& [d, draws] : {std::pair<Index, Index>{4, 40'000}, {16, 20'000}}) {
      const Params params = performer("positive", "orthogonal-fixed-norm", d);
      const Pair pair = pair_of(d, 1, 0.4);
      const KernelTheory known = theory("positive", "orthogonal-fixed-norm", d, d);
      const double mean = known.mean(pair), norm = std::exp(-(pair.q2 + pair.k2) / 2);
      Moments estimates, errors;
      for (Index replicate = 0; replicate < draws; ++replicate) {
        const Matrix<double> W = draw_projection({.shape = {.nq = 1, .nk = 1, .d = d, .dv = 1},
                                                  .params = params,
                                                  .streams = Streams(seed),
                                                  .replicate = replicate},
                                                 d);
        const double estimate = norm * W.col(0).array().exp().mean();
        estimates.add(estimate);
        errors.add(std::pow(estimate - mean, 2));
      }
      const std::string name = "d=" + std::to_string(d);
      family.push_back({name + " mean", score(estimates, mean)});
      family.push_back({name + " MSE", score(errors, known.variance(pair))});
      softmax.push_back({name, score(estimates, pair.softmax())});
    }
  check_family(family);
  for (const Score& one : softmax) check_found("exp(q.k) for the mean", {one}, threshold(family));
}

}  // namespace attnbench::ensemble_moments_test
