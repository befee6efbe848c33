// Projection ensembles, over everything that is registered: sizes, geometry, and one by one the laws that their rows
// declare (methods.md B, J3, J12 to J16).
//
// Each family of scores has an error rate of 1e-3 over three base seeds together; draw counts come from the least
// effect that is to be found, which is stated beside them and planted.
#include <algorithm>
#include <boost/math/special_functions/prime.hpp>
#include <boost/random/sobol.hpp>
#include <cmath>
#include <functional>
#include <set>

#include "approximations/linear/projections/hadamard.hpp"
#include "harness/core/projection.hpp"
#include "harness/theory/special_functions.hpp"
#include "tests/scores.hpp"

namespace attnbench::projections_test {

namespace {

Params performer(const std::string& projection) { return {"methods", "performer:projection=" + projection}; }

Draw draw_of(const Params& params, std::uint64_t seed, Index replicate, Index d) {
  return {
      .shape = {.nq = 1, .nk = 1, .d = d, .dv = 1}, .params = params, .streams = Streams(seed), .replicate = replicate};
}

using DrawRows = std::function<Matrix<double>(std::uint64_t seed, Index replicate, Index m, Index d)>;

// projection: a name, and parameters of its own behind commas.
DrawRows registered(const std::string& projection) {
  return [params = performer(projection)](std::uint64_t seed, Index replicate, Index m, Index d) {
    return draw_projection(draw_of(params, seed, replicate, d), m);
  };
}

// Of m rows.
EnsembleLaw law_of(const std::string& projection, Index d, Index m = 256) {
  const Params params = performer(projection).with("m", std::to_string(m));
  return find<ProjectionEntry>(params.text("projection")).law(params, d);
}

std::vector<std::string> caveats(const std::string& spec, Index m, Index d) {
  const Params params("methods", spec);
  return find<ProjectionEntry>(params.text("projection")).caveats(params, m, d);
}

}  // namespace

TEST_CASE("every ensemble is finite, deterministic and, if its law says so, nested in m at every size", "[methods]") {
  std::set<std::string> not_nested;
  for (const auto& name : catalogue("projections").names())
    for (const Index d : {1, 2, 3, 16, 48}) {
      const DrawRows rows = registered(name);
      const Matrix<double> all = rows(1, 7, 128, d);
      CAPTURE(name, d);
      CHECK(all.allFinite());
      CHECK(rows(1, 7, 128, d) == all);
      if (!law_of(name, d).nested) {
        not_nested.insert(name);
        CHECK(rows(1, 7, 127, d) != all.topRows(127));
        continue;
      }
      for (const Index m : {1, 2, 5, 64, 127}) {
        CAPTURE(m);
        CHECK(rows(1, 7, m, d) == all.topRows(m));
      }
    }
  CHECK(not_nested == std::set<std::string>{"moment-matched"});
}

namespace {

struct Misfit {
  double cosine = 0, norm = 0;  // the largest departures within blocks
};

Misfit misfit(const Matrix<double>& W, Index block, double cosine, double norm) {
  Misfit worst;
  const Matrix<double> unit = W.rowwise().normalized(), cosines = unit * unit.transpose();
  for (Index i = 0; i < W.rows(); ++i) {
    worst.norm = std::max(worst.norm, std::abs(W.row(i).norm() - norm));
    for (Index j = i / block * block; j < i; ++j)
      worst.cosine = std::max(worst.cosine, std::abs(cosines(i, j) - cosine));
  }
  return worst;
}

}  // namespace

TEST_CASE("rows of a block have the angles and norms that their law declares", "[methods]") {
  std::set<std::string> with_angles, with_norms;
  for (const auto& name : catalogue("projections").names())
    for (const Index d : {1, 2, 3, 4, 16, 48, 64}) {
      const EnsembleLaw law = law_of(name, d);
      if (law.block == 0) continue;
      const Matrix<double> W = registered(name)(1, 0, 2 * law.block + (law.block + 1) / 2, d);
      const Misfit worst = misfit(W, law.block, law.cosine.value_or(0), law.norm.value_or(0));
      CAPTURE(name, d);
      if (law.cosine) {
        CHECK(worst.cosine <= 1e-12);
        with_angles.insert(name);
      }
      if (law.norm) {
        CHECK(worst.norm <= 1e-12);
        with_norms.insert(name);
      }
    }
  CHECK(with_angles == std::set<std::string>{"hadamard", "orthogonal", "orthogonal-fixed-norm", "simplex"});
  CHECK(with_norms == std::set<std::string>{"hadamard", "orthogonal-fixed-norm"});
  CHECK(law_of("simplex", 16).cosine == -1.0 / 15);
  CHECK(law_of("hadamard", 48).block == 0);  // padded to 64: no angle is known in the first 48 coordinates

  // A tall block whose columns are orthogonal, not its rows; and rows of one norm too large.
  const Matrix<double> wrong_axis = haar_factor(registered("iid")(1, 0, 32, 32)).leftCols(16);
  CHECK(misfit(wrong_axis, 16, 0, 0).cosine > 0.1);
  CHECK(misfit(1.001 * registered("hadamard")(1, 0, 32, 16), 16, 0, 4).norm > 1e-3);
}

TEST_CASE("orthogonal-fixed-norm has the directions of orthogonal", "[methods]") {
  const Matrix<double> fixed = registered("orthogonal-fixed-norm")(1, 3, 20, 8);
  CHECK(fixed == registered("orthogonal,norms=sqrt-d")(1, 3, 20, 8));
  CHECK((fixed - std::sqrt(8) * registered("orthogonal")(1, 3, 20, 8).rowwise().normalized()).norm() <= 1e-13);
}

namespace {

// The mean of exp(omega_0.z) over all signs of `factors` diagonals, d = 4.
double exhaustive_mean(int factors, const Eigen::Vector4d& z) {
  double sum = 0;
  const int patterns = 1 << (4 * factors);
  for (int pattern = 0; pattern < patterns; ++pattern) {
    Matrix<double> signs(factors, 4);
    for (int bit = 0; bit < 4 * factors; ++bit) signs.data()[bit] = (pattern >> bit & 1) != 0 ? -1 : 1;
    sum += std::exp(hadamard_block(signs).row(0).dot(z));
  }
  return sum / patterns;
}

}  // namespace

TEST_CASE("Hadamard products have the exact means over all their signs", "[methods]") {
  const Eigen::Vector4d z(0.2, 0.3, 0.5, 0.9);
  CHECK(exhaustive_mean(1, z) == Approx(z.array().cosh().prod()).epsilon(1e-13));
  CHECK(exhaustive_mean(3, z) == Approx(1.724680).margin(5e-7));
  CHECK(law_of("hadamard", 4).moment(z.squaredNorm(), 0) == Approx(1.725436).margin(5e-7));
  CHECK(std::exp(z.squaredNorm() / 2) == Approx(1.813031).margin(5e-7));
  // Only one factor has that mean: two and three are found by the same predicate.
  CHECK(exhaustive_mean(2, z) != Approx(z.array().cosh().prod()).epsilon(1e-5));
  CHECK(exhaustive_mean(3, z) != Approx(z.array().cosh().prod()).epsilon(1e-5));
  for (const Index d : {1, 3, 4, 16})
    CHECK((registered("hadamard,factors=1")(1, 0, 40, d).array().abs() - 1).abs().maxCoeff() <= 1e-15);
}

TEST_CASE("the moments of padded Hadamard rows are those of a truncated uniform vector", "[methods]") {
  // |omega|^2 = 64 B, B ~ Beta(24, 8), by Simpson's rule: exp(alpha 64 B) 0F1(; 24; 64 B t / 4).
  const auto law = law_of("hadamard", 48);
  for (const auto& [t, alpha] : {std::pair{0.0, -0.1}, {2.0, -0.1}, {20.0, -0.3}, {9.0, 0.05}, {-3.0, -0.1}}) {
    constexpr int panels = 2000;
    double sum = 0, weights = 0;
    for (int i = 1; i < panels; ++i) {
      const double B = static_cast<double>(i) / panels,
                   weight = (i % 2 == 0 ? 2 : 4) * std::pow(B, 23) * std::pow(1 - B, 7);
      weights += weight;
      sum += weight * std::exp(alpha * 64 * B) * hypergeometric_0f1(24, 16 * B * t);
    }
    CAPTURE(t, alpha);
    CHECK(law.moment(t, alpha) == Approx(sum / weights).epsilon(1e-11));
  }
  CHECK(law.moment(2, 0) == hypergeometric_0f1(32, 32));
}

namespace {

// Mean of exp(omega.z) over m = d rows or more, |z| = 0.8, z along 1 and e_1 with each sign on its own: averaged over
// both, a missing sign fix would cancel. A draw of independent rows has a standard deviation of sqrt((e^0.64 - 1) / m),
// so that with the family's threshold of 4.9 a bias of 6 % is found up to d = 2 and of 5.5 % beyond, less than the
// missing sign fix's 5.8 % at d = 64; ensembles of smaller variance find less.
struct Size {
  Index d, m, draws;
};
constexpr Size sizes[] = {{1, 8, 2000}, {2, 8, 2000}, {4, 8, 4000}, {16, 16, 1200}, {64, 64, 300}};
constexpr double length2 = 0.64;

Matrix<double> signed_directions(Index d) {
  Matrix<double> Z = Matrix<double>::Zero(4, d);
  Z.row(0).setConstant(std::sqrt(length2 / static_cast<double>(d)));
  Z.row(1) = -Z.row(0);
  Z(2, 0) = std::sqrt(length2);
  Z(3, 0) = -Z(2, 0);
  return Z;
}

// Of each direction, over replicates.
std::vector<Moments> exponential_means(const DrawRows& rows, const Matrix<double>& Z, std::uint64_t seed, Index m,
                                       Index draws) {
  std::vector<Moments> means(static_cast<size_t>(Z.rows()));
  for (Index replicate = 0; replicate < draws; ++replicate) {
    const Matrix<double> exponents = rows(seed, replicate, m, Z.cols()) * Z.transpose();
    for (Index k = 0; k < Z.rows(); ++k) means[static_cast<size_t>(k)].add(exponents.col(k).array().exp().mean());
  }
  return means;
}

Scores direction_scores(const std::string& name, const std::vector<Moments>& means, double expected, Index d) {
  const char* directions[] = {"+1", "-1", "+e1", "-e1"};
  Scores scores;
  for (size_t k = 0; k < means.size(); ++k)
    scores.push_back({name + " d=" + std::to_string(d) + " " + directions[k], score(means[k], expected)});
  return scores;
}

std::vector<std::string> exact_ensembles() {
  std::vector<std::string> names;
  for (const auto& name : catalogue("projections").names())
    if (const EnsembleLaw law = law_of(name, 4); law.moment && law.exact) names.push_back(name);
  return names;
}

double direction_threshold() {
  return z_threshold(family_error_rate,
                     static_cast<double>(std::size(base_seeds) * std::size(sizes) * exact_ensembles().size() * 4));
}

}  // namespace

TEST_CASE("E exp(omega.z) is each ensemble's moment along 1 and e_1, with each sign", "[statistics]") {
  Scores family;
  for (const auto& name : exact_ensembles())
    for (const auto seed : base_seeds)
      for (const auto& [d, m, draws] : sizes) {
        const EnsembleLaw law = law_of(name, d, m);
        if (m < law.least_m) continue;
        if (law.gaussian) CHECK(law.moment(length2, 0) == Approx(std::exp(length2 / 2)).epsilon(1e-14));
        const auto means = exponential_means(registered(name), signed_directions(d), seed, m, draws);
        append(family, direction_scores(name, means, law.moment(length2, 0), d));
      }
  for (const char* name : {"antithetic", "fastfood", "halton", "iid", "orthogonal", "simplex", "sobol"})
    CHECK(law_of(name, 4).gaussian);
  check_family(family);
}

TEST_CASE("a missing sign fix is found in every dimension, norms of the same block along e_1", "[statistics]") {
  for (const auto seed : base_seeds)
    for (const auto& [d, m, draws] : sizes) {
      const double expected = std::exp(length2 / 2);
      const auto means = [&, d = d, m = m, draws = draws](const char* spec) {
        return exponential_means(registered(spec), signed_directions(d), seed, m, draws);
      };
      check_found("sign_fix=false", direction_scores("raw", means("orthogonal,sign_fix=false"), expected, d),
                  direction_threshold());
      if (d != 4) continue;
      const Scores same = direction_scores("same block", means("orthogonal,norms=same-block"), expected, d);
      check_found("norms=same-block", {same[2], same[3]}, direction_threshold());
      check_family({same[0], same[1]});  // not along 1
    }
}

TEST_CASE("the biases of published orthogonal ensembles are what their help says", "[statistics]") {
  struct Stated {
    const char* spec;
    Index d, draws;  // a seed
    int direction;   // of signed_directions
    double bias;     // rounded to a per cent
  };
  const double limit = z_threshold(family_error_rate, 4);
  for (const auto& [spec, d, draws, direction, bias] : {Stated{"orthogonal,sign_fix=false", 4, 25'000, 0, -0.15},
                                                        {"orthogonal,sign_fix=false", 16, 5000, 0, -0.12},
                                                        {"orthogonal,sign_fix=false", 64, 1500, 0, -0.06},
                                                        {"orthogonal,norms=same-block", 4, 25'000, 2, 0.09}}) {
    Moments all;
    for (const auto seed : base_seeds)
      all.merge(exponential_means(registered(spec), signed_directions(d).middleRows(direction, 1), seed, d, draws)[0]);
    const double measured = all.mean / std::exp(length2 / 2) - 1;
    const double standard_error = all.standard_error() / std::exp(length2 / 2);
    CAPTURE(spec, d, measured, standard_error);
    CHECK(std::abs(measured - bias) < 0.005 + limit * standard_error);
  }
}

TEST_CASE("positive features of antithetic rows are hyperbolic features of iid rows, number by number", "[methods]") {
  const auto kernel = [](const std::string& spec, Index replicate) {
    const Params params("methods", spec);
    const auto method = make_approximation<double>(draw_of(params, 1, replicate, 6));
    Generator generator = Streams(1).stream("heads", replicate);
    const Matrix<double> Q = standard_normal(generator, 5, 6), K = standard_normal(generator, 7, 6), V(7, 0);
    Matrix<double> block(5, 7);
    std::vector<double> rows(5), columns(7);
    Context context;
    method->kernel()->kernel({Q, K, V}, context, block, rows, columns);
    for (Index i = 0; i < 5; ++i)
      for (Index j = 0; j < 7; ++j)
        block(i, j) *= std::exp(rows[static_cast<size_t>(i)] + columns[static_cast<size_t>(j)]);
    return block;
  };
  for (const Index m : {1, 4, 33})
    for (Index replicate = 0; replicate < 5; ++replicate) {
      const std::string vectors = std::to_string(m), features = std::to_string(2 * m);
      const Matrix<double> hyperbolic = kernel("performer:features=hyperbolic,projection=iid,m=" + vectors, replicate);
      const auto departure = [&](const char* projection) {
        const Matrix<double> positive =
            kernel(std::string("performer:features=positive,projection=") + projection + ",m=" + features, replicate);
        return ((positive - hyperbolic).array() / hyperbolic.array()).abs().maxCoeff();
      };
      CAPTURE(m, replicate);
      CHECK(departure("antithetic") <= 1e-13);
      CHECK(departure("iid") > 1e-3);
    }
}

namespace {

double normal_cumulative(double x) { return std::erfc(-x / std::sqrt(2)) / 2; }

// How many boxes of 2^-a by 2^-b (the first two coordinates) or intervals of 1/m (any one) do not hold just one point.
Index unbalanced_intervals(const Matrix<double>& W) {
  const Index m = W.rows();
  const Matrix<double> U = W.unaryExpr(&normal_cumulative);
  const auto cell = [](double u, Index cells) { return static_cast<Index>(u * static_cast<double>(cells)); };
  Index wrong = 0;
  const auto count = [&](const std::function<Index(Index)>& box) {
    std::vector<int> points(static_cast<size_t>(m));
    for (Index i = 0; i < m; ++i) ++points[static_cast<size_t>(box(i))];
    wrong += std::count_if(points.begin(), points.end(), [](int n) { return n != 1; });
  };
  for (Index l = 0; l < W.cols(); ++l) count([&](Index i) { return cell(U(i, l), m); });
  for (Index a = 1; a < m && W.cols() > 1; a *= 2)
    count([&](Index i) { return cell(U(i, 0), a) * (m / a) + cell(U(i, 1), m / a); });
  return wrong;
}

}  // namespace

TEST_CASE("scrambled Sobol points fall one into each elementary interval, and stay finite", "[methods]") {
  for (const Index m : {1, 2, 64, 256})
    for (const Index d : {1, 2, 16}) {
      CAPTURE(m, d);
      CHECK(unbalanced_intervals(registered("sobol")(1, 0, m, d)) == 0);
    }
  CHECK(unbalanced_intervals(registered("iid")(1, 0, 256, 2)) > 256);
  CHECK(unbalanced_intervals(registered("halton")(1, 0, 256, 2)) > 256);
  for (const char* name : {"sobol", "halton"}) CHECK(registered(name)(1, 0, 4096, 64).allFinite());
}

namespace {

// The points without their randomisation: Sobol's after the origin, Halton's from the first.
Matrix<double> plain_points(const std::string& name, Index m, Index d) {
  boost::random::sobol sobol(static_cast<size_t>(d));
  Matrix<double> W(m, d);
  for (Index i = 0; i < m; ++i)
    for (Index l = 0; l < d; ++l) {
      double u = static_cast<double>(sobol() >> 11) * 0x1p-53;
      if (name == "halton") {
        u = 0;
        double unit = 1;
        const Index prime = boost::math::prime(static_cast<unsigned>(l));
        for (Index rest = i + 1; rest > 0; rest /= prime)
          u += (unit /= static_cast<double>(prime)) * static_cast<double>(rest % prime);
      }
      W(i, l) = normal_quantile(u);
    }
  return W;
}

}  // namespace

TEST_CASE("randomised quasi-Monte Carlo rows beat iid ones, and without randomisation they are biased",
          "[statistics]") {
  // d = 4, m = 256, |z|^2 = 0.545, relative to exp(|z|^2/2)^2: iid rows have (e^0.545 - 1) / 256.
  constexpr Index d = 4, m = 256, draws = 400;
  const double iid = std::expm1(0.545) / m;
  Scores biases;
  for (const auto& [name, gain] : {std::pair<std::string, double>{"sobol", 25}, {"halton", 5}}) {
    for (const auto seed : base_seeds) {
      Generator generator = Streams(seed).stream("directions");
      Matrix<double> Z = standard_normal(generator, 4, d).rowwise().normalized();
      Z *= std::sqrt(0.545);
      Z.row(3).setConstant(std::sqrt(0.545 / d));
      const auto squared_error = [&](const DrawRows& rows) {
        Moments errors;
        for (Index replicate = 0; replicate < draws; ++replicate) {
          const Matrix<double> exponents = rows(seed, replicate, m, d) * Z.transpose();
          errors.add(((exponents.array() - 0.545 / 2).exp().colwise().mean() - 1).square().mean());
        }
        return errors;
      };
      const Moments errors = squared_error(registered(name));
      CAPTURE(name, seed, iid, errors.mean, errors.standard_error());
      CHECK(errors.mean + 5 * errors.standard_error() < iid / gain);
      CHECK(std::abs(score(squared_error(registered("iid")), iid)) < z_threshold(family_error_rate, 6));
    }
    const DrawRows plain = [name = name](std::uint64_t, Index, Index rows, Index columns) {
      return plain_points(name, rows, columns);
    };
    const auto means = exponential_means(plain, signed_directions(d), 1, m, 2);
    const Scores scores = direction_scores("plain " + name, means, std::exp(length2 / 2), d);
    double worst = 0;
    for (const Moments& mean : means) {
      CHECK(mean.variance() == 0);
      worst = std::max(worst, std::abs(mean.mean / std::exp(length2 / 2) - 1));
    }
    CHECK(worst > 0.04);  // one standard deviation of 256 iid rows is 0.059
    check_found("plain " + name, scores, direction_threshold());
  }
}

TEST_CASE("ensembles say what a user should know, and refuse dimensions beyond their tables", "[methods]") {
  const auto mentions = [](const std::vector<std::string>& all, const std::string& text) {
    return std::any_of(all.begin(), all.end(), [&](const std::string& one) { return one.find(text) != one.npos; });
  };
  CHECK(mentions(caveats("performer:projection=hadamard", 64, 48), "d = 48 is padded to 64"));
  CHECK_FALSE(mentions(caveats("performer:projection=hadamard", 64, 64), "padded"));
  CHECK(mentions(caveats("performer:projection=sobol", 100, 64), "power of two"));
  CHECK(caveats("performer:projection=sobol", 128, 64).empty());
  CHECK(mentions(caveats("performer:projection=halton", 256, 64), "largest prime, 311"));
  CHECK(caveats("performer:projection=halton", 256, 16).empty());
  for (const char* features : {"hyperbolic", "trig"})
    for (const char* projection : {"simplex", "antithetic"}) {
      const std::string rest = std::string(",projection=") + projection;
      CHECK(mentions(caveats(std::string("performer:features=") + features + rest, 64, 16), features));
      CHECK(caveats("performer:features=positive" + rest, 64, 16).empty());
    }
  CHECK(registered("sobol")(1, 0, 2, 3667).allFinite());
  CHECK_THROWS_AS(registered("sobol")(1, 0, 2, 3668), Skip);
  CHECK_THROWS_AS(registered("halton")(1, 0, 2, 10'001), Skip);
}

}  // namespace attnbench::projections_test
