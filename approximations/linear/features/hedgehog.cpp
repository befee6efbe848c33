// Hedgehog: a feature map that learns to imitate softmax attention. Zhang et al., arXiv:2402.04347, section 4; LoLCATs,
// Zhang et al., arXiv:2410.10254, section 3.1 (attention transfer).
//   phi(q) = [softmax(W_q q); softmax(-W_q q)],  phi(k) = [softmax(W_k k); softmax(-W_k k)], W d x d       methods.md
//   C12 W_q, W_k lessen sum_i sum_j -A_ij log A'_ij on the calibration head, A its softmax attention and A' that of the
//   map
// Fitted by `steps` steps of Adam (rate 0.01, 0.9, 0.999) with the gradient over at most 256 rows and as many keys,
// evenly spaced, without a mask: nothing is drawn. They start at d^(1/4) I, the identity on inputs that are not scaled,
// which is what steps=0 gives. 2d features, positive. The paper fits with all heads of a model, on text, in some
// thousand steps.
#include <cmath>

#include "approximations/linear/features/softmax_halves.hpp"
#include "approximations/linear/input_transform.hpp"
#include "harness/core/feature_map.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::hedgehog_map {
namespace {

constexpr Index most_rows = 256;
constexpr double least_weight = 1e-12;  // of a pair, whose logarithm is taken

Matrix<double> evenly(const In<double>& X) {
  const Index count = std::min(most_rows, X.rows());
  Matrix<double> some(count, X.cols());
  for (Index i = 0; i < count; ++i) some.row(i) = X.row(i * X.rows() / count);
  return some;
}

// One side of the map while it learns: tokens X, weights W and Adam's moments.
class Learner {
 public:
  explicit Learner(const In<double>& X)
      : X_(evenly(X)),
        W_(std::pow(static_cast<double>(X.cols()), 0.25) * Matrix<double>::Identity(X.cols(), X.cols())),
        first_(Matrix<double>::Zero(X.cols(), X.cols())),
        second_(first_) {}

  const Matrix<double>& X() const { return X_; }
  const Matrix<double>& W() const { return W_; }
  const Matrix<double>& features(Context& context) {
    Matrix<double> moved(X_.rows(), X_.cols());
    multiply_transposed<double>(context, X_, W_, moved);
    features_.resize(X_.rows(), 2 * X_.cols());
    softmax_halves<double>(moved, features_);
    return features_;
  }
  // slopes: of the loss with respect to the features.
  void step(const Matrix<double>& slopes, Index number, Context& context) {
    constexpr double rate = 0.01, keep_first = 0.9, keep_second = 0.999, floor = 1e-8;
    Matrix<double> moved(X_.rows(), X_.cols()), gradient = Matrix<double>::Zero(W_.rows(), W_.cols());
    pull_softmax_halves<double>(features_, slopes, moved);
    transposed_multiply_add<double>(context, moved, X_, gradient);
    first_ = keep_first * first_ + (1 - keep_first) * gradient;
    second_ = keep_second * second_ + (1 - keep_second) * gradient.cwiseAbs2();
    const double t = static_cast<double>(number + 1);
    const double of_first = 1 - std::pow(keep_first, t), of_second = 1 - std::pow(keep_second, t);
    W_.array() -= rate * (first_.array() / of_first) / ((second_.array() / of_second).sqrt() + floor);
  }

