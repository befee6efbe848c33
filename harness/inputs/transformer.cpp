#include "harness/inputs/transformer.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "harness/errors/error.hpp"
#include "harness/linalg/products.hpp"

namespace attnbench {

namespace {

constexpr double epsilon = 1e-5;  // of LayerNorm
constexpr double rotary_base = 10'000;

Matrix<double> normalised(const Matrix<double>& X, const LayerNorm& norm) {
  Matrix<double> Y(X.rows(), X.cols());
  for (Index i = 0; i < X.rows(); ++i) {
    const double mean = X.row(i).mean();
    Y.row(i) = X.row(i).array() - mean;
    const double variance = Y.row(i).squaredNorm() / static_cast<double>(X.cols());
    Y.row(i) = Y.row(i).cwiseProduct(norm.scale) / std::sqrt(variance + epsilon) + norm.shift;
  }
  return Y;
}

void rotate(Matrix<double>& X) {
  const Index half = X.cols() / 2;
  for (Index i = 0; i < X.rows(); ++i)
    for (Index c = 0; c < half; ++c) {
      const double frequency = std::pow(rotary_base, -static_cast<double>(c) / static_cast<double>(half));
      const double angle = static_cast<double>(i) * frequency, cosine = std::cos(angle), sine = std::sin(angle);
      const double a = X(i, c), b = X(i, half + c);
      X(i, c) = a * cosine - b * sine;
      X(i, half + c) = a * sine + b * cosine;
    }
}

// X W^T for W: outputs x inputs.
Matrix<double> projected(Context& context, const In<double>& X, const In<double>& W) {
  Matrix<double> Y(X.rows(), W.rows());
  multiply_transposed<double>(context, X, W, Y);
  return Y;
}

Matrix<double> attention(Context& context, const Transformer& transformer, Index layer, const Matrix<double>& Y,
                         const AttendHead& attend) {
  const TransformerLayer& weights = transformer.layers[static_cast<size_t>(layer)];
  const Index d = transformer.d, dv = transformer.dv;
  Matrix<double> mixed(Y.rows(), transformer.heads * dv);
  for (Index h = 0; h < transformer.heads; ++h) {
    HeadData<double> head{projected(context, Y, row_block(weights.queries, h * d, d)),
                          projected(context, Y, row_block(weights.keys, h * d, d)),
                          projected(context, Y, row_block(weights.values, h * dv, dv))};
    if (transformer.rotary) {
      rotate(head.Q);
      rotate(head.K);
    }
    attend(layer, h, head, Out<double>(mixed.data() + h * dv, mixed.rows(), dv, mixed.cols()));
  }
  return projected(context, mixed, weights.out);
}

Matrix<double> feed_forward(Context& context, const TransformerLayer& weights, const Matrix<double>& Y) {
  Matrix<double> hidden = projected(context, Y, weights.up);
  hidden.rowwise() += weights.up_shift.row(0);
  hidden = hidden.unaryExpr([](double z) { return z / 2 * (1 + std::erf(z / std::numbers::sqrt2)); });  // GELU
  Matrix<double> out = projected(context, hidden, weights.down);
  out.rowwise() += weights.down_shift.row(0);
  return out;
}

void require_finite_state(const Matrix<double>& X, Index layer) {
  if (X.allFinite()) return;
  for (Index i = 0; i < X.rows(); ++i)
    for (Index j = 0; j < X.cols(); ++j)
      if (!std::isfinite(X(i, j)))
        throw NumericallyInvalid(
            fmt::format("hidden state after layer {}: {} at token {}, channel {}", layer, X(i, j), i, j));
}

}  // namespace

std::vector<Matrix<double>> hidden_states(Context& context, const Transformer& transformer, Matrix<double> X,
                                          LayerParts parts, const AttendHead& attend) {
  std::vector<Matrix<double>> states;
  const auto apply = [&](const LayerNorm& norm, const auto& branch) {
    const Matrix<double> change = branch(parts.norm ? normalised(X, norm) : X);
    X = parts.skip ? Matrix<double>(X + change) : change;
  };
  const auto layers = static_cast<Index>(transformer.layers.size());
  for (Index layer = 0; layer < layers; ++layer) {
    const TransformerLayer& weights = transformer.layers[static_cast<size_t>(layer)];
    states.push_back(X);
    apply(weights.attention_norm,
          [&](const Matrix<double>& Y) { return attention(context, transformer, layer, Y, attend); });
    if (parts.feed_forward && (parts.last_feed_forward || layer + 1 < layers))
      apply(weights.feed_forward_norm, [&](const Matrix<double>& Y) { return feed_forward(context, weights, Y); });
    require_finite_state(X, layer + 1);
  }
  states.push_back(std::move(X));
  return states;
}

}  // namespace attnbench
