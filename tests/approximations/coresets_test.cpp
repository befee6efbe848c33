// WildCat and Thinformer where their answers are known: repeated keys, the certificate of the residual, weights that
// sum to the number of keys, unbiased coresets, and inputs at the edges. Forgotten weights and lost keys are planted.
// methods.md E.
#include <cmath>
#include <map>
#include <numeric>

#include "harness/claims/drawing.hpp"
#include "harness/linalg/factorisations.hpp"
#include "harness/linalg/pivoted_cholesky.hpp"
#include "harness/measures/attention_matrix.hpp"
#include "tests/cases.hpp"
#include "tests/misuse.hpp"
#include "tests/oracle/oracle.hpp"
#include "tests/scores.hpp"

namespace attnbench::coresets_test {

namespace {

constexpr double tolerance = 1e-12;
constexpr double seen = 1e-2;  // what a planted mistake moves outputs of size 1 by, at least

Matrix<double> out_of(const std::string& spec, const TestHead& problem, Mask mask = {}, const Tensors* state = nullptr,
                      Index replicate = 0) {
  return attend(*drawn(spec, problem, mask, state, replicate), problem.head, mask);
}

double distance(const Matrix<double>& a, const Matrix<double>& b) { return (a - b).cwiseAbs().maxCoeff(); }

TestHead gaussian(Index n = 60, Index d = 6, double scale = 0.8) {
  return gaussian_problem({.nq = n, .nk = n, .d = d, .dv = 4}, scale);
}

// Keys that take the first `values` values in turn.
TestHead repeated_keys(Index n, Index values) {
  TestHead problem = gaussian(n);
  for (Index j = values; j < n; ++j) problem.head.K.row(j) = problem.head.K.row(j % values).eval();
  return problem;
}

Matrix<double> transcribed(const std::string& spec, const TestHead& problem, Mask mask = {}) {
  const auto method = drawn(spec, problem, mask);
  return oracle::attention(Params("methods", spec), method->state(), problem.head, mask).out;
}

std::vector<double> normalisers_of(const Approximation<double>& method, const TestHead& problem) {
  std::vector<double> values(static_cast<size_t>(problem.shape.nq)), log_scale(values.size());
  Context context;
  REQUIRE(method.kernel());
  method.kernel()->normalisers(problem.head.view(), {}, context, values, log_scale);
  for (size_t i = 0; i < values.size(); ++i) values[i] *= std::exp(log_scale[i]);
  return values;
}

std::vector<double> uniforms(Index count) {
  std::vector<double> all;
  Generator generator = Streams(test_seed).stream("coresets test");
  for (Index t = 0; t < count; ++t) all.push_back(static_cast<double>(generator() >> 11) / 9007199254740992.0);
  return all;
}

// diag(G - G_.S G_SS^-1 G_S.), G_ij = exp(-|x_i - x_j|^2 / 2), by an inverse.
std::vector<double> direct_residual(const Matrix<double>& X, const std::vector<Index>& S) {
  const Index n = X.rows(), m = std::ssize(S);
  const auto g = [&](Index a, Index b) { return std::exp(-(X.row(a) - X.row(b)).squaredNorm() / 2); };
  Matrix<double> G(m, m), to_all(m, n);
  for (Index s = 0; s < m; ++s) {
    for (Index t = 0; t < m; ++t) G(s, t) = g(S[static_cast<size_t>(s)], S[static_cast<size_t>(t)]);
    for (Index j = 0; j < n; ++j) to_all(s, j) = g(S[static_cast<size_t>(s)], j);
  }
  const Matrix<double> weights = inverse(G) * to_all;
  std::vector<double> residual;
  for (Index j = 0; j < n; ++j) residual.push_back(1 - to_all.col(j).dot(weights.col(j)));
  return residual;
}

}  // namespace

// ---- WildCat

TEST_CASE("WildCat is exact for keys that take at most r values", "[methods]") {
  const TestHead problem = repeated_keys(60, 5);
  const Matrix<double> exact = out_of("softmax", problem);
  for (const std::string clip : {"true", "false"}) {
    for (const std::string r : {"5", "9", "59"})
      CHECK(distance(out_of("wildcat:r=" + r + ",clip=" + clip, problem), exact) < 1e2 * tolerance);
    CHECK(distance(out_of("wildcat:r=4,clip=" + clip, problem), exact) > seen);
  }
  const auto got = normalisers_of(*drawn("wildcat:r=5,clip=false", problem), problem);
  for (Index i = 0; i < 60; ++i) {
    const double want = (problem.head.Q.row(i) * problem.head.K.transpose()).array().exp().sum();
    CHECK(std::abs(got[static_cast<size_t>(i)] / want - 1) < 1e2 * tolerance);
  }
}

TEST_CASE("WildCat without the weights of its keys is another method", "[methods]") {
  // 5 values, the first of which 41 of 60 keys have.
  TestHead problem = repeated_keys(60, 5);
  for (Index j = 0; j < 45; ++j) problem.head.K.row(j) = problem.head.K.row(0).eval();
  const Matrix<double> exact = out_of("softmax", problem);
  CHECK(distance(out_of("wildcat:r=5", problem), exact) < 1e2 * tolerance);
  // Planted: the mean of each value's V, weighed as if one key had it.
  std::map<double, std::pair<Eigen::RowVectorXd, double>> sums;
  for (Index j = 0; j < 60; ++j) {
    auto& [sum, count] = sums.try_emplace(problem.head.K(j, 0), Eigen::RowVectorXd::Zero(4), 0.0).first->second;
    sum += problem.head.V.row(j);
    ++count;
  }
  Matrix<double> planted(60, 4);
  for (Index i = 0; i < 60; ++i) {
    Eigen::RowVectorXd sum = Eigen::RowVectorXd::Zero(4);
    double total = 0;
    for (Index j = 0; j < 60; ++j) {
      const auto found = sums.find(problem.head.K(j, 0));
      if (problem.head.K.col(0).head(j).cwiseEqual(found->first).any()) continue;
      const double weight = std::exp(problem.head.Q.row(i).dot(problem.head.K.row(j)));
      sum += weight * found->second.first / found->second.second;
      total += weight;
    }
    planted.row(i) = sum / total;
  }
  CHECK(distance(planted, exact) > seen);
}

TEST_CASE("the residual of a pivoted Cholesky is what is left of the kernel, and bounds the entries of WildCat",
          "[methods]") {
  const TestHead problem = gaussian(80, 3);
  const auto& [Q, K, V, extra] = problem.head;
  const Matrix<double> centred = K.rowwise() - K.colwise().mean();
  const double tau2 = 3.94582 * centred.rowwise().norm().maxCoeff() / Q.rowwise().norm().maxCoeff();
  const Matrix<double> X = centred / std::sqrt(tau2);
  for (const Index r : {1, 5, 20}) {
    const auto method = drawn("wildcat:clip=false,r=" + std::to_string(r), problem);
    const Matrix<double> u = method->state().at("uniforms");
    Context context;
    const auto found = pivoted_cholesky(context, X, {u.data(), static_cast<size_t>(u.size())});
    REQUIRE(std::ssize(found.pivots) == r);
    const auto direct = direct_residual(X, found.pivots);
    double running = 0, whole = 0;
    for (Index j = 0; j < 80; ++j) {
      const auto place = static_cast<size_t>(j);
      CHECK(std::abs(found.residual[place] - direct[place]) < 1e-9);
      CHECK(std::abs(found.squares[place] - X.row(j).squaredNorm()) < tolerance * (1 + found.squares[place]));
      running += found.residual[place] * std::exp(found.squares[place]);
      whole += direct[place] * std::exp(found.squares[place]);
    }
    CHECK(std::abs(running / whole - 1) < 1e-8);
    // Planted: the residual without the last pivot is that of another coreset.
    if (r > 1) {
      const auto fewer = direct_residual(X, {found.pivots.begin(), found.pivots.end() - 1});
      CHECK(fewer[static_cast<size_t>(found.pivots.back())] >
            found.residual[static_cast<size_t>(found.pivots.back())] + seen);
    }
    // |exp(q.k) - K'| <= exp(tau^2 |q|^2 / 2) residual^1/2, K' the weights that WildCat gives.
    Matrix<double> weights(80, 80);
    std::vector<double> log_rows(80), log_columns(80);
    method->kernel()->kernel(problem.head.view(), context, weights, log_rows, log_columns);
    double nearest = 0;
    for (Index i = 0; i < 80; ++i)
      for (Index j = 0; j < 80; ++j) {
        const auto place = static_cast<size_t>(j);
        const double scale =
            std::exp(-Q.row(i).dot(K.colwise().mean()) - tau2 * Q.row(i).squaredNorm() / 2 - found.squares[place] / 2);
        const double error = scale * std::abs(std::exp(Q.row(i).dot(K.row(j))) -
                                              weights(i, j) * std::exp(log_rows[static_cast<size_t>(i)]));
        CHECK(error <= std::sqrt(found.residual[place]) + 1e-9);
        nearest = std::max(nearest, error / std::sqrt(found.residual[place] + 1e-9));
      }
    CHECK(nearest > 0.1);  // the bound is not empty
  }
}

TEST_CASE("a pivot is chosen as often as its residual in the kernel says", "[methods]") {
  // One pivot with uniform numbers on a grid: key j is chosen within one grid point as often as exp(|x_j|^2) says.
  const Matrix<double> X = gaussian(12, 3).head.K;
  constexpr Index grid = 20000;
  const Eigen::VectorXd share = X.rowwise().squaredNorm().array().exp();
  std::vector<Index> times(12, 0), second(12, 0);
  Context context;
  for (Index a = 0; a < grid; ++a) {
    const std::vector<double> u{(static_cast<double>(a) + 0.5) / grid, 0.5};
    ++times[static_cast<size_t>(pivoted_cholesky(context, X, {u.data(), 1}).pivots[0])];
  }
  double planted = 0;
  for (Index j = 0; j < 12; ++j) {
    CHECK(std::abs(static_cast<double>(times[static_cast<size_t>(j)]) - grid * share[j] / share.sum()) <= 1 + 1e-6);
    planted = std::max(planted, std::abs(grid / 12.0 - grid * share[j] / share.sum()));
  }
  CHECK(planted > 100);  // planted: every key alike
  // The second pivot, after a first that is given: in proportion to the residual.
  const std::vector<double> first{0.5};
  const auto one = pivoted_cholesky(context, X, first);
  double total = 0;
  for (Index j = 0; j < 12; ++j) total += one.residual[static_cast<size_t>(j)] * share[j];
  for (Index a = 0; a < grid; ++a) {
    const std::vector<double> u{0.5, (static_cast<double>(a) + 0.5) / grid};
    ++second[static_cast<size_t>(pivoted_cholesky(context, X, u).pivots[1])];
  }
  for (Index j = 0; j < 12; ++j)
    CHECK(std::abs(static_cast<double>(second[static_cast<size_t>(j)]) -
                   grid * one.residual[static_cast<size_t>(j)] * share[j] / total) <= 1 + 1e-6);
}

TEST_CASE("equal and nearly equal rows never become pivots twice", "[methods]") {
  Matrix<double> X = gaussian(30, 3).head.K;
  for (Index j = 4; j < 30; ++j) X.row(j) = X.row(j % 4).eval();
  X.row(29).array() += 1e-9;  // a residual of 1e-18
  Context context;
  const auto found = pivoted_cholesky(context, X, uniforms(30));
  CHECK(found.pivots.size() == 4);
  for (const double left : found.residual) CHECK(left <= smallest_pivot);
  CHECK(pivoted_cholesky(context, Matrix<double>::Zero(5, 2), uniforms(5)).pivots.size() == 1);
  CHECK(pivoted_cholesky(context, X, {}).pivots.empty());
  // Rows whose exp(|x|^2) differ by more than a double holds are chosen from one after another.
  Matrix<double> far(3, 1);
  far << 50, 20, 1;
  CHECK(pivoted_cholesky(context, far, uniforms(3)).pivots == std::vector<Index>{0, 1, 2});
}

TEST_CASE("parts of the sequence have coresets of their own", "[methods]") {
  const TestHead problem = gaussian(61, 4);
  for (const std::string options : {"r=16,bins=4", "r=9,bins=2", "r=7,bins=7", "r=60,bins=13"})
    for (const Mask& mask : {Mask{}, Mask{.keys = 41}, Mask{.keys = 5}, Mask{.offset = 30, .keys = 41}}) {
      const std::string spec = "wildcat:" + options;
      INFO(spec << ", " << to_string(mask));
      const auto method = drawn(spec, problem, mask);
      const auto want = oracle::attention(Params("methods", spec), method->state(), problem.head, mask);
      CHECK(worst_error(attend(*method, problem.head, mask), want.out, want.condition, size_of(problem.head.V)) <
            tolerance);
    }
  CHECK(distance(out_of("wildcat:r=61,bins=13", problem), out_of("softmax", problem)) < tolerance);
  CHECK(distance(out_of("wildcat:r=16,bins=4", problem), out_of("wildcat:r=16", problem)) > seen);
  CHECK_THAT(misuse_of([&] { drawn("wildcat:r=4,bins=5", problem); }),
             ContainsSubstring("5 bins share 4 keys; expected at least one key for each bin"));
}

TEST_CASE("a vector added to all keys does not change WildCat", "[methods]") {
  TestHead problem = gaussian();
  const Matrix<double> before = out_of("wildcat:r=20", problem);
  problem.head.K.rowwise() += Eigen::RowVectorXd::LinSpaced(6, -1, 1);
  CHECK(distance(out_of("wildcat:r=20", problem), before) < 1e2 * tolerance);
}

TEST_CASE("padded keys and queries at padded positions do not move WildCat's temperature", "[methods]") {
  const TestHead whole = gaussian(40);
  TestHead padded = gaussian(60);
  for (auto* X : {&padded.head.Q, &padded.head.K, &padded.head.V}) X->setConstant(1e3);
  padded.head.Q.topRows(40) = whole.head.Q;
  padded.head.K.topRows(40) = whole.head.K;
  padded.head.V.topRows(40) = whole.head.V;
  const Tensors state = drawn("wildcat:r=12", whole)->state();
  const Matrix<double> want = out_of("wildcat:r=12", whole, {}, &state);
  CHECK(distance(out_of("wildcat:r=12", padded, {.keys = 40}, &state).topRows(40), want) < tolerance);
  // Planted: every query counts.
  CHECK(distance(out_of("wildcat:r=12", padded, {.offset = -20, .keys = 40}, &state).topRows(40), want) > 1e-6);
}

TEST_CASE("rows of WildCat with a negative denominator follow the formula, and are counted", "[methods]") {
  Index negative = 0, outside = 0;
  for (Index replicate = 0; replicate < 16; ++replicate) {
    const Index n = 60 + replicate;  // another head each
    const TestHead problem = gaussian_problem({.nq = n, .nk = n, .d = 1, .dv = 2}, 2);
    const auto method = drawn("wildcat:r=4,clip=false", problem, {}, nullptr, replicate);
    const auto sums = normalisers_of(*method, problem);
    const auto estimate = oracle::kernel(Params("methods", "wildcat:r=4,clip=false"), method->state(), problem.head);
    const Matrix<double> out = attend(*method, problem.head, {}),
                         clipped = out_of("wildcat:r=4", problem, {}, nullptr, replicate);
    REQUIRE(estimate);
    for (Index i = 0; i < n; ++i) {
      CHECK((sums[static_cast<size_t>(i)] <= 0) == (estimate->weight.row(i).sum() <= 0));
      negative += sums[static_cast<size_t>(i)] <= 0;
      CHECK(out.row(i).allFinite());
      for (Index l = 0; l < 2; ++l) {
        const double least = problem.head.V.col(l).minCoeff(), most = problem.head.V.col(l).maxCoeff();
        outside += out(i, l) < least || out(i, l) > most;
        CHECK(clipped(i, l) == std::clamp(out(i, l), least, most));
      }
    }
  }
  CHECK(negative > 0);
  CHECK(outside > 0);
}

TEST_CASE("a row of WildCat whose denominator rounding alone decides is the mean of the values", "[methods]") {
  // One query moves to where its denominator changes sign; another keeps the temperature.
  TestHead problem;
  double largest = 0, positive = NAN, negative = NAN;
  Index replicate = 0;
  const auto sum_at = [&](double q) {
    problem.head.Q(0, 0) = q;
    problem.head.Q(1, 0) = largest;
    return normalisers_of(*drawn("wildcat:r=4,clip=false", problem, {}, nullptr, replicate), problem)[0];
  };
  for (; replicate < 16; ++replicate) {
    problem = gaussian_problem({.nq = 60 + replicate, .nk = 60 + replicate, .d = 1, .dv = 2}, 2);
    largest = problem.head.Q.cwiseAbs().maxCoeff();
    positive = negative = NAN;
    for (Index step = -32; step <= 32; ++step) {
      const double q = largest * static_cast<double>(step) / 32;
      (sum_at(q) > 0 ? positive : negative) = q;
    }
    if (!std::isnan(positive) && !std::isnan(negative)) break;
  }
  REQUIRE(replicate < 16);
  bool met = false;
  for (int step = 0; step < 200 && !met; ++step) {
    const double middle = positive / 2 + negative / 2;
    (sum_at(middle) > 0 ? positive : negative) = middle;
    const Matrix<double> out = out_of("wildcat:r=4,clip=false", problem, {}, nullptr, replicate);
    CHECK(out.allFinite());
    met = distance(out.row(0), problem.head.V.colwise().mean()) < tolerance;
    if (middle == positive && middle == negative) break;
  }
  CHECK(met);
}

TEMPLATE_TEST_CASE("coresets give finite rows within the values at the edges of their inputs", "[methods]", float,
                   double) {
  using Head = HeadData<TestType>;
  const TestHead problem = gaussian_problem({.nq = 33, .nk = 47, .d = 5, .dv = 3}, 0.8);
  const Head plain = problem.head.cast<TestType>();
  std::map<std::string, Head> heads;
  heads["equal keys"] = plain;
  heads["equal keys"].K.rowwise() = plain.K.row(0).eval();
  heads["keys of zero"] = plain;
  heads["keys of zero"].K.setZero();
  heads["queries of zero"] = plain;
  heads["queries of zero"].Q.setZero();
  heads["values of zero"] = plain;
  heads["values of zero"].V.setZero();
  heads["one key with all mass"] = plain;
  heads["one key with all mass"].Q.setConstant(3);
  heads["one key with all mass"].K.row(20).setConstant(30);
  heads["one long key"] = plain;
  heads["one long key"].K.row(20) *= TestType(1e4);
  heads["long keys and queries"] = {plain.Q * TestType(1e3), plain.K * TestType(1e3), plain.V};
  heads["short keys"] = {plain.Q, plain.K * TestType(1e-30), plain.V};
  heads["large values"] = {plain.Q, plain.K, plain.V * TestType(1e30)};
  for (const auto& [name, head] : heads)
    for (const std::string spec :
         {"wildcat:r=1", "wildcat:r=8", "wildcat:r=9,bins=3", "wildcat:r=46", "thinformer:keep=1", "thinformer:keep=8",
          "thinformer:keep=46", "thinformer:keep=8,halving=coin"}) {
      INFO(name << ", " << spec);
      const auto method = draw_method<TestType>(Params("methods", spec), problem.shape, problem);
      const Matrix<TestType> out = attend(*method, head, {});
      CHECK(out.allFinite());
      const TestType slack = 10 * std::numeric_limits<TestType>::epsilon() * head.V.cwiseAbs().maxCoeff();
      for (Index l = 0; l < 3; ++l) {
        CHECK(out.col(l).minCoeff() >= head.V.col(l).minCoeff() - slack);
        CHECK(out.col(l).maxCoeff() <= head.V.col(l).maxCoeff() + slack);
      }
      if (name == "equal keys" || name == "keys of zero" || name == "queries of zero") {
        // WildCat's kernel is then of rank one.
        if (spec.starts_with("wildcat") && (name != "queries of zero" || !spec.ends_with("46")))
          CHECK((out.rowwise() - head.V.colwise().mean()).cwiseAbs().maxCoeff() < 1e2 * std::sqrt(slack / 10) * 1e-1);
      }
      if (name == "values of zero") CHECK(out.isZero(0));
      if (name == "one key with all mass" && spec.starts_with("wildcat") && spec != "wildcat:r=1")
        CHECK((out.rowwise() - head.V.row(20)).cwiseAbs().maxCoeff() < 1e-3);
    }
  CHECK_THROWS_WITH(Params("methods", "wildcat:r=0"), ContainsSubstring("r"));
  CHECK_THROWS_WITH(Params("methods", "thinformer:keep=0"), ContainsSubstring("keep"));
  for (const std::string spec : {"wildcat", "thinformer"})
    CHECK_THROWS_WITH(out_of(spec, gaussian(), {.causal = true}),
                      ContainsSubstring("the coreset is chosen among all keys, later ones included"));
}

// ---- Thinformer

TEST_CASE("every number of keys is thinned to powers of 2 that sum to it", "[methods]") {
  for (Index n = 1; n <= 140; ++n)
    for (const Index keep : {1, 2, 5, 12, 64}) {
      INFO(n << " keys, keep=" << keep);
      TestHead problem = gaussian_problem({.nq = 1, .nk = n, .d = 2, .dv = 1}, 0.8);
      problem.head.Q.setZero();
      const auto method = drawn("thinformer:halving=coin,keep=" + std::to_string(keep), problem);
      Context context;
      const Matrix<double> weights =
          static_cast<double>(n) * attention_matrix(*method, problem.head.view(), {}, context);
      Index left = 0, ones = 0;
      double sum = 0;
      for (Index j = 0; j < n; ++j) {
        if (weights(0, j) == 0) continue;
        ++left;
        const double digit = std::log2(weights(0, j));
        CHECK(std::abs(digit - std::round(digit)) < 1e-9);
        sum += std::round(weights(0, j));
      }
      for (Index digits = n; digits > 0; digits /= 2) ones += digits % 2;
      CHECK(sum == static_cast<double>(n));
      CHECK(left <= std::max(keep, ones));
      if (n <= keep) CHECK(left == n);
    }
}

// Sums over the coreset are unbiased: with queries of 0 the output is sum_j m_j v_j / n, whose mean over draws is the
// mean of V. Of 43 keys 12 at most stay: 10 of weight 4, one of 2 and one of 1. 3000 draws, family-wise error rate
// 1e-3 over the columns of both kinds of halving. Planted: the keys that stay count alike, so that the last three keys
// count four times too much or twice.
TEST_CASE("sums over Thinformer's coreset are unbiased", "[statistics]") {
  TestHead problem = gaussian_problem({.nq = 1, .nk = 43, .d = 3, .dv = 3}, 0.8);
  problem.head.Q.setZero();
  problem.head.V.bottomRows(3).array() += 4;
  const Eigen::RowVectorXd mean = problem.head.V.colwise().mean();
  constexpr Index draws = 3000;
  Scores right, planted;
  for (const std::string halving : {"kernel", "coin"}) {
    Matrix<double> outs(draws, 3), alike(draws, 3);
    const std::string spec = "thinformer:keep=12,halving=" + halving;
    for (Index t = 0; t < draws; ++t) {
      const auto method = drawn(spec, problem, {}, nullptr, t);
      outs.row(t) = attend(*method, problem.head, {}).row(0);
      const auto want = oracle::attention(Params("methods", spec), method->state(), problem.head, {});
      Eigen::RowVectorXd sum = Eigen::RowVectorXd::Zero(3);
      double count = 0;
      for (Index j = 0; j < 43; ++j)
        if (want.A(0, j) > 0) {
          sum += problem.head.V.row(j);
          ++count;
        }
      alike.row(t) = sum / count;
    }
    for (const auto& [scores, from] : {std::pair{&right, &outs}, {&planted, &alike}})
      for (Index l = 0; l < 3; ++l) {
        const Eigen::VectorXd column = from->col(l);
        const double spread = std::sqrt((column.array() - column.mean()).square().sum() / (draws - 1) / draws);
        scores->push_back({halving, (column.mean() - mean[l]) / spread});
      }
  }
  check_family(right);
  check_found("the keys that stay count alike", planted, threshold(right));
}

// Of 40 pairs of draws, were the two alike, 33 or more would be in favour of one with probability 2e-5. Planted:
// another coin in place of the kernel.
TEST_CASE("kernel halving keeps attention nearer than a coin does", "[statistics]") {
  const TestHead problem = gaussian_problem({.nq = 64, .nk = 2048, .d = 1, .dv = 1}, 0.5);
  const Matrix<double> exact = out_of("softmax", problem);
  Index nearer = 0, nearer_planted = 0;
  for (Index t = 7000; t < 7040; ++t) {  // draws that did not choose n and keep
    const auto error = [&](const std::string& halving, Index replicate) {
      return (out_of("thinformer:keep=512,halving=" + halving, problem, {}, nullptr, replicate) - exact).norm();
    };
    const double coin = error("coin", t);
    nearer += error("kernel", t) < coin;
    nearer_planted += error("coin", 1000 + t) < coin;
  }
  CHECK(nearer >= 33);
  CHECK(nearer_planted < 33);
}

// With blocks of few pairs most decisions are those of a coin. Here blocks have up to 512 pairs, and the kernel
// decides.
TEST_CASE("Thinformer keeps the keys of its transcription where the kernel decides", "[second-paths]") {
  for (const Index n : {512, 1000}) {
    TestHead problem = gaussian_problem({.nq = 8, .nk = n, .d = 1, .dv = 1}, 0.8);
    problem.head.K *= 0.125;
    problem.head.V = problem.head.V.array().sign();
    const std::string spec = "thinformer:keep=256";
    const auto method = drawn(spec, problem), coin = drawn(spec + ",halving=coin", problem);
    REQUIRE(identical(method->state().at("uniforms"), coin->state().at("uniforms")));
    const auto of = [&](const std::string& of_spec) {
      return oracle::attention(Params("methods", of_spec), method->state(), problem.head, {});
    };
    const auto want = of(spec), by_coin = of(spec + ",halving=coin");
    CHECK(distance(attend(*method, problem.head, {}), want.out) < tolerance);
    CHECK(distance(attend(*coin, problem.head, {}), by_coin.out) < tolerance);
    Index others = 0;
    for (Index j = 0; j < n; ++j) others += (want.A(0, j) > 0) != (by_coin.A(0, j) > 0);
    CHECK(others > 10);
  }
}

TEST_CASE("Thinformer without the weights of its keys is another method", "[methods]") {
  const TestHead problem = gaussian(43);
  const std::string spec = "thinformer:keep=12";
  const auto method = drawn(spec, problem);
  const auto want = oracle::attention(Params("methods", spec), method->state(), problem.head, {});
  CHECK(distance(attend(*method, problem.head, {}), want.out) < tolerance);
  Matrix<double> planted = Matrix<double>::Zero(43, 43);
  for (Index i = 0; i < 43; ++i)
    for (Index j = 0; j < 43; ++j)
      if (want.A(0, j) > 0) planted(i, j) = std::exp(problem.head.Q.row(i).dot(problem.head.K.row(j)));
  planted = planted.array().colwise() / planted.rowwise().sum().array();
  CHECK(distance(planted * problem.head.V, want.out) > seen);
}

TEST_CASE("the published stride of Thinformer loses keys unless they are a power of 4", "[methods]") {
  for (const std::string halving : {"kernel", "coin"}) {
    const std::string spec = "thinformer:keep=8,halving=" + halving;
    CHECK(identical(out_of(spec + ",strided=true", gaussian(64)), out_of(spec, gaussian(64))));
    for (const Index n : {15, 37, 63, 130})
      for (const Mask& mask : {Mask{}, Mask{.keys = (2 * n + 2) / 3}}) {
        const TestHead problem = gaussian(n);
        CHECK(distance(out_of(spec + ",strided=true", problem, mask),
                       transcribed(spec + ",strided=true", problem, mask)) < tolerance);
      }
  }
  // Of 63 keys 16 are read, every third of the first 46.
  TestHead problem = gaussian(63);
  const Matrix<double> published = out_of("thinformer:strided=true", problem), ours = out_of("thinformer", problem);
  CHECK(distance(ours, out_of("softmax", problem)) < tolerance);
  for (Index j = 0; j < 63; ++j)
    if (j % 3 != 0 || j > 45) problem.head.V.row(j).setConstant(7);
  CHECK(identical(out_of("thinformer:strided=true", problem), published));
  CHECK(distance(out_of("thinformer", problem), ours) > seen);
}

}  // namespace attnbench::coresets_test
