// Inputs whose answer is known without any transcription, and the numerical edges: norms at which products of features
// underflow, ties, codes that nothing uses, misuse.
#include <cmath>
#include <numbers>

#include "approximations/linear/linear_attention.hpp"
#include "tests/cases.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/oracle.hpp"

namespace attnbench::known_answers_test {

namespace {

constexpr double tolerance = 1e-12;  // see methods_test.cpp

template <class T = double>
Matrix<T> result(const std::string& spec, const TestHead& problem, Mask mask = {}, const Tensors* state = nullptr) {
  Shape shape = problem.shape;
  shape.mask = mask;
  const auto method = draw_method<T>(Params("methods", spec), shape, problem, state);
  return attend(*method, problem.head.template cast<T>(), mask);
}

double difference(const Matrix<double>& a, const Matrix<double>& b) { return (a - b).cwiseAbs().maxCoeff(); }

TestHead small_problem() { return gaussian_problem({.nq = 65, .nk = 65, .d = 6, .dv = 4}, 0.8); }

// Every row scaled to that norm.
Matrix<double> with_norms(Matrix<double> X, double norm) {
  for (Index i = 0; i < X.rows(); ++i) X.row(i) *= norm / X.row(i).norm();
  return X;
}

// The largest relative rounding error of a weight of positive features: the exponents of query and key are dot
// products of length d, each off by d eps |omega| |x|, and half squared norms.
template <class T>
double exponent_rounding(const Tensors& state, const HeadData<double>& head) {
  const Matrix<double>& W = state.at("projection");
  const double norm = std::max(head.Q.rowwise().norm().maxCoeff(), head.K.rowwise().norm().maxCoeff());
  const double exponent = static_cast<double>(W.cols()) * (W.rowwise().norm().maxCoeff() * norm + norm * norm / 2);
  return 2 * exponent * static_cast<double>(std::numeric_limits<T>::epsilon());
}

// The largest error of performer:m=32 with positive features, and of its rows, over what rounding allows.
template <class T>
double positive_features_error(const std::string& spec, const TestHead& problem, Mask mask) {
  Shape shape = problem.shape;
  shape.mask = mask;
  const Params params("methods", spec);
  const auto method = draw_method<T>(params, shape, problem);
  const auto want = oracle::attention(params, method->state(), problem.head, mask);
  const HeadData<T> head = problem.head.template cast<T>();
  // A weight off by r moves a weighted mean of values of size v by at most 2 r v.
  const double allowed = 2 * exponent_rounding<T>(method->state(), problem.head) * problem.head.V.cwiseAbs().maxCoeff();
  Matrix<T> A(shape.nq, shape.nk);
  Context context;
  method->rows()->attention_rows(head.view(), mask, 0, context, A);
  const Matrix<double> by_rows = A.template cast<double>() * problem.head.V;
  return std::max(worst_error(attend(*method, head, mask).template cast<double>(), want.out, want.condition, allowed),
                  worst_error(by_rows, want.out, want.condition, allowed));
}

// Features that depend on the position alone and have a scale, so that phi_i.phi_j = scale_i scale_j cos(c (i - j)).
class PositionFeatures final : public FeatureMap<double> {
 public:
  Index features() const override { return 2; }
  Form form() const override { return Form::values; }
  void map(Context&, const In<double>& X, Side, Index first, Out<double> block,
           std::span<double> log_scale) const override {
    for (Index i = 0; i < X.rows(); ++i) {
      const double position = static_cast<double>(first + i);
      block(i, 0) = std::cos(step * position);
      block(i, 1) = std::sin(step * position);
      log_scale[static_cast<size_t>(i)] = slope * position;
    }
  }

