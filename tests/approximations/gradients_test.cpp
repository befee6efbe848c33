// The backward passes: against dense formulae with the whole matrix in memory (1e-9 in double, 1e-4 in float), against
// central differences of attend for every method that has gradients, and against each other.
//
// Central differences with a step h = 1e-5 err by h^2/6 times a third derivative and by rounding, 1e-16 / h times the
// condition of the row, both about 1e-10. Derivatives of a quotient grow with powers of the condition, the third with
// its cube: rows beyond 10 are left out, and 1e-7 is that cube.
#include <cmath>

#include "approximations/linear/linear_attention.hpp"
#include "tests/cases.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/oracle.hpp"

namespace attnbench::gradients_test {

namespace {

template <class T>
struct HeadGradients {
  Matrix<T> Q, K, V;
};

template <class T>
HeadGradients<T> backward(const Differentiable<T>& method, const HeadData<T>& head, Mask mask, const Matrix<T>& G) {
  Matrix<T> out = Matrix<T>::Constant(head.Q.rows(), head.V.cols(), std::numeric_limits<T>::quiet_NaN());
  HeadGradients<T> d{Matrix<T>(head.Q.rows(), head.Q.cols()), Matrix<T>(head.K.rows(), head.K.cols()),
                     Matrix<T>(head.V.rows(), head.V.cols())};
  for (Matrix<T>* X : {&d.Q, &d.K, &d.V}) X->setConstant(std::numeric_limits<T>::quiet_NaN());
  std::vector<T> saved;
  Context context;
  method.forward(head.view(), mask, context, out, saved);
  method.backward(head.view(), mask, out, saved, G, context, {d.Q, d.K, d.V});
  return d;
}

Matrix<double> random_like(const Matrix<double>& X, const char* what) {
  auto generator = Streams(test_seed).stream("gradients test", what, X.rows(), X.cols());
  return standard_normal(generator, X.rows(), X.cols());
}

double relative_difference(const Matrix<double>& got, const Matrix<double>& want, double size) {
  if (!got.allFinite()) return INFINITY;
  return want.size() == 0 ? 0 : (got - want).cwiseAbs().maxCoeff() / size;
}

double largest(const HeadGradients<double>& d) {
  return std::max({1e-300, d.Q.cwiseAbs().maxCoeff(), d.K.cwiseAbs().maxCoeff(), d.V.cwiseAbs().maxCoeff()});
}

double worst(const HeadGradients<double>& got, const HeadGradients<double>& want) {
  const double size = largest(want);
  return std::max({relative_difference(got.Q, want.Q, size), relative_difference(got.K, want.K, size),
                   relative_difference(got.V, want.V, size)});
}

// G with rows of 0 where rounding grows: a normaliser that nearly cancels has no gradient worth comparing.
Matrix<double> well_conditioned_loss(const Case& one, const Approximation<double>& method, double most) {
  Matrix<double> G = random_like(Matrix<double>(one.shape.nq, one.shape.dv), "G");
  const auto condition = row_conditions(one, method);
  for (Index i = 0; i < G.rows(); ++i)
    if (condition[static_cast<size_t>(i)] > most) G.row(i).setZero();
  return G;
}

// phi(X) and its pullback, without any stabilising.
struct Features {
  Features(const FeatureMap<double>& feature_map, const Matrix<double>& rows_of, Side of)
      : map(feature_map),
        X(rows_of),
        side(of),
        block(X.rows(), map.features()),
        log_scale(static_cast<size_t>(X.rows())) {
    Context context;
    map.map(context, X, side, 0, block, log_scale);
    phi = map.form() == Form::exponents ? Matrix<double>(block.array().exp()) : block;
    for (Index i = 0; i < X.rows(); ++i) phi.row(i) *= std::exp(log_scale[static_cast<size_t>(i)]);
  }
  Matrix<double> pullback(const Matrix<double>& d_phi) const {
    Matrix<double> d_block = d_phi.cwiseProduct(phi), dX(X.rows(), X.cols());
    std::vector<double> d_log_scale(log_scale.size());
    for (Index i = 0; i < X.rows(); ++i) d_log_scale[static_cast<size_t>(i)] = d_block.row(i).sum();
    if (map.form() == Form::values)
      for (Index i = 0; i < X.rows(); ++i) d_block.row(i) = d_phi.row(i) * std::exp(log_scale[static_cast<size_t>(i)]);
    Context context;
    map.pullback(context, X, side, 0, block, d_block, d_log_scale, dX);
    return dX;
  }

