// Linformer and Nystroemformer where their answers are known, and the bugs of published ones, planted. methods.md E,
// J 34 to 38.
#include <cmath>

#include "approximations/low-rank/pseudo_inverse.hpp"
#include "approximations/low-rank/segments.hpp"
#include "harness/linalg/lapack.hpp"
#include "harness/measures/attention_matrix.hpp"
#include "tests/cases.hpp"
#include "tests/scores.hpp"

namespace attnbench::low_rank_test {

namespace {

constexpr double tolerance = 1e-12;

Matrix<double> out_of(const std::string& spec, const TestHead& problem, Mask mask = {},
                      const Tensors* state = nullptr) {
  return attend(*drawn(spec, problem, mask, state), problem.head, mask);
}

double distance(const Matrix<double>& a, const Matrix<double>& b) { return (a - b).cwiseAbs().maxCoeff(); }

TestHead gaussian(Index n = 60) { return gaussian_problem({.nq = n, .nk = n, .d = 6, .dv = 4}, 0.8); }

Matrix<double> matrix_of(const Approximation<double>& method, const TestHead& problem) {
  Context context;
  return attention_matrix(method, problem.head.view(), {}, context);
}

Matrix<double> softmax(const Matrix<double>& X, const Matrix<double>& Y) {
  Matrix<double> A = X * Y.transpose();
  A = (A.colwise() - A.rowwise().maxCoeff()).array().exp();
  return A.array().colwise() / A.rowwise().sum().array();
}

void make_constant_on_segments(Matrix<double>& X, Index segments) {
  const Segments even = Segments::even(X.rows(), segments);
  for (Index a = 0; a < segments; ++a)
    for (Index j = even.begin(a); j < even.end(a); ++j) X.row(j) = X.row(even.begin(a)).eval();
}

// Six steps that begin at A^T / norms.
Matrix<double> newton_schulz_from(const Matrix<double>& A, double norms, int iterations) {
  const Matrix<double> I = Matrix<double>::Identity(A.rows(), A.rows());
  Matrix<double> Z = A.transpose() / norms;
  for (int i = 0; i < iterations; ++i) {
    const Matrix<double> AZ = A * Z;
    Z = 0.25 * Z * (13 * I - AZ * (15 * I - AZ * (7 * I - AZ)));
  }
  return Z;
}

double norms_of(const Matrix<double>& A) {
  return A.cwiseAbs().colwise().sum().maxCoeff() * A.cwiseAbs().rowwise().sum().maxCoeff();
}

}  // namespace

TEST_CASE("a convolution of stride 1 with weight 1 is softmax", "[methods]") {
  const TestHead problem = gaussian();
  const Tensors one{{"w", Matrix<double>::Ones(1, 1)}};
  const std::string spec = "linformer:projection=convolution,share=true,r=";
  for (const std::string r : {"60", "1000"}) {
    CHECK(distance(out_of(spec + r, problem, {}, &one), out_of("softmax", problem)) < tolerance);
    CHECK(distance(out_of(spec + r, problem, {.keys = 41}, &one), out_of("softmax", problem, {.keys = 41})) <
          tolerance);
  }
}

TEST_CASE("a convolution with weights 1/s is mean pooling, and its matrix is banded", "[methods]") {
  const TestHead problem = gaussian();
  const Tensors mean{{"w", Matrix<double>::Constant(5, 1, 0.2)}};
  CHECK(distance(out_of("linformer:projection=convolution,share=true,r=12", problem, {}, &mean),
                 out_of("linformer:projection=mean-pool,r=12", problem)) < tolerance);
  // 60 keys at stride 7: nine segments, the last of 4, and E holds w on its band.
  const auto method = drawn("linformer:projection=convolution,r=9", problem);
  const Tensors state = method->state();
  REQUIRE(state.at("w").rows() == 7);
  Matrix<double> E = Matrix<double>::Zero(9, 60), F = E;
  for (Index j = 0; j < 60; ++j) {
    E(j / 7, j) = state.at("w")(j % 7, 0);
    F(j / 7, j) = state.at("w_values")(j % 7, 0);
  }
  CHECK(distance(softmax(problem.head.Q, E * problem.head.K) * (F * problem.head.V),
                 attend(*method, problem.head, {})) < tolerance);
  const Tensors banded{{"E", E}, {"F", F}};
  CHECK(distance(out_of("linformer:r=9", problem, {}, &banded), attend(*method, problem.head, {})) < tolerance);
}

TEST_CASE("sharing a projection makes E and F one", "[methods]") {
  const TestHead problem = gaussian();
  for (const std::string projection : {"gaussian", "convolution"}) {
    INFO(projection);
    const std::string spec = "linformer:r=10,projection=" + projection;
    const Tensors apart = drawn(spec, problem)->state(), shared = drawn(spec + ",share=true", problem)->state();
    REQUIRE(apart.size() == 2);
    REQUIRE(shared.size() == 1);
    const auto& [name, first] = *shared.begin();
    CHECK(identical(first, apart.at(name)));
    Tensors both = apart;
    both.rbegin()->second = first;
    CHECK(distance(out_of(spec, problem, {}, &both), out_of(spec + ",share=true", problem)) < tolerance);
    CHECK(distance(out_of(spec, problem), out_of(spec + ",share=true", problem)) > 1e-2);
  }
}

TEST_CASE("keys along the axes are their own principal components", "[methods]") {
  TestHead problem = gaussian();
  const Index n = problem.head.K.rows(), d = problem.head.K.cols();
  problem.head.K = Matrix<double>::Zero(n, d);
  for (Index a = 0; a < d; ++a) problem.head.K(a, a) = static_cast<double>(2 * d - a) / 2;  // largest first
  for (const Index r : {Index(1), Index(4), d, d + 7}) {
    const Index kept = std::min(r, d);
    const Matrix<double> want = softmax(problem.head.Q, problem.head.K.topRows(kept)) * problem.head.V.topRows(kept);
    CHECK(distance(out_of("principal-keys:r=" + std::to_string(r), problem), want) < tolerance);
  }
}

// x^T E^T E y has mean x.y and variance (|x|^2 |y|^2 + (x.y)^2) / r; of z = (estimate - mean)^2 / variance the variance
// is taken from the sample. 4000 draws, family-wise error rate 1e-3.
TEST_CASE("projections of linformer keep products in the mean, with the variance of Johnson and Lindenstrauss",
          "[statistics]") {
  constexpr Index draws = 4000, r = 8, n = 30;
  TestHead problem = gaussian_problem({.nq = 2, .nk = n, .d = 3, .dv = 2}, 0.8);
  const Matrix<double> K = problem.head.K;
  const auto scores = [&](double factor) {
    Scores all;
    const std::pair<Index, Index> pairs[] = {{0, 0}, {0, 1}, {1, 2}};
    Matrix<double> sum = Matrix<double>::Zero(3, 3);  // of e, e^2 and e^4, e standardised
    for (Index replicate = 0; replicate < draws; ++replicate) {
      const Matrix<double> EK = factor * drawn("linformer:r=8", problem, {}, nullptr, replicate)->state().at("E") * K;
      for (Index p = 0; p < 3; ++p) {
        const auto [a, b] = pairs[p];
        const double product = K.col(a).dot(K.col(b));
        const double variance = (K.col(a).squaredNorm() * K.col(b).squaredNorm() + product * product) / r;
        const double e = (EK.col(a).dot(EK.col(b)) - product) / std::sqrt(variance);
        sum(p, 0) += e;
        sum(p, 1) += e * e;
        sum(p, 2) += e * e * e * e;
      }
    }
    sum /= draws;
    for (Index p = 0; p < 3; ++p) {
      all.push_back({"mean", sum(p, 0) * std::sqrt(draws)});
      const double spread = std::sqrt((sum(p, 2) - sum(p, 1) * sum(p, 1)) / draws);
      all.push_back({"variance", (sum(p, 1) - 1) / spread});
    }
    return all;
  };
  const Scores right = scores(1);
  check_family(right);
  check_found("std 1/r instead of 1/sqrt(r)", scores(1 / std::sqrt(8.0)), threshold(right));
  check_found("U(-1/sqrt(r), 1/sqrt(r))", scores(1 / std::sqrt(3.0)), threshold(right));
}

TEST_CASE("nystrom with a landmark for each token and the true inverse is softmax", "[methods]") {
  // Am is well conditioned where tokens are far apart: 12 tokens along the axes.
  TestHead problem = gaussian_problem({.nq = 12, .nk = 12, .d = 12, .dv = 3}, 0.3);
  problem.head.Q += 2 * Matrix<double>::Identity(12, 12);
  problem.head.K += 2 * Matrix<double>::Identity(12, 12);
  const auto sigma = singular_values(softmax(problem.head.Q, problem.head.K));
  REQUIRE(sigma.back() > 1e-3 * sigma.front());
  for (const std::string landmarks : {"12", "500"})
    CHECK(distance(out_of("nystrom:inverse=exact,landmarks=" + landmarks, problem), out_of("softmax", problem)) <
          tolerance);
  CHECK(distance(out_of("nystrom:iterations=40,landmarks=12", problem), out_of("softmax", problem)) < tolerance);
  CHECK(distance(out_of("nystrom:landmarks=6", problem), out_of("softmax", problem)) > 1e-2);
}

TEST_CASE("nystrom is exact for queries and keys that are constant on the segments, whatever V", "[methods]") {
  for (const Index n : {60, 64}) {  // 64: ragged segments
    TestHead problem = gaussian(n);
    problem.head.Q *= 2;
    make_constant_on_segments(problem.head.Q, 5);
    make_constant_on_segments(problem.head.K, 5);
    const Matrix<double> exact = out_of("softmax", problem);
    CHECK(distance(out_of("nystrom:inverse=exact,landmarks=5", problem), exact) < 1e2 * tolerance);
    CHECK(distance(out_of("nystrom:inverse=exact,landmarks=4", problem), exact) > 1e-2);
  }
}

TEST_CASE("rows of nystrom sum to one with the true inverse, and nearly with six iterations", "[methods]") {
  TestHead problem = gaussian();
  problem.head.Q *= 1.5;
  const auto deviation = [&](const std::string& spec) {
    return (matrix_of(*drawn(spec, problem), problem).rowwise().sum().array() - 1).abs().maxCoeff();
  };
  CHECK(deviation("nystrom:inverse=exact,landmarks=5,tolerance=1e-12") < 1e-9);  // 1e-12 times the condition number
  CHECK(deviation("nystrom:landmarks=5,iterations=30") < 1e-9);
  CHECK(deviation("nystrom:landmarks=5") > 1e-9);
  CHECK(matrix_of(*drawn("nystrom:inverse=exact,landmarks=5", problem), problem).minCoeff() < 0);
}

TEST_CASE("a vector added to all keys changes neither nystrom nor linformer with means", "[methods]") {
  TestHead problem = gaussian();
  const std::string specs[] = {"nystrom:landmarks=5", "linformer:projection=mean-pool,r=12", "linformer:r=12"};
  std::vector<Matrix<double>> before;
  for (const auto& spec : specs) before.push_back(out_of(spec, problem));
  problem.head.K.rowwise() += Eigen::RowVectorXd::LinSpaced(6, -1, 1);
  CHECK(distance(out_of(specs[0], problem), before[0]) < 1e2 * tolerance);
  CHECK(distance(out_of(specs[1], problem), before[1]) < tolerance);
  CHECK(distance(out_of(specs[2], problem), before[2]) > 1e-2);  // sums of rows of E are not one
}

TEST_CASE("an iteration of Newton and Schulz takes the residual E to 3/4 E^3 + 1/4 E^4", "[methods]") {
  const TestHead problem = gaussian(9);
  const Matrix<double> A = softmax(problem.head.Q, problem.head.K), I = Matrix<double>::Identity(9, 9);
  Context context;
  for (Index iterations = 0; iterations < 8; ++iterations) {
    const Matrix<double> E = I - A * newton_schulz_inverse<double>(context, A, iterations);
    const Matrix<double> next = I - A * newton_schulz_inverse<double>(context, A, iterations + 1);
    CHECK(distance(next, 0.75 * E * E * E + 0.25 * E * E * E * E) < tolerance);
  }
  CHECK(distance(newton_schulz_inverse<double>(context, A, 6), newton_schulz_from(A, norms_of(A), 6)) < 1e-10);
  // About log(1/delta)/log 3.25 + 2 iterations to 1e-6, delta = sigma_min^2 / (|A|_1 |A|_inf).
  const auto sigma = singular_values(A);
  const double delta = sigma.back() * sigma.back() / norms_of(A);
  const auto needed = static_cast<Index>(std::ceil(-std::log(delta) / std::log(3.25) + 3));
  const auto residual = [&](Index iterations) {
    return singular_values(I - A * newton_schulz_inverse<double>(context, A, iterations)).front();
  };
  CHECK(residual(needed) < 1e-6);
  CHECK(residual(needed / 2) > 1e-6);
}

TEST_CASE("the pseudo-inverse inverts what is above the tolerance", "[methods]") {
  const TestHead problem = gaussian(9);
  const Matrix<double> A = softmax(problem.head.Q, problem.head.K), I = Matrix<double>::Identity(9, 9);
  Context context;
  CHECK(distance(A * pseudo_inverse(context, A, 0), I) < 1e-9);
  Matrix<double> singular = A;
  singular.row(8) = singular.row(7);
  const Matrix<double> Z = pseudo_inverse(context, singular, 1e-10);
  CHECK(distance(singular * Z * singular, singular) < 1e-9);
  CHECK(distance(Z * singular * Z, Z) < 1e-6);
  const auto sigma = singular_values(pseudo_inverse(context, A, 0.5));
  const auto kept = singular_values(A);
  CHECK(sigma.front() <= 1 / (0.5 * kept.front()));
  // The tolerance is a share of the largest: a matrix a thousand times smaller has an inverse a thousand times larger.
  CHECK(distance(pseudo_inverse(context, A / 1000, 0.5) / 1000, pseudo_inverse(context, A, 0.5)) < 1e-12);
}

TEST_CASE("on data without structure six iterations beat the true inverse", "[methods]") {
  const TestHead problem = gaussian_problem({.nq = 256, .nk = 256, .d = 64, .dv = 8}, std::pow(64, -0.25));
  const Matrix<double> exact = matrix_of(*drawn("softmax", problem), problem);
  const auto error = [&](const std::string& spec) {
    return (matrix_of(*drawn(spec, problem), problem) - exact).norm() / exact.norm();
  };
  const double iterated = error("nystrom:landmarks=32"),
               inverted = error("nystrom:landmarks=32,inverse=exact,tolerance=0");
  CAPTURE(iterated, inverted);
  CHECK(iterated < 1);
  CHECK(inverted > 2 * iterated);
}

TEST_CASE("padded tokens are in no landmark", "[methods]") {
  // 60 tokens, then the same padded to 90 with zeros: rows of the 60 are the same.
  const TestHead whole = gaussian(60);
  TestHead padded = gaussian(90);
  for (auto* X : {&padded.head.Q, &padded.head.K, &padded.head.V}) X->setZero();
  padded.head.Q.topRows(60) = whole.head.Q;
  padded.head.K.topRows(60) = whole.head.K;
  padded.head.V.topRows(60) = whole.head.V;
  for (const std::string spec : {"nystrom:landmarks=6", "nystrom:landmarks=6,inverse=exact",
                                 "nystrom:landmarks=6,convolution=33", "nystrom:landmarks=7"}) {
    INFO(spec);
    const Matrix<double> want = out_of(spec, whole);
    CHECK(distance(out_of(spec, padded, {.keys = 60}).topRows(60), want) < 1e2 * tolerance);
    // Planted: the zeros are averaged.
    CHECK(distance(out_of(spec, padded).topRows(60), want) > 1e-2);
  }
}

// 30 queries at the positions 15 to 44 of 40 keys and 5 padded places: the last 5 queries are at padded places.
TEST_CASE("queries at padded places are in no landmark, wherever the others begin", "[methods]") {
  const TestHead padded = gaussian_problem({.nq = 30, .nk = 45, .d = 6, .dv = 4}, 0.8);
  const TestHead whole = {{.nq = 25, .nk = 40, .d = 6, .dv = 4},
                          {padded.head.Q.topRows(25), padded.head.K.topRows(40), padded.head.V.topRows(40)},
                          padded.calibration};
  const Matrix<double> want = out_of("nystrom:landmarks=6", whole, {.offset = 15});
  CHECK(distance(out_of("nystrom:landmarks=6", padded, {.offset = 15, .keys = 40}).topRows(25), want) < tolerance);
  // Planted: all 30 queries are averaged.
  CHECK(distance(out_of("nystrom:landmarks=6", padded, {.offset = 10, .keys = 40}).topRows(25), want) > 1e-3);
}

TEST_CASE("projections of linformer for more tokens extend those for fewer", "[methods]") {
  const auto state_at = [](Index n) { return drawn("linformer:r=10", gaussian(n))->state(); };
  const Tensors few = state_at(40), many = state_at(64);
  for (const char* name : {"E", "F"}) {
    INFO(name);
    REQUIRE(many.at(name).cols() == 64);
    CHECK(identical(few.at(name), Matrix<double>(many.at(name).leftCols(40))));
  }
  CHECK_FALSE(identical(few.at("E"), few.at("F")));
}

TEST_CASE("a causal mask put on nystrom is seen by moving a later token", "[methods]") {
  // Planted: A of the method, masked and normalised. Landmarks still see the future.
  const auto masked = [](const TestHead& problem) {
    Matrix<double> A = matrix_of(*drawn("nystrom:landmarks=6", problem), problem);
    A = A.triangularView<Eigen::Lower>();
    A = A.array().colwise() / A.rowwise().sum().array();
    return Matrix<double>(A * problem.head.V);
  };
  TestHead problem = gaussian();
  const Matrix<double> before = masked(problem);
  problem.head.K.row(59) *= -30;
  problem.head.Q.row(59) *= -30;
  CHECK(distance(masked(problem).topRows(59), before.topRows(59)) > 1e-3);
  CHECK_THROWS_WITH(out_of("nystrom", problem, {.causal = true}), ContainsSubstring("later ones included"));
}

TEST_CASE("the start of the iteration is the matrix's own", "[methods]") {
  // Planted: norms over two heads, as where they are the maximum over a batch. Six iterations then depend on the other.
  const TestHead problem = gaussian(9);
  const Matrix<double> A = softmax(problem.head.Q, problem.head.K), other = softmax(5 * problem.head.K, problem.head.Q);
  REQUIRE(norms_of(other) > 1.2 * norms_of(A));
  Context context;
  const Matrix<double> own = newton_schulz_inverse<double>(context, A, 6);
  CHECK(distance(own, newton_schulz_from(A, norms_of(A), 6)) < 1e-10);
  CHECK(distance(own, newton_schulz_from(A, norms_of(other), 6)) > 1e-3);
}

TEST_CASE("the convolution of nystrom is a band added to its matrix", "[methods]") {
  const TestHead problem = gaussian_problem({.nq = 30, .nk = 45, .d = 6, .dv = 4}, 0.8);
  const Mask mask{.offset = 15, .keys = 40};
  const auto method = drawn("nystrom:landmarks=6,convolution=33", problem, mask);
  const Matrix<double> w = method->state().at("convolution");
  Matrix<double> want = out_of("nystrom:landmarks=6", problem, mask);
  for (Index i = 0; i < 30; ++i)
    for (Index t = 0; t < 33; ++t)
      if (const Index j = i + 15 + t - 16; j >= 0 && j < 40) want.row(i) += w(0, t) * problem.head.V.row(j);
  CHECK(distance(attend(*method, problem.head, mask), want) < tolerance);
}

}  // namespace attnbench::low_rank_test
