// Methods that mix tokens without comparing them: identities of their formulas, and what they read.
#include <cmath>
#include <numbers>

#include "approximations/mixers/synthetic_logits.hpp"
#include "harness/linalg/lapack.hpp"
#include "harness/measures/attention_matrix.hpp"
#include "harness/measures/spectrum.hpp"
#include "tests/cases.hpp"
#include "tests/catch.hpp"
#include "tests/misuse.hpp"
#include "tests/oracle/oracle.hpp"
#include "tests/waves.hpp"

namespace attnbench::mixers_test {

namespace {

constexpr double tolerance = 1e-12;  // see methods_test.cpp

TestHead square(Index n, Index d, Index dv) { return gaussian_problem({.nq = n, .nk = n, .d = d, .dv = dv}, 0.8); }

Shape with_mask(Shape shape, Mask mask) {
  shape.mask = mask;
  return shape;
}

Matrix<double> fnet(const Matrix<double>& X) {
  HeadData<double> head{Matrix<double>::Zero(X.rows(), 1), Matrix<double>::Zero(X.rows(), 1), X};
  const TestHead problem{{.nq = X.rows(), .nk = X.rows(), .d = 1, .dv = X.cols()}, head, head};
  return attend(*drawn("fnet", problem), head, {});
}

// X_{-i mod n, -j mod d}.
Matrix<double> reversed(const Matrix<double>& X) {
  Matrix<double> R(X.rows(), X.cols());
  for (Index i = 0; i < X.rows(); ++i)
    for (Index j = 0; j < X.cols(); ++j) R(i, j) = X((X.rows() - i) % X.rows(), (X.cols() - j) % X.cols());
  return R;
}

// The largest difference over the larger of 1 and the largest entry.
double distance(const Matrix<double>& got, const Matrix<double>& want) {
  return (got - want).cwiseAbs().maxCoeff() / std::max(1.0, want.cwiseAbs().maxCoeff());
}

const std::vector<std::pair<Index, Index>> sizes{{1, 1}, {2, 1}, {6, 4}, {5, 3}, {8, 3}, {65, 1}, {64, 16}, {257, 12}};

Matrix<double> jacobian(const Approximation<double>& method, const HeadData<double>& head, Mask mask, Index column) {
  Matrix<double> M = Matrix<double>::Constant(head.Q.rows(), head.K.rows(), NAN);
  Context context;
  REQUIRE(method.mixing());
  method.mixing()->token_jacobian(head.view(), mask, column, context, M);
  return M;
}

// Central differences of attend in V_j,column, for every fifth token j.
double error_of_jacobian(const Approximation<double>& method, const HeadData<double>& head, Mask mask, Index column) {
  constexpr double step = 1e-4;
  const Matrix<double> M = jacobian(method, head, mask, column);
  double worst = 0;
  for (Index j = 0; j < head.V.rows(); j += 5) {
    HeadData<double> more = head, less = head;
    more.V(j, column) += step;
    less.V(j, column) -= step;
    const Matrix<double> slope = (attend(method, more, mask) - attend(method, less, mask)).col(column) / (2 * step);
    const double error = (slope - M.col(j)).cwiseAbs().maxCoeff();
    if (!(error <= worst)) worst = std::isnan(error) ? INFINITY : error;
  }
  return worst / std::max(1.0, M.cwiseAbs().maxCoeff());
}

Index rank_of(Matrix<double> A) {
  const Index rows = A.rows(), columns = A.cols();
  const auto sigma = singular_values(std::move(A));
  return numerical_rank(sigma, rank_tolerance(sigma, rows, columns));
}

}  // namespace

TEST_CASE("FNet is C X C - S X S", "[methods]") {
  for (const auto& [n, d] : sizes) {
    INFO(n << " x " << d);
    const Matrix<double> X = square(n, 1, d).head.V;
    CHECK(distance(fnet(X), cosines(n) * X * cosines(d) - sines(n) * X * sines(d)) < tolerance);
    // The power of that: the other sign is seen wherever there is a sine.
    const bool sine = n > 2 && d > 2;
    CHECK((distance(fnet(X), cosines(n) * X * cosines(d) + sines(n) * X * sines(d)) > 0.1) == sine);
  }
}

TEST_CASE("FNet applied twice is n d times the even part, three times n d FNet, and its norm is that of the even part",
          "[methods]") {
  for (const auto& [n, d] : sizes) {
    INFO(n << " x " << d);
    const Matrix<double> X = square(n, 1, d).head.V, even = (X + reversed(X)) / 2, Y = fnet(X);
    const auto nd = static_cast<double>(n * d);
    CHECK(distance(fnet(Y), nd * even) < tolerance);
    CHECK(distance(fnet(fnet(Y)), nd * Y) < tolerance);
    CHECK(std::abs(Y.squaredNorm() / (nd * even.squaredNorm()) - 1) < tolerance);
    CHECK(distance(fnet(even), Y) < tolerance);
    CHECK(fnet((X - reversed(X)) / 2).cwiseAbs().maxCoeff() <= tolerance * std::sqrt(nd));
  }
}

// It is often said that it does, which is true of the complex transform alone.
// FFTW plans with state of its own; executing has none.
TEST_CASE("FNet is drawn and called from several threads at once", "[methods]") {
  constexpr Index sizes_at_once = 24;
  std::vector<Matrix<double>> X, at_once(sizes_at_once);
  for (Index b = 0; b < sizes_at_once; ++b) X.push_back(square(20 + b % 6, 1, 3 + b % 4).head.V);
  Context context(4);
  context.for_blocks(sizes_at_once, 1, [&](Context&, Index b, Index) {
    const auto place = static_cast<size_t>(b);
    at_once[place] = fnet(X[place]);
  });
  for (size_t b = 0; b < X.size(); ++b) CHECK(identical(at_once[b], fnet(X[b])));
}

TEST_CASE("FNet applied twice does not reverse the sequence", "[methods]") {
  const Matrix<double> X = square(6, 1, 4).head.V;
  CHECK(distance(fnet(fnet(X)) / 24, reversed(X)) > 0.1);
  CHECK(distance(fnet(fnet(X)) / 24, X) > 0.1);
}

TEST_CASE("FNet is a symmetric map of rank (n d + f) / 2", "[methods]") {
  struct Size {
    Index n, d, rank;
  };
  for (const auto& [n, d, rank] : {Size{6, 4, 14}, Size{5, 3, 8}, Size{8, 3, 13}, Size{1, 1, 1}, Size{7, 6, 22}}) {
    INFO(n << " x " << d);
    const Index f = (n % 2 == 0 ? 2 : 1) * (d % 2 == 0 ? 2 : 1);
    CHECK((n * d + f) / 2 == rank);
    Matrix<double> map(n * d, n * d);
    for (Index j = 0; j < n * d; ++j) {
      Matrix<double> X = Matrix<double>::Zero(n, d);
      X.data()[j] = 1;
      map.col(j) = fnet(X).reshaped<Eigen::RowMajor>();
    }
    CHECK((map - map.transpose()).cwiseAbs().maxCoeff() < tolerance);
    CHECK(rank_of(map) == rank);
  }
}

// Or V = I would make a matrix of it that means nothing. A map that mixes tokens has a Jacobian; a weighted mean whose
// keys depend on V has none, and its weights are those of the V that it saw.
TEST_CASE("what is not linear in V has no attention matrix, and what has none claims nothing of it", "[methods]") {
  for_each_case([](const Case& one) {
    INFO(to_string(one));
    if (!one.claims.linear_in_V) CHECK(!one.claims.no_attention_matrix.empty());
    if (one.claims.no_attention_matrix.empty()) return;
    CHECK(!one.claims.rank_at_most);
    if (one.shape.nk > 70) return;
    const auto method = one.draw<double>();
    if (method->mixing()) {
      CHECK(!one.claims.row_stochastic);
      CHECK(!one.claims.non_negative);
      CHECK(one.claims.exact_when.empty());
      CHECK(!method->rows());
    } else {
      CHECK(one.claims.row_stochastic);
    }
    CHECK(!method->kernel());
    CHECK(!method->factored());
  });
}

TEST_CASE("token Jacobians are the slopes of attend", "[methods]") {
  size_t tested = 0;
  for_each_case([&](const Case& one) {
    if (one.claims.no_attention_matrix.empty() || one.shape.nk > 300) return;
    const auto method = one.draw<double>();
    if (!method->mixing()) return;
    INFO(to_string(one));
    for (const Index column : {Index(0), one.shape.dv - 1}) {
      CHECK(error_of_jacobian(*method, one.problem.head, one.shape.mask, column) < 1e-6);
      ++tested;
    }
  });
  // ATTNBENCH_TEST_ONLY may leave no case.
  if (!std::getenv("ATTNBENCH_TEST_ONLY")) CHECK(tested > 50);
}

TEST_CASE("the token Jacobian of MLP-Mixer is the identity and a matrix of rank at most hidden", "[methods]") {
  const TestHead problem = square(40, 3, 5);
  const auto whole = drawn("mixer:hidden=7", problem);
  const Tensors state = whole->state();
  const auto branch = drawn("mixer:hidden=7,residual=false", problem, {}, &state);
  const Matrix<double> of_whole = jacobian(*whole, problem.head, {}, 0),
                       of_branch = jacobian(*branch, problem.head, {}, 0);
  CHECK(distance(of_whole - Matrix<double>::Identity(40, 40), of_branch) < tolerance);
  CHECK(rank_of(of_branch) == 7);
  CHECK(rank_of(of_whole) == 40);
  CHECK(distance(attend(*whole, problem.head, {}) - problem.head.V, attend(*branch, problem.head, {})) < tolerance);
  // W2 diag(GELU') W1 without LN: its slopes s_j scale columns, which changes no rank.
  Matrix<double> Y = problem.head.V;
  Y.colwise() -= Y.rowwise().mean();
  const Eigen::VectorXd sigma = (Y.rowwise().squaredNorm() / 5).array() + 1e-6;
  Matrix<double> unscaled = of_branch;
  for (Index j = 0; j < 40; ++j) {
    const double root = std::sqrt(sigma[j]), y = Y(j, 0) / root;
    unscaled.col(j) /= (1 - 1.0 / 5 - y * y / 5) / root;
  }
  const Matrix<double>&W1 = state.at("W1"), &W2 = state.at("W2");
  for (Index j = 0; j < 40; ++j) Y.row(j) /= std::sqrt(sigma[j]);
  const Matrix<double> z = W1 * Y.col(0);
  Matrix<double> slopes(7, 7);
  slopes.setZero();
  for (Index h = 0; h < 7; ++h)
    slopes(h, h) = 0.5 * (1 + std::erf(z(h, 0) / std::sqrt(2))) +
                   z(h, 0) * std::exp(-z(h, 0) * z(h, 0) / 2) / std::sqrt(2 * std::numbers::pi);
  CHECK(distance(unscaled, W2 * slopes * W1) < 1e-11);
}

TEST_CASE("spatial gating with W = 0 and b = 1 is the identity, near it almost so", "[methods]") {
  const TestHead problem = square(65, 2, 4);
  for (const Mask& mask : {Mask{}, Mask{.causal = true}}) {
    CHECK(identical(attend(*drawn("gmlp:init=identity", problem, mask), problem.head, mask), problem.head.V));
    // |W V| is at most n 1e-3 / n times a few.
    const Matrix<double> near = attend(*drawn("gmlp:init=near-identity", problem, mask), problem.head, mask);
    CHECK(distance(near, problem.head.V) < 0.1);
    CHECK(distance(near, problem.head.V) > 1e-6);
  }
}

TEST_CASE("injected weights and biases are what is used", "[methods]") {
  const TestHead problem = square(90, 3, 4);  // more rows than a block has
  for (const char* spec : {"synthesizer:kind=dense,hidden=5", "synthesizer:kind=factorised-dense,hidden=5",
                           "synthesizer:kind=factorised,k=3", "synthesizer", "gmlp", "mixer:hidden=5"})
    for (const Mask& mask : {Mask{}, Mask{.causal = true}, Mask{.keys = 20}}) {
      const Params params("methods", spec);
      const Shape shape = with_mask(problem.shape, mask);
      if (!find<MethodEntry>(params.name()).claims(params, shape).no_form.empty()) continue;
      INFO(spec << ", " << to_string(mask));
      Tensors state = drawn(spec, problem, mask)->state();
      REQUIRE(!state.empty());
      Generator generator(test_seed);
      for (auto& named : state)  // every tensor is another, biases not constant
        named.second += standard_normal(generator, named.second.rows(), named.second.cols());
      const auto method = drawn(spec, problem, mask, &state);
      const auto want = oracle::attention(params, state, problem.head, mask);
      CHECK(worst_error(attend(*method, problem.head, mask), want.out, want.condition, 4) < tolerance);
    }
}

TEST_CASE("a random Synthesizer reads V alone, a dense one Q as well, none reads K", "[methods]") {
  const TestHead problem = square(50, 4, 3);
  HeadData<double> other_queries = problem.head, other_keys = problem.head;
  other_queries.Q *= -2;
  other_keys.K.setConstant(NAN);
  for (const char* kind : {"random", "factorised", "dense", "factorised-dense"})
    for (const Mask& mask : {Mask{}, Mask{.causal = true}}) {
      INFO(kind << ", " << to_string(mask));
      const auto method = drawn(std::string("synthesizer:kind=") + kind, problem, mask);
      const Matrix<double> out = attend(*method, problem.head, mask);
      CHECK(identical(attend(*method, other_keys, mask), out));
      const Matrix<double> moved = attend(*method, other_queries, mask);
      if (std::string(kind).find("dense") == std::string::npos)
        CHECK(identical(moved, out));
      else
        CHECK(distance(moved, out) > 1e-2);
    }
}

TEST_CASE("the logits of a factorised Synthesizer have rank k, its softmax generally full rank", "[methods]") {
  const Index n = 16, k = 3;
  const TestHead problem = square(n, 4, 2);
  Context context;
  const auto method = drawn("synthesizer:kind=factorised,k=3", problem);
  const Matrix<double> A = attention_matrix(*method, problem.head.view(), {}, context);
  Matrix<double> logits = A.array().log();  // up to a constant a row, which centring takes out
  logits.colwise() -= logits.rowwise().mean();
  const auto sigma = singular_values(logits);
  CHECK(sigma[static_cast<size_t>(k) - 1] > 1e-3 * sigma[0]);
  CHECK(sigma[static_cast<size_t>(k)] < 1e-13 * sigma[0]);
  CHECK(rank_of(A) == n);
}

TEST_CASE("weights of a longer sequence extend those of a shorter one, and a part has the rows of the whole",
          "[methods]") {
  const TestHead longer = square(70, 3, 4), shorter = square(40, 3, 4);
  const Tensors of_longer = drawn("synthesizer", longer)->state(), of_shorter = drawn("synthesizer", shorter)->state();
  CHECK(identical<double>(of_longer.at("R").topLeftCorner(40, 40), of_shorter.at("R")));
  for (const char* spec : {"synthesizer", "synthesizer:kind=factorised", "synthesizer:kind=dense", "gmlp"})
    for (const bool causal : {false, true}) {
      INFO(spec << (causal ? ", causal" : ""));
      const Mask all{.causal = causal}, last{.causal = causal, .offset = 50};
      const Matrix<double> whole = attend(*drawn(spec, longer, all), longer.head, all);
      const HeadData<double> part{longer.head.Q.bottomRows(20), longer.head.K, longer.head.V};
      const TestHead problem{{.nq = 20, .nk = 70, .d = 3, .dv = 4}, part, longer.calibration};
      CHECK(distance(attend(*drawn(spec, problem, last), part, last), whole.bottomRows(20)) < tolerance);
    }
}

TEST_CASE("rows where there are no weights are refused with the reason", "[methods]") {
  const TestHead problem = gaussian_problem({.nq = 30, .nk = 20, .d = 3, .dv = 4}, 0.8);
  for (const char* spec : {"synthesizer", "gmlp"}) {
    INFO(spec);
    CHECK_THROWS_WITH(drawn(spec, problem), ContainsSubstring("a row has position 29"));
    CHECK_THROWS_WITH(drawn(spec, problem, {.offset = -10}), ContainsSubstring("a row has position -10"));
    const Mask early{.causal = true, .offset = -12}, late{.causal = true, .offset = -10};
    const auto method = drawn(spec, problem, early);
    CHECK(contains(misuse_of([&] { attend(*method, problem.head, late); }), "drawn for 0 to 17"));
  }
  for (const char* spec : {"synthesizer", "gmlp"}) {
    const Params params("methods", spec);
    constexpr Index n = Index{1} << 24;  // 2 PB
    CHECK_THROWS_WITH(
        make_approximation<double>(
            {.shape = {.nq = n, .nk = n, .d = 1, .dv = 1}, .params = params, .streams = Streams(test_seed)}),
        ContainsSubstring("of memory and"));
  }
  for (const char* spec : {"fnet", "mixer"}) {
    INFO(spec);
    CHECK_THROWS_WITH(drawn(spec, problem), ContainsSubstring("one output for each token"));
    CHECK_THROWS_WITH(drawn(spec, square(20, 3, 4), {.causal = true}), ContainsSubstring("later ones included"));
  }
}

// Family-wise error rate 1e-6 over 4 two-sided tests: |z| <= 5.16. It finds a variance that is off by 20 %, which the
// last test plants: He's rule forgotten in the first layer is off by 50 %.
TEST_CASE("synthetic logits of unit-normal tokens have mean 0 and variance 1", "[statistics]") {
  constexpr double threshold = 5.16;
  constexpr Index d = 6, draws = 20000;
  Matrix<double> token = Matrix<double>::Constant(1, d, std::pow(d, -0.25));  // |x|^2 = d before it is scaled
  token(0, 1) *= -1;
  const HeadData<double> head{token, token, token};
  const auto z_of_variance = [&](const std::string& spec, double scale) {
    const Params params("methods", spec);
    double sum = 0, squares = 0;
    for (Index r = 0; r < draws; ++r) {
      const auto logits = synthetic_logits<double>({.shape = {.nq = 1, .nk = 1, .d = d, .dv = d},
                                                    .params = params,
                                                    .streams = Streams(test_seed),
                                                    .replicate = r});
      Matrix<double> B(1, 1);
      Context context;
      logits->logits(head.view(), 0, 0, context, B);
      const double square_of_logit = scale * B(0, 0) * B(0, 0);
      sum += square_of_logit;
      squares += square_of_logit * square_of_logit;
    }
    const double mean = sum / draws, variance = squares / draws - mean * mean;
    return (mean - 1) / std::sqrt(variance / draws);
  };
  for (const char* spec : {"synthesizer", "synthesizer:kind=factorised,k=16", "synthesizer:kind=dense,hidden=16",
                           "synthesizer:kind=factorised-dense,hidden=16"}) {
    INFO(spec);
    CHECK(std::abs(z_of_variance(spec, 1)) < threshold);
  }
  CHECK(std::abs(z_of_variance("synthesizer:kind=dense,hidden=16", 0.8)) > threshold);
}

}  // namespace attnbench::mixers_test