  const FeatureMap<double>& map;
  const Matrix<double>& X;
  Side side;
  Matrix<double> block, phi;
  std::vector<double> log_scale;
};

// out = rownorm(W o mask) V with W = phi(q) phi(k)^T, and dW_ij = (G_i.v_j - G_i.out_i) / den_i where the mask is open.
HeadGradients<double> dense_gradients(const FeatureMap<double>& map, const HeadData<double>& head, Mask mask,
                                      const Matrix<double>& G) {
  const Features q(map, head.Q, Side::query), k(map, head.K, Side::key);
  Matrix<double> W = q.phi * k.phi.transpose();
  for (Index i = 0; i < W.rows(); ++i) W.row(i).tail(W.cols() - mask.visible(i, W.cols())).setZero();
  Matrix<double> dW = Matrix<double>::Zero(W.rows(), W.cols()), A = dW;
  for (Index i = 0; i < W.rows(); ++i) {
    const double sum = W.row(i).sum();
    if (sum == 0) continue;
    A.row(i) = W.row(i) / sum;
    const Matrix<double> out = A.row(i) * head.V;
    for (Index j = 0; j < mask.visible(i, W.cols()); ++j)
      dW(i, j) = (G.row(i).dot(head.V.row(j)) - G.row(i).dot(out.row(0))) / sum;
  }
  return {q.pullback(dW * k.phi), k.pullback(dW.transpose() * q.phi), A.transpose() * G};
}

template <class T>
std::unique_ptr<FeatureMap<T>> map_of(const Params& params, const TestHead& problem) {
  const Head<double> calibration = problem.calibration.view();
  return make_feature_map<T>(
      {.shape = problem.shape, .params = params, .streams = Streams(test_seed), .calibration = &calibration});
}

std::vector<Params> all_maps() {
  std::vector<Params> all;
  for (const auto& name : catalogue("features").names()) {
    const Params params("methods", "performer:features=" + name);
    all.push_back(params.has("m") ? params.with("m", "32") : params.with("r", "6"));
  }
  for (const auto& name : catalogue("deterministic-features").names())
    all.emplace_back("methods", "linear:features=" + name);
  return all;
}

}  // namespace

TEST_CASE("gradients of linear attention are the dense formula's, for every map", "[methods]") {
  for (const Params& params : all_maps())
    for (const TestHead& problem : problems()) {
      if (problem.shape.nk > 300) continue;
      const auto map = map_of<double>(params, problem);
      // Where features are 0 or 1, normalisers cancel to rounding or not at all; their gradient is 0 (pullback test).
      if (!map->differentiable() || oracle::jumps(params)) continue;
      for (const Mask& mask : masks(problem.shape)) {
        INFO(params.spec() << " at nq=" << problem.shape.nq << ", nk=" << problem.shape.nk << ", d=" << problem.shape.d
                           << ", " << to_string(mask));
        const LinearAttention<double> engine(map_of<double>(params, problem));
        Shape shape = problem.shape;
        shape.mask = mask;
        const Case one{params, find<MethodEntry>(params.name()).claims(params, shape), shape, problem};
        const Matrix<double> G = well_conditioned_loss(one, engine, 1e3);
        const auto want = dense_gradients(*map, problem.head, mask, G);
        CHECK(worst(backward<double>(engine, problem.head, mask, G), want) < 1e-9);
        const LinearAttention<float> single(map_of<float>(params, problem));
        const auto got = backward<float>(single, problem.head.cast<float>(), mask, G.cast<float>());
        // Float's rounding grows by the condition of a row, which G bounds; jumps and kinks may be crossed by it.
        if (one.claims.non_negative)
          CHECK(worst({got.Q.cast<double>(), got.K.cast<double>(), got.V.cast<double>()}, want) < 1e-4);
      }
    }
}

// The entries of each chunk's keys are larger by `rise` than those of the chunk before, so that the scale of the sums
// moves with every chunk: what later rows leave for earlier keys must move back with it, numerators and normalisers
// alike.
template <class T>
double error_at_rising_keys(const std::string& features, double rise, Index chunks) {
  TestHead problem = gaussian_problem({.nq = 64 * chunks, .nk = 64 * chunks, .d = 4, .dv = 3}, 0.8);
  for (Index j = 0; j < problem.shape.nk; ++j) problem.head.K.row(j).array() += rise * static_cast<double>(j / 64);
  problem.head.K = problem.head.K.cast<float>().cast<double>();
  const Params params("methods", "linear:features=" + features);
  const Mask mask{.causal = true};
  const Matrix<double> G = random_like(problem.head.V, "G");
  const auto want = dense_gradients(*map_of<double>(params, problem), problem.head, mask, G);
  const LinearAttention<T> engine(map_of<T>(params, problem));
  const auto got = backward<T>(engine, problem.head.cast<T>(), mask, G.cast<T>());
  return worst({got.Q.template cast<double>(), got.K.template cast<double>(), got.V.template cast<double>()}, want);
}

TEST_CASE("gradients are the dense formula's where the scale moves with every chunk of keys", "[methods]") {
  for (const std::string features : {"softmax-exp", "exp"}) {
    INFO(features);
    CHECK(error_at_rising_keys<double>(features, 310, 3) < 1e-9);  // double allows e^300 over the scale
    CHECK(error_at_rising_keys<float>(features, 45, 2) < 1e-4);    // and float e^40
  }
}

TEST_CASE("every map with a transcription has a gradient", "[methods]") {
  const TestHead problem = gaussian_problem({.nq = 5, .nk = 5, .d = 4, .dv = 2}, 1);
  for (const Params& params : all_maps()) {
    INFO(params.spec());
    CHECK((map_of<double>(params, problem)->differentiable() || oracle::unknown_features(params)));
  }
}

TEST_CASE("a backward pass that forgets the normaliser is caught", "[methods]") {
  // The gradients of the paper's eq. 13-15 alone: gamma = 0, zeta = 0.
  const TestHead problem = gaussian_problem({.nq = 70, .nk = 70, .d = 4, .dv = 3}, 0.8);
  const Params params("methods", "linear");
  const auto map = map_of<double>(params, problem);
  const LinearAttention<double> engine(map_of<double>(params, problem));
  const Mask mask{.causal = true};
  Matrix<double> G = random_like(problem.head.V, "G");
  const auto full = backward<double>(engine, problem.head, mask, G);
  const Matrix<double> out = attend(engine, problem.head, mask);
  // With G_i orthogonal to out_i both agree: then gamma is 0.
  Matrix<double> orthogonal = G;
  for (Index i = 0; i < G.rows(); ++i)
    orthogonal.row(i) -= G.row(i).dot(out.row(i)) / out.row(i).squaredNorm() * out.row(i);
  const auto numerator = [&](const Matrix<double>& loss) {
    const Features q(*map, problem.head.Q, Side::query), k(*map, problem.head.K, Side::key);
    Matrix<double> d_phi = Matrix<double>::Zero(70, 4), S = Matrix<double>::Zero(4, 3), z = Matrix<double>::Zero(1, 4);
    for (Index i = 0; i < 70; ++i) {
      S += k.phi.row(i).transpose() * problem.head.V.row(i);
      z += k.phi.row(i);
      d_phi.row(i) = loss.row(i) * S.transpose() / q.phi.row(i).dot(z.row(0));
    }
    return q.pullback(d_phi);
  };
  CHECK((numerator(orthogonal) - backward<double>(engine, problem.head, mask, orthogonal).Q).norm() <
        1e-9 * full.Q.norm());
  CHECK((numerator(G) - full.Q).norm() > 0.1 * full.Q.norm());
}

TEST_CASE("the tiled backward pass of softmax is the materialised one", "[methods]") {
  for (const TestHead& problem : problems())
    for (const Mask& mask : masks(problem.shape)) {
      INFO(to_string(mask) << ", nk=" << problem.shape.nk);
      Shape shape = problem.shape;
      shape.mask = mask;
      const auto tiled = draw_method<double>(Params("methods", "softmax"), shape, problem);
      const auto dense = draw_method<double>(Params("methods", "softmax:form=materialised"), shape, problem);
      const Matrix<double> G = random_like(Matrix<double>(shape.nq, shape.dv), "G");
      const auto want = backward(*dense->differentiable(), problem.head, mask, G);
      CHECK(worst(backward(*tiled->differentiable(), problem.head, mask, G), want) < 1e-9);
      const auto single = draw_method<float>(Params("methods", "softmax"), shape, problem);
      const auto got = backward<float>(*single->differentiable(), problem.head.cast<float>(), mask, G.cast<float>());
      CHECK(worst({got.Q.cast<double>(), got.K.cast<double>(), got.V.cast<double>()}, want) < 1e-4);
    }
}

TEST_CASE("where no row sees a key, every gradient is 0", "[methods]") {
  const TestHead problem = gaussian_problem({.nq = 70, .nk = 70, .d = 4, .dv = 3}, 1);
  const Matrix<double> G = random_like(problem.head.V, "G");
  for (const Mask mask : {Mask{.keys = 0}, Mask{.causal = true, .offset = -70}, Mask{.causal = true, .keys = 0}})
    for (const CausalBackward kind : {CausalBackward::recompute, CausalBackward::subtract}) {
      INFO(to_string(mask));
      const LinearAttention<double> engine(map_of<double>(Params("methods", "linear"), problem), kind);
      const auto got = backward<double>(engine, problem.head, mask, G);
      for (const Matrix<double>* X : {&got.Q, &got.K, &got.V}) CHECK((X->array() == 0).all());
    }
}

TEST_CASE("taking keys out of the state again gives the same gradients in double, and loses digits in float",
          "[methods]") {
  const TestHead problem = gaussian_problem({.nq = 4096, .nk = 4096, .d = 8, .dv = 4}, 1);
  const Params params("methods", "linear");
  const Mask mask{.causal = true};
  const Matrix<double> G = random_like(problem.head.V, "G");
  const auto gradients = [&]<class T>(T, CausalBackward kind) {
    const LinearAttention<T> engine(map_of<T>(params, problem), kind);
    const auto d = backward<T>(engine, problem.head.cast<T>(), mask, G.cast<T>());
    return HeadGradients<double>{d.Q.template cast<double>(), d.K.template cast<double>(), d.V.template cast<double>()};
  };
  const auto exact = gradients(1.0, CausalBackward::recompute);
  CHECK(worst(gradients(1.0, CausalBackward::subtract), exact) < 1e-9);
  const double recomputed = worst(gradients(1.0F, CausalBackward::recompute), exact);
  const double subtracted = worst(gradients(1.0F, CausalBackward::subtract), exact);
  CHECK(recomputed < 1e-5);
  CHECK(subtracted > 3 * recomputed);
}

}  // namespace attnbench::gradients_test