 private:
  Matrix<double> X_, W_, first_, second_, features_;
};

struct Fitted {
  Matrix<double> W_q, W_k;
};

Fitted fit(const Head<double>& head, Index steps) {
  Context context;
  Learner queries(head.Q), keys(head.K);
  const Index nq = queries.X().rows(), nk = keys.X().rows();
  Matrix<double> target(nq, nk), weights(nq, nk), slopes(nq, nk);
  multiply_transposed<double>(context, queries.X(), keys.X(), target);
  for (Index i = 0; i < nq; ++i) softmax_within<double>(context, target, i, 0, nk);
  for (Index step = 0; step < steps; ++step) {
    const Matrix<double>&of_queries = queries.features(context), &of_keys = keys.features(context);
    multiply_transposed<double>(context, of_queries, of_keys, weights);
    weights.array() += least_weight;
    // d/d weight_ij of -sum_j A_ij log(weight_ij / sum_l weight_il), over the number of rows.
    slopes = -target.cwiseQuotient(weights);
    slopes.colwise() += weights.rowwise().sum().cwiseInverse();
    slopes /= static_cast<double>(nq);
    Matrix<double> for_queries(nq, of_queries.cols()), for_keys = Matrix<double>::Zero(nk, of_keys.cols());
    multiply<double>(context, slopes, of_keys, for_queries);
    transposed_multiply_add<double>(context, slopes, of_queries, for_keys);
    queries.step(for_queries, step, context);
    keys.step(for_keys, step, context);
  }
  return {queries.W(), keys.W()};
}

template <class T>
class Hedgehog final : public FeatureMap<T> {
 public:
  explicit Hedgehog(const Draw& draw) {
    const Index d = draw.shape.d;
    const auto *given_q = draw.injected("W_q", d, d), *given_k = draw.injected("W_k", d, d);
    const Fitted fitted = given_q && given_k ? Fitted{*given_q, *given_k}
                                             : fit(calibration_of(draw, "its weights"), draw.params.integer("steps"));
    W_q_ = fitted.W_q.cast<T>();
    W_k_ = fitted.W_k.cast<T>();
  }

  Index features() const override { return 2 * W_q_.rows(); }
  Form form() const override { return Form::values; }
  void map(Context& context, const In<T>& X, Side side, Index, Out<T> block, std::span<T> log_scale) const override {
    Matrix<T> moved(X.rows(), X.cols());
    multiply_transposed<T>(context, X, weights(side), moved);
    softmax_halves<T>(moved, block);
    context.work.exps += static_cast<double>(block.size());
    std::fill(log_scale.begin(), log_scale.end(), T(0));
  }
  bool differentiable() const override { return true; }
  void pullback(Context& context, const In<T>&, Side side, Index, const In<T>& block, const In<T>& d_block,
                std::span<const T>, Out<T> dX) const override {
    Matrix<T> moved(dX.rows(), dX.cols());
    pull_softmax_halves<T>(block, d_block, moved);
    multiply<T>(context, moved, weights(side), dX);
  }
  Tensors state() const override {
    return {{"W_q", W_q_.template cast<double>()}, {"W_k", W_k_.template cast<double>()}};
  }

 private:
  const Matrix<T>& weights(Side side) const { return side == Side::query ? W_q_ : W_k_; }

  Matrix<T> W_q_, W_k_;
};

const bool registered = add(deterministic_map<Hedgehog>({
    .text = {.name = "hedgehog",
             .printed = "Hedgehog",
             .summary = "softmax over the channels of W x and of -W x, W learnt to imitate softmax attention",
             .formula = "phi(x) = [softmax(W x); softmax(-W x)], W fitted to a calibration head",
             .reference = "Zhang et al. 2024, arXiv:2402.04347",
             .cost = "O(n d^2) time, 2d features; a fit takes O(steps 256^2 d)",
             .departure = "fitted to one calibration head in a fixed number of steps"},
    .parameters = {Parameter::integer("steps", 200, "steps of Adam on the calibration head", 0, 100000)},
    .features = [](const Params&, Index d) { return 2 * d; },
    .token_work =
        [](const Params&, Index d) {
          const double channels = static_cast<double>(d);
          return Work{.flops = 2 * channels * channels, .exps = 2 * channels};
        },
    .non_negative = true,
    .no_extremes = "a token with large entries keeps one feature, and tokens that keep different ones share no weight",
    .fitted = [](const Params&) { return true; },
}));

}  // namespace
}  // namespace attnbench::hedgehog_map