  static constexpr double step = std::numbers::pi / 2 / 400, slope = 0.01;
};

}  // namespace

TEST_CASE("softmax does not see a vector added to all keys", "[methods]") {
  TestHead problem = small_problem();
  const Matrix<double> before = result("softmax", problem);
  problem.head.K.rowwise() += Eigen::RowVectorXd::LinSpaced(6, -2, 3);
  CHECK(difference(result("softmax", problem), before) < tolerance);
}

TEST_CASE("zero queries give softmax and vq the mean of the values", "[methods]") {
  TestHead problem = small_problem();
  problem.head.Q.setZero();
  for (const std::string spec : {"softmax", "vq:codes=8", "uniform"}) {
    INFO(spec);
    const Matrix<double> out = result(spec, problem, {.keys = 40}), causal = result(spec, problem, {.causal = true});
    for (Index i = 0; i < 65; ++i) {
      CHECK(difference(out.row(i), problem.head.V.topRows(40).colwise().mean()) < tolerance);
      CHECK(difference(causal.row(i), problem.head.V.topRows(i + 1).colwise().mean()) < tolerance);
    }
  }
}

TEST_CASE("doubling every key with its value changes no method that looks at content alone", "[methods]") {
  const TestHead once = small_problem();
  TestHead twice = once;
  twice.shape.nk = 130;
  twice.head.K = once.head.K.replicate(2, 1);
  twice.head.V = once.head.V.replicate(2, 1);
  for (const std::string spec : {"softmax", "uniform", "linear", "performer:m=32", "vq:codes=8"}) {
    INFO(spec);
    CHECK(difference(result(spec, twice), result(spec, once)) < tolerance);
  }
}

TEST_CASE("local attention with window 0 is the identity", "[methods]") {
  const TestHead problem = small_problem();
  CHECK(identical(result("local:window=0", problem), problem.head.V));
  CHECK(identical(result("local:window=0", problem, {.causal = true}), problem.head.V));
}

TEST_CASE("truncated to self, renormalised linear attention is the identity", "[methods]") {
  const TestHead problem = small_problem();
  for (const std::string base : {"linear", "performer,m=32", "performer,features=trig,m=32"}) {
    INFO(base);
    CHECK(difference(result("truncated:window=0,base=" + base, problem), problem.head.V) < tolerance);
  }
}

TEST_CASE("truncated to self, not renormalised, linear attention keeps the diagonal of its matrix", "[methods]") {
  TestHead problem = small_problem();
  for (const std::string base : {"linear", "performer"})
    for (const bool causal : {false, true}) {
      INFO(base << (causal ? ", causal" : ""));
      const std::string m = base == "performer" ? "m=32" : "inputs=scaled";
      const auto method = draw_method<double>(Params("methods", base + ":" + m), problem.shape, problem);
      const auto full =
          oracle::attention(Params("methods", base + ":" + m), method->state(), problem.head, {.causal = causal});
      const Matrix<double> out =
          result("truncated:window=0,renormalise=false,base=" + base + "," + m, problem, {.causal = causal});
      CHECK(difference(out, full.A.diagonal().asDiagonal() * problem.head.V) < tolerance);
    }
}

TEST_CASE("truncated takes any method with a kernel of content alone", "[methods]") {
  const TestHead problem = small_problem();
  for (const bool causal : {false, true}) {
    const Mask mask{.causal = causal};
    CHECK(difference(result("truncated:base=softmax,window=5", problem, mask),
                     result("local:window=5", problem, mask)) < tolerance);
    // Not renormalised, it keeps the band of the softmax matrix.
    const auto exact = oracle::attention(Params("methods", "softmax"), {}, problem.head, mask);
    Matrix<double> band = exact.A;
    for (Index i = 0; i < band.rows(); ++i)
      for (Index j = 0; j < band.cols(); ++j)
        if (std::abs(i - j) > 5) band(i, j) = 0;
    CHECK(difference(result("truncated:base=softmax,window=5,renormalise=false", problem, mask),
                     band * problem.head.V) < tolerance);
  }
  for (const char* spec : {"truncated:base=uniform", "truncated:base=nystrom", "truncated:base=top-k"}) {
    INFO(spec);
    CHECK_THROWS_WITH(result(spec, problem),
                      ContainsSubstring("offers no kernel of content alone; expected one that does, "
                                        "such as linear, performer, vq or softmax"));
  }
}

TEST_CASE("vq with the keys as its codebook is softmax", "[methods]") {
  const TestHead problem = small_problem();
  const Tensors keys{{"codebook", problem.head.K.colwise().reverse()}};
  for (const bool causal : {false, true})
    CHECK(difference(result("vq:codes=65", problem, {.causal = causal}, &keys),
                     result("softmax", problem, {.causal = causal})) < tolerance);
}

TEST_CASE("vq breaks ties to the lowest index", "[methods]") {
  TestHead problem = gaussian_problem({.nq = 3, .nk = 2, .d = 1, .dv = 2}, 1);
  problem.head.Q << 1, -1, 2;
  problem.head.K << 0, 3;
  problem.head.V << 1, 0, 0, 1;
  // Key 0 is as far from code 1 (-1) as from code 2 (1): weights exp(-q), not exp(q). Key 3 goes to code 0.
  const Tensors codebook{{"codebook", Matrix<double>{{4.0}, {-1.0}, {1.0}}}};
  const Matrix<double> out = result("vq:codes=3", problem, {}, &codebook);
  for (Index i = 0; i < 3; ++i) {
    const double q = problem.head.Q(i, 0), self = std::exp(-q) / (std::exp(-q) + std::exp(4 * q));
    CHECK(std::abs(out(i, 0) - self) < tolerance);
    CHECK(std::abs(out(i, 1) - (1 - self)) < tolerance);
  }
}

TEST_CASE("codes that no key uses have no part in vq, however large", "[methods]") {
  const TestHead problem = small_problem();
  Matrix<double> codes = problem.head.K.topRows(9);
  const Tensors used{{"codebook", codes.topRows(8)}};
  codes.row(8).setConstant(2000);  // logits of thousands in either direction
  const Tensors with_unused{{"codebook", codes}};
  for (const bool causal : {false, true}) {
    const Mask mask{.causal = causal};
    CHECK(difference(result("vq:codes=9", problem, mask, &with_unused), result("vq:codes=8", problem, mask, &used)) <
          tolerance);
    CHECK(result<float>("vq:codes=9", problem, mask, &with_unused).allFinite());
  }
}

TEST_CASE("a codebook learnt from fewer keys than codes is smaller, and its state can be given back", "[methods]") {
  const TestHead problem = gaussian_problem({.nq = 5, .nk = 5, .d = 3, .dv = 2}, 1);
  const auto method = draw_method<double>(Params("methods", "vq:codes=8"), problem.shape, problem);
  const Tensors state = method->state();
  CHECK(state.at("codebook").rows() == 5);
  CHECK(identical(result("vq:codes=8", problem, {}, &state), attend(*method, problem.head, {})));
}

TEST_CASE("linformer with a permutation for E and F is softmax", "[methods]") {
  const TestHead problem = small_problem();
  Matrix<double> reversed = Matrix<double>::Identity(65, 65).rowwise().reverse();
  const Tensors state{{"E", reversed}, {"F", reversed}};
  CHECK(difference(result("linformer:r=65", problem, {}, &state), result("softmax", problem)) < tolerance);
}

TEST_CASE("mean pooling is exact when keys and values are constant on equal segments", "[methods]") {
  TestHead problem = gaussian_problem({.nq = 20, .nk = 60, .d = 6, .dv = 4}, 0.8);
  for (Index j = 0; j < 60; ++j) {
    problem.head.K.row(j) = problem.head.K.row(j / 5 * 5).eval();
    problem.head.V.row(j) = problem.head.V.row(j / 5 * 5).eval();
  }
  CHECK(difference(result("linformer:r=12,projection=mean-pool", problem), result("softmax", problem)) < tolerance);
  // Ten of the twelve segments when the last ten keys are padding.
  CHECK(difference(result("linformer:r=10,projection=mean-pool", problem, {.keys = 50}),
                   result("softmax", problem, {.keys = 50})) < tolerance);
}

TEST_CASE("random features with zero projections weigh keys by their norms alone", "[methods]") {
  const TestHead problem = small_problem();
  const Tensors zero{{"projection", Matrix<double>::Zero(4, 6)}};
  for (const auto& [features, sign] : {std::pair{"positive", -0.5}, {"trig", 0.5}}) {
    INFO(features);
    const Eigen::VectorXd weights = (sign * problem.head.K.rowwise().squaredNorm().array()).exp();
    const Eigen::RowVectorXd want = weights.transpose() * problem.head.V / weights.sum();
    const Matrix<double> out = result(std::string("performer:m=4,features=") + features, problem, {}, &zero);
    CHECK((out.rowwise() - want).cwiseAbs().maxCoeff() < tolerance);
  }
}

TEST_CASE("elu features of non-positive numbers are exponentials", "[methods]") {
  TestHead problem = gaussian_problem({.nq = 65, .nk = 65, .d = 1, .dv = 4}, 1);
  problem.head.Q = -problem.head.Q.cwiseAbs();
  problem.head.K = -problem.head.K.cwiseAbs();
  // One channel: phi(q) cancels, and every row is the softmax of the keys themselves.
  const Eigen::VectorXd weights = problem.head.K.col(0).array().exp();
  const Eigen::RowVectorXd want = weights.transpose() * problem.head.V / weights.sum();
  CHECK((result("linear", problem).rowwise() - want).cwiseAbs().maxCoeff() < tolerance);
}

TEST_CASE("the engine tells a feature map where its block stands", "[methods]") {
  const LinearAttention<double> method(std::make_unique<PositionFeatures>());
  const HeadData<double> head = gaussian_problem({.nq = 300, .nk = 310, .d = 2, .dv = 3}, 1).head;
  for (const Mask mask : {Mask{}, Mask{.keys = 290}, Mask{.causal = true}, Mask{.causal = true, .offset = 10}}) {
    INFO(to_string(mask));
    Matrix<double> A = Matrix<double>::Zero(300, 310);
    for (Index i = 0; i < 300; ++i) {
      for (Index j = 0; j < mask.visible(i, 310); ++j)
        A(i, j) = std::cos(PositionFeatures::step * static_cast<double>(i - j)) *
                  std::exp(PositionFeatures::slope * static_cast<double>(j));
      A.row(i) /= A.row(i).sum();
    }
    CHECK(difference(attend(method, head, mask), A * head.V) < tolerance);
    Matrix<double> rows_of_A(100, 310);
    Context context;
    method.attention_rows(head.view(), mask, 150, context, rows_of_A);
    CHECK(difference(rows_of_A, A.middleRows(150, 100)) < tolerance);
  }
}

TEST_CASE("rows sum to one in float at norms of 40", "[methods]") {
  TestHead problem = gaussian_problem({.nq = 130, .nk = 130, .d = 64, .dv = 2}, 1);
  problem.head.Q = with_norms(problem.head.Q, 40);
  problem.head.K = with_norms(problem.head.K, 40);
  HeadData<float> head = problem.head.cast<float>();
  head.V.setOnes();
  for (const Params& variant : all_variants())
    for (const Mask& mask : masks(problem.shape)) {
      Shape shape = problem.shape;
      shape.mask = mask;
      const Params params = with_small_budgets(variant, shape);
      const Claims claims = find<MethodEntry>(params.name()).claims(params, shape);
      if (!claims.row_stochastic || !claims.non_negative || !claims.no_form.empty()) continue;
      INFO(params.spec() << ", " << to_string(mask));
      const auto method = draw_method<float>(params, shape, problem);
      const Matrix<float> out = attend(*method, head, mask);
      std::vector<std::vector<Index>> keys(static_cast<size_t>(shape.nq));  // padding leaves rows of a pattern empty
      Context context;
      if (method->pattern()) method->pattern()->keys_of_rows(head.view(), mask, 0, context, keys);
      // Numerator and normaliser add the same weights, at most 130 keys times 64 features, in another order.
      const double allowed = 2 * (130 + 64) * static_cast<double>(std::numeric_limits<float>::epsilon());
      for (Index i = 0; i < out.rows(); ++i) {
        const bool empty =
            mask.visible(i, shape.nk) == 0 || (method->pattern() && keys[static_cast<size_t>(i)].empty());
        const float want = empty ? 0 : 1;
        CHECK(std::abs(out(i, 0) - want) <= allowed);
      }
    }
}

TEST_CASE("positive features are right at norms where their products underflow", "[methods]") {
  const auto check = [](const std::string& what, const TestHead& problem, double single_norm, double double_norm) {
    for (const std::string spec : {"performer:m=32", "truncated:window=3,base=performer,m=32",
                                   "truncated:window=3,base=performer,m=32,renormalise=false"})
      for (const Mask mask : {Mask{}, Mask{.causal = true}, Mask{.causal = true, .offset = -3}}) {
        INFO(what << ", " << spec << ", " << to_string(mask));
        TestHead scaled = problem;
        scaled.head.Q = (problem.head.Q * single_norm).cast<float>().cast<double>();
        scaled.head.K = (problem.head.K * single_norm).cast<float>().cast<double>();
        CHECK(positive_features_error<float>(spec, scaled, mask) < 1);
        scaled.head.Q = problem.head.Q * double_norm;
        scaled.head.K = problem.head.K * double_norm;
        CHECK(positive_features_error<double>(spec, scaled, mask) < 1);
      }
  };
  TestHead problem = gaussian_problem({.nq = 70, .nk = 70, .d = 4, .dv = 3}, 1);
  problem.head.Q = with_norms(problem.head.Q, 1);
  problem.head.K = with_norms(problem.head.K, 1);
  check("random directions", problem, 20, 100);
  // Where a query's features are largest its key's are smallest.
  TestHead opposed = problem;
  opposed.head.K = -opposed.head.Q;
  check("keys opposed to queries", opposed, 20, 200);
  // The keys that the first rows see weigh exp(-200) and exp(-5000) of later ones in the same chunk.
  TestHead uneven = problem;
  uneven.head.K.bottomRows(60) *= 0.05;
  check("small keys after large ones", uneven, 20, 100);
  // And the reverse: what a chunk's rows have in common is far below what some of them add.
  TestHead rising = problem;
  rising.head.K.topRows(66) *= 0.05;
  check("large keys after small ones", rising, 20, 100);
}

TEST_CASE("fewer projection vectors are the first of more, and every head and replicate has its own", "[methods]") {
  for (const auto& name : catalogue("projections").names()) {
    INFO(name);
    const Params params("methods", "performer:projection=" + name);
    const auto draw = [&](Index m, Index head, Index replicate) {
      const Draw one{.shape = {.nq = 8, .nk = 8, .d = 6, .dv = 6},
                     .params = params,
                     .streams = Streams(test_seed),
                     .head = head,
                     .replicate = replicate};
      return find<ProjectionEntry>(name).draw(one, m, 6);
    };
    const Matrix<double> W = draw(32, 0, 0);
    CHECK(identical(draw(32, 0, 0), W));
    if (find<ProjectionEntry>(name).law(params, 6).nested) CHECK(identical<double>(draw(16, 0, 0), W.topRows(16)));
    CHECK_FALSE(identical(draw(32, 1, 0), W));
    CHECK_FALSE(identical(draw(32, 0, 1), W));
  }
}

TEST_CASE("rows of an orthogonal block are orthogonal, also in a partial one", "[methods]") {
  const Params params("methods", "performer:projection=orthogonal,m=9");
  const Matrix<double> W = draw_projection(
      {.shape = {.nq = 8, .nk = 8, .d = 6, .dv = 6}, .params = params, .streams = Streams(test_seed)}, 9);
  for (Index i = 0; i < 9; ++i)
    for (Index j = 0; j < i; ++j)
      if (i / 6 == j / 6) CHECK(std::abs(W.row(i).dot(W.row(j))) < tolerance * W.row(i).norm() * W.row(j).norm());
}

TEST_CASE("what a method cannot be drawn for is refused with a reason", "[methods]") {
  const TestHead problem = small_problem();
  const auto draw = [&](const std::string& spec, Shape shape, const Tensors* state = nullptr) {
    return draw_method<double>(Params("methods", spec), shape, problem, state);
  };
  for (const Shape shape : {Shape{.nq = 0, .nk = 65, .d = 6, .dv = 4}, Shape{.nq = 65, .nk = 0, .d = 6, .dv = 4},
                            Shape{.nq = 65, .nk = 65, .d = 0, .dv = 4}, Shape{.nq = 65, .nk = 65, .d = 6, .dv = 0}})
    CHECK_THROWS_AS(draw("softmax", shape), Misuse);
  CHECK_THROWS_WITH(draw("linformer:r=66,projection=mean-pool", problem.shape), ContainsSubstring("66 segments of 65"));
  const Tensors wrong{{"projection", Matrix<double>::Zero(32, 5)},
                      {"codebook", Matrix<double>::Zero(8, 5)},
                      {"E", Matrix<double>::Zero(16, 64)}};
  for (const std::string spec : {"performer:m=32", "vq:codes=8", "linformer:r=16"}) {
    INFO(spec);
    CHECK_THROWS_WITH(draw(spec, problem.shape, &wrong), ContainsSubstring("expected"));
  }
  const Params vq("methods", "vq");
  CHECK_THROWS_WITH(make_approximation<double>({.shape = problem.shape, .params = vq, .streams = Streams(test_seed)}),
                    ContainsSubstring("calibration"));
}

}  // namespace attnbench::known_answers_test
