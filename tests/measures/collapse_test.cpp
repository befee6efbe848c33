// Rank collapse: closed values, identities and inequalities of methods.md I (J row 58), and pure self-attention.
//
// Tolerances are bounds on rounding. Inequalities have a slack of 1e-12 for it. The power tests plant the two errors
// that are known from published code: the norm without its root, and the mean over channels instead of tokens.
#include "harness/measures/collapse.hpp"

#include <cmath>
#include <limits>
#include <numeric>

#include "harness/core/approximation.hpp"
#include "harness/inputs/transformer.hpp"
#include "harness/linalg/lapack.hpp"
#include "harness/measures/attention_matrix.hpp"
#include "harness/measures/spectrum.hpp"
#include "harness/random/streams.hpp"
#include "tests/catch.hpp"

namespace attnbench::collapse_test {

namespace {

constexpr double slack = 1e-12;

Matrix<double> normal(const std::string& name, Index rows, Index columns) {
  Generator generator = Streams(1).stream("collapse test", name, rows, columns);
  return standard_normal(generator, rows, columns);
}

// Rows that sum to one: softmax of N(0, spread^2).
Matrix<double> stochastic(const std::string& name, Index n, double spread) {
  Matrix<double> A = (spread * normal(name, n, n)).array().exp();
  for (Index i = 0; i < n; ++i) A.row(i) /= A.row(i).sum();
  return A;
}

// The largest distance between two rows.
double diameter(const Matrix<double>& X) {
  double largest = 0;
  for (Index i = 0; i < X.rows(); ++i)
    for (Index j = 0; j < i; ++j) largest = std::max(largest, (X.row(i) - X.row(j)).norm());
  return largest;
}

double spectral_norm(const Matrix<double>& X) { return singular_values(X).front(); }

Matrix<double> centring(Index n) {
  return Matrix<double>::Identity(n, n) - Matrix<double>::Constant(n, n, 1 / static_cast<double>(n));
}

}  // namespace

TEST_CASE("the composite norm has its closed values and is at least the spectral norm", "[unit]") {
  Matrix<double> column = Matrix<double>::Zero(4, 4), row = column;
  column.col(0).setOnes();
  row.row(0).setOnes();
  CHECK(composite_norm(column) == 2);
  CHECK(composite_norm(row) == 2);
  CHECK(composite_norm(column + row) == Approx(5).epsilon(1e-15));  // 5 > 2 + 2: no norm
  CHECK(composite_norm(-3 * row) == Approx(6).epsilon(1e-15));
  CHECK(composite_norm(Matrix<double>::Identity(7, 7)) == 1);
  CHECK(composite_norm(Matrix<double>::Zero(3, 2)) == 0);
  CHECK(composite_norm(Matrix<double>::Constant(2, 2, 1e300)) == Approx(2e300).epsilon(1e-15));
  for (const Index n : {1, 3, 20}) {
    const Matrix<double> X = normal("X", n, 5), Y = normal("Y", 5, n + 2);
    CHECK(spectral_norm(X) <= composite_norm(X) * (1 + slack));
    CHECK(composite_norm(X * Y) <= composite_norm(X) * composite_norm(Y) * (1 + slack));
  }
}

TEST_CASE("without its root the composite norm is of another degree", "[unit]") {
  const auto without_root = [](const Matrix<double>& X) {
    return X.cwiseAbs().colwise().sum().maxCoeff() * X.cwiseAbs().rowwise().sum().maxCoeff();
  };
  const Matrix<double> X = normal("X", 6, 5);
  CHECK(composite_norm(2 * X) == Approx(2 * composite_norm(X)).epsilon(slack));
  CHECK(without_root(2 * X) == Approx(4 * without_root(X)).epsilon(slack));
  CHECK(without_root(0.1 * X) < spectral_norm(0.1 * X));  // below the norm that it bounds
}

TEST_CASE("the residual is over tokens: res(A X) = (I - 1 1^T / n) A res(X) for stochastic A", "[unit]") {
  for (const Index n : {1, 2, 17}) {
    const Matrix<double> A = stochastic("A", n, 1), X = normal("X", n, 5).array() + 3;
    const Matrix<double> expected = centring(n) * A * token_residual(X);
    CHECK((token_residual(A * X) - expected).cwiseAbs().maxCoeff() < slack);
    CHECK(token_residual(X).colwise().sum().cwiseAbs().maxCoeff() < slack);
    if (n == 1) continue;
    // Planted: the mean over channels.
    const auto over_channels = [](const Matrix<double>& Y) { return Matrix<double>(Y.colwise() - Y.rowwise().mean()); };
    CHECK((over_channels(A * X) - centring(n) * A * over_channels(X)).cwiseAbs().maxCoeff() > 0.1);
  }
}

TEST_CASE("relative residuals: 0 for equal tokens and for none, 1 for centred ones", "[unit]") {
  const Matrix<double> X = normal("X", 9, 4);
  for (const auto residual : {relative_residual_composite, relative_residual_frobenius}) {
    CHECK(residual(Matrix<double>::Zero(9, 4)) == 0);
    CHECK(residual(Matrix<double>::Constant(9, 4, 2.5)) == 0);
    CHECK(residual(X.topRows(1)) == 0);
    CHECK(residual(token_residual(X)) == Approx(1).epsilon(slack));
    CHECK(residual(1e-200 * X) == Approx(residual(X)).epsilon(slack));
  }
  const Matrix<double> other = X.rowwise() - normal("other", 1, 4).row(0);
  CHECK(token_residual(X).norm() <= other.norm() * (1 + slack));  // the mean is best
}

TEST_CASE("Dobrushin's coefficient: closed values, contraction, and products", "[unit]") {
  CHECK(dobrushin(Matrix<double>::Identity(5, 5)) == 1);
  CHECK(dobrushin(Matrix<double>::Constant(5, 5, 0.2)) == 0);
  CHECK(dobrushin(Matrix<double>::Identity(1, 1)) == 0);
  Matrix<double> two(2, 2);
  two << 0.75, 0.25, 0.5, 0.5;
  CHECK(dobrushin(two) == 0.25);
  for (const double spread : {0.3, 1.0, 4.0})
    for (const Index n : {2, 5, 24}) {
      const Matrix<double> A = stochastic("A", n, spread), B = stochastic("B", n, spread), X = normal("X", n, 3);
      CHECK(dobrushin(A) <= 1 + slack);
      CHECK(diameter(A * X) <= dobrushin(A) * diameter(X) * (1 + slack));
      CHECK(dobrushin(A * B) <= dobrushin(A) * dobrushin(B) * (1 + slack));
    }
  // Attained by two rows that are farthest apart: the coefficient is no looser than it must be.
  Matrix<double> X(2, 1);
  X << 1, 0;
  CHECK(diameter(two * X) == dobrushin(two) * diameter(X));
}

TEST_CASE("the order of convergence: 1 for exponential, p for powers, nothing where nothing falls", "[unit]") {
  std::vector<double> halved{1.0}, cubed{0.7};
  for (int l = 0; l < 6; ++l) halved.push_back(halved.back() / 2);
  for (int l = 0; l < 4; ++l) cubed.push_back(0.5 * cubed.back() * cubed.back() * cubed.back());  // c = 0.5
  for (const double floor : {0.0, 0.02, 0.04, 0.1, 0.2})
    CHECK(order_of_convergence(halved, floor).value() == Approx(1).epsilon(slack));
  for (const double floor : {0.0, 1e-20, 1e-6})  // 0.7, 0.17, 0.0025, 8e-9, 2e-25
    CHECK(order_of_convergence(cubed, floor).value() == Approx(3).epsilon(slack));
  CHECK_FALSE(order_of_convergence(cubed, 0.01));  // two places
  CHECK_FALSE(order_of_convergence(std::vector<double>{1, 0.5, 0.6}, 0));
  CHECK_FALSE(order_of_convergence(std::vector<double>{1, 1, 0.6}, 0));
  CHECK_FALSE(order_of_convergence(std::vector<double>{}, 0));
}

// Softmax attention alone, weights of size one: about 7e-1, 3e-1, 1e-2, 1e-6, 1e-16 (methods.md I), to the rounding of
// a double; the rank of the product of the attention matrices falls with the tokens' differences.
TEST_CASE("pure self-attention collapses within a few layers, and the product's rank never rises", "[unit]") {
  constexpr Index n = 32, d = 16, layers = 6;
  Transformer<double> transformer{.heads = 1, .d = d, .dv = d};
  for (Index l = 0; l < layers; ++l) {
    const auto weights = [&](const std::string& name) -> Matrix<double> {
      return normal(name + std::to_string(l), d, d) / std::sqrt(static_cast<double>(d));
    };
    transformer.layers.push_back(
        {.queries = weights("q"), .keys = weights("k"), .values = weights("v"), .out = Matrix<double>::Identity(d, d)});
  }
  const Shape shape{.nq = n, .nk = n, .d = d, .dv = d, .precision = Precision::f64};
  const Params params("methods", "softmax");
  const auto softmax = make_approximation<double>({.shape = shape, .params = params, .streams = Streams(0)});
  Context context;
  Matrix<double> product = Matrix<double>::Identity(n, n);
  std::vector<Index> ranks{n};
  const double scale = std::pow(static_cast<double>(d), -0.25);
  const auto states =
      hidden_states(context, transformer, normal("tokens", n, d), {.skip = false, .feed_forward = false, .norm = false},
                    [&](Index, Index, std::span<const HeadData<double>> heads, Out<double> out) {
                      const HeadData<double>& head = heads.front();
                      const HeadData<double> scaled{scale * head.Q, scale * head.K, head.V};
                      softmax->attend(scaled.view(), {}, context, out);
                      product = attention_matrix(*softmax, scaled.view(), {}, context) * product;
                      const auto sigma = singular_values(product);
                      ranks.push_back(numerical_rank(sigma, rank_tolerance(sigma, n, n)));
                    });
  std::vector<double> residuals;
  for (const auto& X : states) residuals.push_back(relative_residual_composite(X));
  CHECK(residuals[1] < 0.95);
  CHECK(residuals[4] < 1e-3);
  CHECK(residuals[layers] < static_cast<double>(n) * std::numeric_limits<double>::epsilon());
  for (size_t l = 1; l < ranks.size(); ++l) CHECK(ranks[l] <= ranks[l - 1]);
  CHECK(ranks.back() == 1);
}

}  // namespace attnbench::collapse_test
