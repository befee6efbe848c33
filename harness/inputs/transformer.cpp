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

template <class T>
Matrix<T> normalised(const Matrix<T>& X, const LayerNorm<T>& norm) {
  Matrix<T> Y(X.rows(), X.cols());
  for (Index i = 0; i < X.rows(); ++i) {
    const T mean = X.row(i).mean();
    Y.row(i) = X.row(i).array() - mean;
    const T variance = Y.row(i).squaredNorm() / static_cast<T>(X.cols());
    Y.row(i) = Y.row(i).cwiseProduct(norm.scale) / std::sqrt(variance + T(epsilon)) + norm.shift;
  }
  return Y;
}

// Cosine and sine of every token's angle, n x d/2 each: computed once for all heads and layers.
template <class T>
struct Turns {
  Turns(Index n, Index d) : cosine(n, d / 2), sine(n, d / 2) {
    const Index pairs = d / 2;
    for (Index c = 0; c < pairs; ++c) {
      const double frequency = std::pow(rotary_base, -static_cast<double>(c) / static_cast<double>(pairs));
      for (Index i = 0; i < n; ++i) {
        const double angle = static_cast<double>(i) * frequency;
        cosine(i, c) = static_cast<T>(std::cos(angle));
        sine(i, c) = static_cast<T>(std::sin(angle));
      }
    }
  }
  void apply(Matrix<T>& X) const {
    const Index half = X.cols() / 2;
    for (Index i = 0; i < X.rows(); ++i)
      for (Index c = 0; c < half; ++c) {
        const T a = X(i, c), b = X(i, half + c);
        X(i, c) = a * cosine(i, c) - b * sine(i, c);
        X(i, half + c) = a * sine(i, c) + b * cosine(i, c);
      }
  }
  Matrix<T> cosine, sine;
};

// X W^T for W: outputs x inputs.
template <class T>
Matrix<T> projected(Context& context, const InArg<T>& X, const In<T>& W) {
  Matrix<T> Y(X.rows(), W.rows());
  multiply_transposed<T>(context, X, W, Y);
  return Y;
}

template <class T>
Matrix<T> attention(Context& context, const Transformer<T>& transformer, Index layer, const Matrix<T>& Y,
                    const Turns<T>& turns, const AttendHead<T>& attend) {
  const TransformerLayer<T>& weights = transformer.layers[static_cast<size_t>(layer)];
  const Index d = transformer.d, dv = transformer.dv;
  std::vector<HeadData<T>> heads;
  for (Index h = 0; h < transformer.heads; ++h) {
    heads.push_back({projected<T>(context, Y, row_block(weights.queries, h * d, d)),
                     projected<T>(context, Y, row_block(weights.keys, h * d, d)),
                     projected<T>(context, Y, row_block(weights.values, h * dv, dv))});
    if (transformer.rotary) {
      turns.apply(heads.back().Q);
      turns.apply(heads.back().K);
    }
  }
  Matrix<T> mixed(Y.rows(), transformer.heads * dv);
  for (Index h = 0; h < transformer.heads; ++h)
    attend(layer, h, heads, Out<T>(mixed.data() + h * dv, mixed.rows(), dv, mixed.cols()));
  return projected<T>(context, mixed, weights.out);
}

template <class T>
Matrix<T> feed_forward(Context& context, const TransformerLayer<T>& weights, const Matrix<T>& Y) {
  Matrix<T> hidden = projected<T>(context, Y, weights.up);
  hidden.rowwise() += weights.up_shift.row(0);
  hidden = hidden.unaryExpr([](T z) { return z / 2 * (1 + std::erf(z / std::numbers::sqrt2_v<T>)); });  // GELU
  Matrix<T> out = projected<T>(context, hidden, weights.down);
  out.rowwise() += weights.down_shift.row(0);
  return out;
}

template <class T>
void require_finite_state(const Matrix<T>& X, Index layer) {
  if (X.allFinite()) return;
  for (Index i = 0; i < X.rows(); ++i)
    for (Index j = 0; j < X.cols(); ++j)
      if (!std::isfinite(X(i, j)))
        throw NumericallyInvalid(
            fmt::format("hidden state after layer {}: {} at token {}, channel {}", layer, X(i, j), i, j));
}

}  // namespace

template <class T>
template <class U>
Transformer<U> Transformer<T>::cast() const {
  const auto of = [](const Matrix<T>& X) { return Matrix<U>(X.template cast<U>()); };
  const auto of_norm = [&](const LayerNorm<T>& norm) { return LayerNorm<U>{of(norm.scale), of(norm.shift)}; };
  Transformer<U> made{.heads = heads,
                      .d = d,
                      .dv = dv,
                      .rotary = rotary,
                      .layers = {},
                      .output_norm = of_norm(output_norm),
                      .unembedding = of(unembedding)};
  for (const TransformerLayer<T>& layer : layers)
    made.layers.push_back({.attention_norm = of_norm(layer.attention_norm),
                           .feed_forward_norm = of_norm(layer.feed_forward_norm),
                           .queries = of(layer.queries),
                           .keys = of(layer.keys),
                           .values = of(layer.values),
                           .out = of(layer.out),
                           .up = of(layer.up),
                           .up_shift = of(layer.up_shift),
                           .down = of(layer.down),
                           .down_shift = of(layer.down_shift)});
  return made;
}

template <class T>
std::vector<Matrix<T>> hidden_states(Context& context, const Transformer<T>& transformer, Matrix<T> X, LayerParts parts,
                                     const std::type_identity_t<AttendHead<T>>& attend, Index first) {
  std::vector<Matrix<T>> states;
  const Turns<T> turns(transformer.rotary ? X.rows() : 0, transformer.d);
  const auto apply = [&](const LayerNorm<T>& norm, const auto& branch) {
    const Matrix<T> change = branch(parts.norm ? normalised(X, norm) : X);
    X = parts.skip ? Matrix<T>(X + change) : change;
  };
  const auto layers = static_cast<Index>(transformer.layers.size());
  for (Index layer = first; layer < layers; ++layer) {
    const TransformerLayer<T>& weights = transformer.layers[static_cast<size_t>(layer)];
    states.push_back(X);
    apply(weights.attention_norm,
          [&](const Matrix<T>& Y) { return attention<T>(context, transformer, layer, Y, turns, attend); });
    if (parts.feed_forward && (parts.last_feed_forward || layer + 1 < layers))
      apply(weights.feed_forward_norm, [&](const Matrix<T>& Y) { return feed_forward<T>(context, weights, Y); });
    require_finite_state(X, layer + 1);
  }
  states.push_back(std::move(X));
  return states;
}

template <class T>
Matrix<T> token_logits(Context& context, const Transformer<T>& transformer, const Matrix<T>& X) {
  return projected<T>(context, normalised(X, transformer.output_norm), transformer.unembedding);
}

template Transformer<float> Transformer<double>::cast<float>() const;
template Transformer<double> Transformer<double>::cast<double>() const;
template std::vector<Matrix<float>> hidden_states<float>(Context&, const Transformer<float>&, Matrix<float>, LayerParts,
                                                         const AttendHead<float>&, Index);
template std::vector<Matrix<double>> hidden_states<double>(Context&, const Transformer<double>&, Matrix<double>,
                                                           LayerParts, const AttendHead<double>&, Index);
template Matrix<float> token_logits<float>(Context&, const Transformer<float>&, const Matrix<float>&);
template Matrix<double> token_logits<double>(Context&, const Transformer<double>&, const Matrix<double>&);

}  // namespace attnbench
