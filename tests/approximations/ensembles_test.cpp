// Moment-matched, Gauss-Hermite and Fastfood projection vectors, each against its formula written out and against the
// law that it declares (methods.md B9 to B11, J63 to J65).
//
// Each family of scores has an error rate of 1e-3 over three base seeds together; the effects that a test must find are
// planted.
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>

#include "approximations/linear/projections/fastfood.hpp"
#include "approximations/linear/projections/hadamard.hpp"
#include "harness/core/feature_map.hpp"
#include "harness/theory/normal_rows.hpp"
#include "harness/theory/special_functions.hpp"
#include "tests/scores.hpp"

namespace attnbench::ensembles_test {

namespace {

Params performer(const std::string& projection, Index m) {
  return {"methods", "performer:projection=" + projection + ",m=" + std::to_string(m)};
}

Matrix<double> rows(const std::string& projection, Index m, Index d, Index replicate = 0, std::uint64_t seed = 1) {
  const Params params = performer(projection, m);
  return draw_projection({.shape = {.nq = 1, .nk = 1, .d = d, .dv = 1},
                          .params = params,
                          .streams = Streams(seed),
                          .replicate = replicate},
                         m);
}

EnsembleLaw law_of(const std::string& projection, Index m, Index d) {
  const Params params = performer(projection, m);
  return find<ProjectionEntry>(params.text("projection")).law(params, d);
}

std::string refusal(const std::string& projection, Index m, Index d) {
  try {
    rows(projection, m, d);
  } catch (const Skip& skip) {
    return skip.what();
  }
  return "";
}

double largest_entry(const Matrix<double>& X) { return X.cwiseAbs().maxCoeff(); }

// methods.md B9 as loops: the rows of G less their mean, times the inverse of the transposed Cholesky factor of their
// covariance, whose divisor is m.
Matrix<double> whitened(const Matrix<double>& G) {
  const Index m = G.rows(), d = G.cols();
  Matrix<double> C = G, L = Matrix<double>::Zero(d, d);
  for (Index l = 0; l < d; ++l) {
    double mean = 0;
    for (Index i = 0; i < m; ++i) mean += G(i, l) / static_cast<double>(m);
    for (Index i = 0; i < m; ++i) C(i, l) -= mean;
  }
  for (Index a = 0; a < d; ++a)
    for (Index b = 0; b <= a; ++b) {
      double sum = 0;
      for (Index i = 0; i < m; ++i) sum += C(i, a) * C(i, b) / static_cast<double>(m);
      for (Index l = 0; l < b; ++l) sum -= L(a, l) * L(b, l);
      L(a, b) = a == b ? std::sqrt(sum) : sum / L(b, b);
    }
  for (Index i = 0; i < m; ++i)  // solves L w = c
    for (Index a = 0; a < d; ++a) {
      for (Index l = 0; l < a; ++l) C(i, a) -= L(a, l) * C(i, l);
      C(i, a) /= L(a, a);
    }
  return C;
}

}  // namespace

TEST_CASE("moment-matched rows are iid rows, whitened by the Cholesky factor of their own covariance", "[methods]") {
  for (const auto& [m, d] : {std::pair<Index, Index>{3, 1}, {6, 2}, {20, 4}, {50, 16}, {260, 64}}) {
    CAPTURE(m, d);
    const Matrix<double> W = rows("moment-matched", m, d), G = rows("iid", m, d);
    const double count = static_cast<double>(m);
    const Matrix<double> covariance = W.transpose() * W / count, I = Matrix<double>::Identity(d, d);
    CHECK(largest_entry(W.colwise().mean()) < 1e-13);
    CHECK(largest_entry(covariance - I) < 1e-12);
    CHECK(largest_entry(W - whitened(G)) < 1e-12);
    // Rows that nothing was done to, and a covariance with the divisor m - 1.
    CHECK(largest_entry(G.transpose() * G / count - I) > 0.02);
    CHECK(largest_entry(std::sqrt((count - 1) / count) * W - whitened(G)) > 1e-3);
  }
}

TEST_CASE("d + 1 moment-matched rows are the corners of a simplex of norm sqrt(d), and d rows are refused",
          "[methods]") {
  for (const Index d : {1, 3, 16, 48}) {
    const Matrix<double> W = rows("moment-matched", d + 1, d);
    const Matrix<double> gram = static_cast<double>(d + 1) * Matrix<double>::Identity(d + 1, d + 1).array() - 1;
    CAPTURE(d);
    CHECK(largest_entry(W * W.transpose() - gram) < 1e-11);
    if (d > 1) CHECK(largest_entry(rows("moment-matched", d + 1, d, 1) - W) > 0.01);
    for (const Index m : {Index{1}, d}) {
      const std::string reason = refusal("moment-matched", m, d);
      CHECK(reason.find("m = " + std::to_string(m)) != std::string::npos);
      CHECK(reason.find("use m=" + std::to_string(d + 1) + " or projection=iid") != std::string::npos);
    }
  }
}

TEST_CASE("the law of moment-matched rows is that of their number, and is normal for many", "[methods]") {
  for (const double t : {-3.0, 0.5, 2.0}) {
    CAPTURE(t);
    const EnsembleLaw at6 = law_of("moment-matched", 6, 4);
    CHECK(at6.moment(t, 0) == hypergeometric_0f1(2.5, 5 * t / 4));
    CHECK(at6.pair_moment(t, 1, 0) == hypergeometric_0f1(2.5, 2 * t));
    CHECK(at6.pair_moment(t, -1, 0) == hypergeometric_0f1(2.5, 3 * t));
    CHECK(at6.least_m == 5);
    // The bias is -|z|^4 / (4 D) to first order in 1 / D.
    const double D = 4e5, bias = law_of("moment-matched", static_cast<Index>(D) + 1, 4).moment(t, 0) / std::exp(t / 2);
    CHECK((bias - 1) * D == Approx(-t * t / 4).epsilon(1e-3));
    // m features of which each vector makes two.
    const Params paired("methods", "performer:features=trig,count=features,m=12,projection=moment-matched");
    CHECK(find<ProjectionEntry>("moment-matched").law(paired, 4).moment(t, 0) == at6.moment(t, 0));
  }
  const Params tilted("methods", "performer:features=oprf,a=-0.1,m=6,projection=moment-matched");
  CHECK_FALSE(find<ProjectionEntry>("moment-matched").law(tilted, 4).pair_moment);
}

namespace {

// Of m rows and a vector z, draw by draw: the means of exp(omega.z), of exp(-0.3 |omega|^2 + omega.z), and of
// exp((omega_1 +- omega_2).z) over all pairs of rows.
struct Means {
  Moments moment, tilted, sum, difference;
};

Means means_of(const std::string& projection, Index m, const Matrix<double>& z, std::uint64_t seed, Index draws) {
  Means means;
  for (Index replicate = 0; replicate < draws; ++replicate) {
    const Matrix<double> W = rows(projection, m, z.cols(), replicate, seed);
    const Eigen::ArrayXd up = (W * z.transpose()).array().exp(), down = up.inverse();
    const double pairs = static_cast<double>(m * (m - 1)), count = static_cast<double>(m);
    means.moment.add(up.mean());
    means.tilted.add((up * (-0.3 * W.rowwise().squaredNorm().array()).exp()).mean());
    means.sum.add((up.sum() * up.sum() - up.square().sum()) / pairs);
    means.difference.add((up.sum() * down.sum() - count) / pairs);
  }
  return means;
}

Matrix<double> random_direction(Index d, double length2) {
  Generator generator = Streams(1).stream("directions", d);
  return std::sqrt(length2) * standard_normal(generator, 1, d).rowwise().normalized();
}

}  // namespace

TEST_CASE("moment-matched rows, alone and in pairs, have the moments of their law", "[statistics]") {
  constexpr double t = 1.5;
  constexpr Index draws = 20'000;
  Scores family;
  struct Drawn {
    Index m, d;
    Means means;
  };
  std::vector<Drawn> all;
  for (const auto seed : base_seeds)
    for (const auto& [m, d] : {std::pair<Index, Index>{5, 4}, {6, 4}, {12, 4}, {9, 3}})
      all.push_back({m, d, means_of("moment-matched", m, random_direction(d, t), seed, draws)});
  const auto scored = [](const Drawn& one, const EnsembleLaw& law) {
    const std::string at = "m=" + std::to_string(one.m) + " d=" + std::to_string(one.d);
    return Scores{{at + " moment", score(one.means.moment, law.moment(t, 0))},
                  {at + " tilted", score(one.means.tilted, law.moment(t, -0.3))},
                  {at + " sum", score(one.means.sum, law.pair_moment(t, 1, 0))},
                  {at + " difference", score(one.means.difference, law.pair_moment(t, -1, 0))}};
  };
  for (const Drawn& one : all) append(family, scored(one, law_of("moment-matched", one.m, one.d)));
  check_family(family);
  for (const Drawn& one : all) {
    const Scores other = scored(one, law_of("moment-matched", one.m + 1, one.d));
    if (one.m < 7) check_found("the law of one row more", {other[0]}, threshold(family));  // 0.9 % and 0.6 %
    check_found("normal rows", {{"moment", score(one.means.moment, std::exp(t / 2))}}, threshold(family));
    check_found("independent rows", {{"sum", score(one.means.sum, std::exp(t))}}, threshold(family));
  }
}

namespace {

struct Node {
  double value, weight;
};

// In closed form.
std::vector<Node> nodes(Index points) {
  if (points == 2) return {{-1, 0.5}, {1, 0.5}};
  if (points == 3) return {{-std::sqrt(3), 1.0 / 6}, {0, 2.0 / 3}, {std::sqrt(3), 1.0 / 6}};
  const double far = std::sqrt(3 + std::sqrt(6)), near = std::sqrt(3 - std::sqrt(6));
  const double of_far = (3 - std::sqrt(6)) / 12, of_near = (3 + std::sqrt(6)) / 12;
  return {{-far, of_far}, {-near, of_near}, {near, of_near}, {far, of_far}};
}

std::string rule(Index points) { return "gauss-hermite,points=" + std::to_string(points); }

}  // namespace

TEST_CASE("Gauss-Hermite rows take the nodes of the rule as often as its weights say", "[methods]") {
  constexpr Index m = 4000, d = 5;
  const double count = static_cast<double>(m * d), limit = z_threshold(family_error_rate, 9);
  for (const Index points : {2, 3, 4}) {
    const Matrix<double> W = rows(rule(points), m, d);
    Index found = 0;
    for (const Node& node : nodes(points)) {
      const double times = static_cast<double>(((W.array() - node.value).abs() < 1e-14).count());
      found += static_cast<Index>(times);
      CAPTURE(points, node.value, times);
      CHECK(std::abs(times - count * node.weight) < limit * std::sqrt(count * node.weight * (1 - node.weight)));
    }
    CHECK(found == m * d);
  }
  CHECK(((rows(rule(5), 500, 3).array().abs()) < 1e-14).any());  // an odd rule has the node 0
}

TEST_CASE("the law of Gauss-Hermite rows is the product rule, which errs by its first missed power", "[methods]") {
  const std::vector<double> z{0.3, -1.1, 0.6};
  for (const Index points : {2, 3, 4})
    for (const double alpha : {0.0, -0.3, 0.2}) {
      double up = 1, cosine = 1;
      for (const double x : z) {
        double of_up = 0, of_cosine = 0;
        for (const Node& node : nodes(points)) {
          of_up += node.weight * std::exp(alpha * node.value * node.value + node.value * x);
          of_cosine += node.weight * std::exp(alpha * node.value * node.value) * std::cos(node.value * x);
        }
        up *= of_up;
        cosine *= of_cosine;
      }
      const EnsembleLaw law = law_of(rule(points), 8, 3);
      CAPTURE(points, alpha);
      CHECK(law.directed_moment(z, 1, alpha) == Approx(up).epsilon(1e-13));
      CHECK(law.directed_moment(z, -1, alpha) == Approx(cosine).epsilon(1e-13));
    }
  for (Index points = 2; points <= 6; ++points) {
    const double x = 0.4, p = static_cast<double>(points);
    const double missed = std::tgamma(p + 1) * std::pow(x, 2 * p) / std::tgamma(2 * p + 1);
    const double error = std::exp(x * x / 2) - law_of(rule(points), 8, 1).directed_moment({&x, 1}, 1, 0);
    CAPTURE(points, error, missed);
    CHECK(error == Approx(missed).epsilon(0.1));
  }
}

TEST_CASE("means of Gauss-Hermite rows are those of their rule along every direction, and of normal rows along none",
          "[statistics]") {
  constexpr double t = 4;
  Matrix<double> Z = Matrix<double>::Zero(2, 4);
  Z(0, 0) = 2;         // e_1, where the rule errs most
  Z.row(1).setOnes();  // along 1, of the same length
  Scores family, normal, along_the_other;
  for (const auto seed : base_seeds)
    for (const Index points : {2, 3}) {
      const EnsembleLaw law = law_of(rule(points), 16, 4);
      for (Index k = 0; k < 2; ++k) {
        const Means means = means_of(rule(points), 16, Z.row(k), seed, 20'000);
        const auto expected = [&](Index row, double alpha) {
          return law.directed_moment({Z.row(row).data(), 4}, 1, alpha);
        };
        const std::string at = "points=" + std::to_string(points) + " direction " + std::to_string(k);
        family.push_back({at, score(means.moment, expected(k, 0))});
        family.push_back({at + " tilted", score(means.tilted, expected(k, -0.3))});
        family.push_back({at + " pair", score(means.sum, expected(k, 0) * expected(k, 0))});  // independent rows
        // 49 % (points = 2) and 19 % below exp(|z|^2 / 2) along e_1, 23 % along 1; three points err by 2.5 % there.
        if (points == 2 || k == 0) normal.push_back({at, score(means.moment, std::exp(t / 2))});
        along_the_other.push_back({at, score(means.moment, expected(1 - k, 0))});
      }
    }
  check_family(family);
  for (const Score& one : normal) check_found("normal rows", {one}, threshold(family));
  for (const Score& one : along_the_other) check_found("another direction", {one}, threshold(family));
}

namespace {

FastfoodFactors drawn_factors(Generator& generator, Index D) {
  FastfoodFactors factors{Matrix<double>(D, 1), std::vector<Index>(static_cast<size_t>(D)),
                          standard_normal(generator, D, 1), chi(generator, D, D)};
  for (Index i = 0; i < D; ++i) factors.signs(i, 0) = generator() >> 63 ? 1 : -1;
  std::iota(factors.order.begin(), factors.order.end(), Index{0});
  for (size_t left = factors.order.size(); left > 1; --left)
    std::swap(factors.order[left - 1], factors.order[generator() % left]);
  return factors;
}

// methods.md B11, entry by entry: H_ij = (-1)^(number of bits that i and j share).
Matrix<double> written_out(const FastfoodFactors& f) {
  const Index D = f.signs.rows();
  const auto H = [](Index i, Index j) {
    return std::popcount(static_cast<std::uint64_t>(i) & static_cast<std::uint64_t>(j)) % 2 == 0 ? 1.0 : -1.0;
  };
  double length = 0;
  for (Index i = 0; i < D; ++i) length += f.scales(i, 0) * f.scales(i, 0);
  Matrix<double> W(D, D);
  for (Index i = 0; i < D; ++i)
    for (Index j = 0; j < D; ++j) {
      double sum = 0;
      for (Index l = 0; l < D; ++l)
        sum += H(i, l) * f.scales(l, 0) * H(f.order[static_cast<size_t>(l)], j) * f.signs(j, 0);
      W(i, j) = f.norms[static_cast<size_t>(i)] / std::sqrt(length) * sum / std::sqrt(static_cast<double>(D));
    }
  return W;
}

}  // namespace

TEST_CASE("a Fastfood block is the product of its factors, with rows of the given norms", "[methods]") {
  Generator generator = Streams(1).stream("factors");
  for (const Index D : {1, 2, 4, 8, 32}) {
    const FastfoodFactors factors = drawn_factors(generator, D);
    const Matrix<double> W = fastfood_block(factors);
    CAPTURE(D);
    CHECK(largest_entry(W - written_out(factors)) < 1e-12);
    for (Index i = 0; i < D; ++i)
      CHECK(W.row(i).norm() == Approx(factors.norms[static_cast<size_t>(i)]).epsilon(1e-13));
    if (D < 4) continue;
    FastfoodFactors unpermuted = factors;
    std::iota(unpermuted.order.begin(), unpermuted.order.end(), Index{0});
    CHECK(largest_entry(fastfood_block(unpermuted) - W) > 0.01);
  }
}

TEST_CASE("Fastfood rows are normal in padded dimensions too, and their cosines have the variance 2 / (D + 2)",
          "[statistics]") {
  Scores family;
  constexpr Index draws = 20'000;
  const auto cosines = [](Index D, std::uint64_t seed) {
    Moments squares;
    for (Index replicate = 0; replicate < draws / 4; ++replicate) {
      const Matrix<double> unit = rows("fastfood", D, D, replicate, seed).rowwise().normalized();
      const Matrix<double> all = unit * unit.transpose();
      squares.add((all.squaredNorm() - static_cast<double>(D)) / static_cast<double>(D * (D - 1)));
    }
    return squares;
  };
  for (const auto seed : base_seeds) {
    for (const Index d : {1, 3, 5, 8}) {
      Matrix<double> e1 = Matrix<double>::Zero(1, d);
      e1(0, 0) = -1;
      for (const Matrix<double>& z : {e1, random_direction(d, 1)}) {
        const Means means = means_of("fastfood", 10, z, seed, draws / 2);
        family.push_back({"d=" + std::to_string(d), score(means.moment, std::exp(0.5))});
        family.push_back({"d=" + std::to_string(d) + " tilted", score(means.tilted, normal_moment(d, 1, -0.3))});
      }
    }
    for (const Index D : {4, 8, 16}) {
      const double expected = 2 / static_cast<double>(D + 2);
      family.push_back({"cosines D=" + std::to_string(D), score(cosines(D, seed), expected)});
    }
  }
  check_family(family);

  // S without the norm of G's diagonal, rows of norm chi |G| / sqrt(D): 5 % above exp(|z|^2 / 2) at |z|^2 = 2, D = 8.
  for (const auto seed : base_seeds) {
    Moments means;
    Generator generator = Streams(seed).stream("planted");
    const Matrix<double> z = random_direction(8, 2);
    for (Index replicate = 0; replicate < draws; ++replicate) {
      FastfoodFactors factors = drawn_factors(generator, 8);
      for (double& norm : factors.norms) norm *= factors.scales.norm() / std::sqrt(8);
      means.add((fastfood_block(factors) * z.transpose()).array().exp().mean());
    }
    check_found("S not over |G|", {{"moment", score(means, std::exp(1))}}, threshold(family));
  }
}

}  // namespace attnbench::ensembles_test
