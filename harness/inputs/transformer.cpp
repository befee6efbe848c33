#include "harness/inputs/transformer.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "harness/errors/error.hpp"
#include "harness/linalg/products.hpp"

namespace attnbench {

namespace {

template <class T>
Matrix<T> normalised(const InArg<T>& X, const Norm<T>& norm, double epsilon) {
  Matrix<T> Y(X.rows(), X.cols());
  for (Index i = 0; i < X.rows(); ++i) {
    const bool centred = norm.shift.size() > 0;
    const T mean = centred ? X.row(i).mean() : T(0);
    Y.row(i) = X.row(i).array() - mean;
    const T variance = Y.row(i).squaredNorm() / static_cast<T>(X.cols());
    Y.row(i) = Y.row(i).cwiseProduct(norm.scale) / std::sqrt(variance + static_cast<T>(epsilon));
    if (centred) Y.row(i) += norm.shift;
  }
  return Y;
}

// Cosine and sine of every token's angle, n x d/2 each: computed once for all heads and layers.
template <class T>
struct Turns {
  Turns(Index n, const std::vector<double>& frequencies)
      : cosine(n, std::ssize(frequencies)), sine(n, std::ssize(frequencies)) {
    for (Index c = 0; c < cosine.cols(); ++c) {
      const double frequency = frequencies[static_cast<size_t>(c)];
      for (Index i = 0; i < n; ++i) {
        const double angle = static_cast<double>(i) * frequency;
        cosine(i, c) = static_cast<T>(std::cos(angle));
        sine(i, c) = static_cast<T>(std::sin(angle));
      }
    }
  }
  void apply(Matrix<T>& X) const {
    const Index half = cosine.cols();
    for (Index i = 0; half > 0 && i < X.rows(); ++i)
      for (Index c = 0; c < half; ++c) {
        const T a = X(i, c), b = X(i, half + c);
        X(i, c) = a * cosine(i, c) - b * sine(i, c);
        X(i, half + c) = a * sine(i, c) + b * cosine(i, c);
      }
  }
  Matrix<T> cosine, sine;
};

// X W^T + shift for W: outputs x inputs.
template <class T>
Matrix<T> projected(Context& context, const InArg<T>& X, const Weights<T>& W, const Matrix<T>& shift = {}) {
  Matrix<T> Y(X.rows(), W.rows());
  multiply_transposed<T>(context, X, W.view(), Y);
  if (shift.size() > 0) Y.rowwise() += shift.row(0);
  return Y;
}

// Q, K and V of every head for Y, the input after its norm.
template <class T>
std::vector<HeadData<T>> heads_for(Context& context, const Transformer<T>& transformer,
                                   const TransformerLayer<T>& layer, const Matrix<T>& Y, const Turns<T>& turns) {
  const Index d = transformer.d, dv = transformer.dv;
  const auto part = [&](const Matrix<T>& all, const Norm<T>& norm, Index head) {
    Matrix<T> X = all.middleCols(head * d, d);
    if (norm.scale.size() > 0) X = normalised<T>(X, norm, transformer.norm_epsilon);
    turns.apply(X);
    return X;
  };
  const Matrix<T> Q = projected(context, Y, layer.queries, layer.query_shift),
                  K = projected(context, Y, layer.keys, layer.key_shift),
                  V = projected(context, Y, layer.values, layer.value_shift);
  std::vector<HeadData<T>> heads;
  for (Index h = 0; h < transformer.heads; ++h) {
    const Index shared = transformer.key_head(h);
    heads.push_back({part(Q, layer.query_norm, h), part(K, layer.key_norm, shared), V.middleCols(shared * dv, dv)});
  }
  return heads;
}

template <class T>
Matrix<T> attention(Context& context, const Transformer<T>& transformer, Index layer, const Matrix<T>& Y,
                    const Turns<T>& turns, const AttendHead<T>& attend) {
  const TransformerLayer<T>& weights = transformer.layers[static_cast<size_t>(layer)];
  const Index dv = transformer.dv;
  const std::vector<HeadData<T>> heads = heads_for(context, transformer, weights, Y, turns);
  Matrix<T> mixed(Y.rows(), transformer.heads * dv);
  for (Index h = 0; h < transformer.heads; ++h)
    attend(layer, h, heads, Out<T>(mixed.data() + h * dv, mixed.rows(), dv, mixed.cols()));
  return projected(context, mixed, weights.out);
}

template <class T>
Matrix<T> feed_forward(Context& context, const TransformerLayer<T>& weights, const Matrix<T>& Y) {
  Matrix<T> hidden = projected(context, Y, weights.up, weights.up_shift);
  if (weights.gate.size() > 0) {
    const Matrix<T> gate = projected(context, Y, weights.gate);
    hidden.array() *= gate.array() / (1 + (-gate.array()).exp());  // SiLU
  } else {
    hidden = hidden.unaryExpr([](T z) { return z / 2 * (1 + std::erf(z / std::numbers::sqrt2_v<T>)); });  // GELU
  }
  return projected(context, hidden, weights.down, weights.down_shift);
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

std::vector<double> rotary_frequencies(Index d, double base) {
  const Index pairs = d / 2;
  std::vector<double> frequencies;
  for (Index c = 0; c < pairs; ++c)
    frequencies.push_back(std::pow(base, -static_cast<double>(c) / static_cast<double>(pairs)));
  return frequencies;
}

template <class T>
void turn_by_position(Matrix<T>& X, const std::vector<double>& frequencies) {
  Turns<T>(X.rows(), frequencies).apply(X);
}

template <class T>
Index Transformer<T>::weights() const {
  Index numbers = unembedding.size();
  for (const TransformerLayer<T>& layer : layers)
    for (const Weights<T>* W :
         {&layer.queries, &layer.keys, &layer.values, &layer.out, &layer.up, &layer.gate, &layer.down})
      numbers += W->size();
  return numbers;
}

template <class T>
template <class U>
Transformer<U> Transformer<T>::cast() const {
  const auto of = [](const Matrix<T>& X) { return Matrix<U>(X.template cast<U>()); };
  const auto of_weights = [](const Weights<T>& W) { return Weights<U>(W.view().template cast<U>()); };
  const auto of_norm = [&](const Norm<T>& norm) { return Norm<U>{of(norm.scale), of(norm.shift)}; };
  Transformer<U> made{.heads = heads,
                      .d = d,
                      .dv = dv,
                      .key_heads = key_heads,
                      .rotary_frequencies = rotary_frequencies,
                      .layers = {},
                      .output_norm = of_norm(output_norm),
                      .unembedding = of_weights(unembedding),
                      .norm_epsilon = norm_epsilon};
  for (const TransformerLayer<T>& layer : layers)
    made.layers.push_back({.attention_norm = of_norm(layer.attention_norm),
                           .feed_forward_norm = of_norm(layer.feed_forward_norm),
                           .queries = of_weights(layer.queries),
                           .keys = of_weights(layer.keys),
                           .values = of_weights(layer.values),
                           .out = of_weights(layer.out),
                           .up = of_weights(layer.up),
                           .up_shift = of(layer.up_shift),
                           .down = of_weights(layer.down),
                           .down_shift = of(layer.down_shift),
                           .gate = of_weights(layer.gate),
                           .query_shift = of(layer.query_shift),
                           .key_shift = of(layer.key_shift),
                           .value_shift = of(layer.value_shift),
                           .query_norm = of_norm(layer.query_norm),
                           .key_norm = of_norm(layer.key_norm)});
  return made;
}

template <class T>
std::shared_ptr<const Transformer<T>> StoredTransformer::in() const {
  if (const auto* same = std::get_if<std::shared_ptr<const Transformer<T>>>(&kept_)) return *same;
  return visit([](const auto& kept) { return std::make_shared<const Transformer<T>>(kept.template cast<T>()); });
}

namespace {

// Applies the layers from `first` on. before(X) sees the input of each.
template <class T, class Before>
Matrix<T> through_layers(Context& context, const Transformer<T>& transformer, Matrix<T> X, LayerParts parts,
                         const AttendHead<T>& attend, Index first, const Before& before) {
  const Turns<T> turns(X.rows(), transformer.rotary_frequencies);
  const auto apply = [&](const Norm<T>& norm, const auto& branch) {
    const Matrix<T> change = branch(parts.norm ? normalised<T>(X, norm, transformer.norm_epsilon) : X);
    X = parts.skip ? Matrix<T>(X + change) : change;
  };
  const Index layers = std::ssize(transformer.layers);
  for (Index layer = first; layer < layers; ++layer) {
    const TransformerLayer<T>& weights = transformer.layers[static_cast<size_t>(layer)];
    before(X);
    apply(weights.attention_norm,
          [&](const Matrix<T>& Y) { return attention<T>(context, transformer, layer, Y, turns, attend); });
    if (parts.feed_forward && (parts.last_feed_forward || layer + 1 < layers))
      apply(weights.feed_forward_norm, [&](const Matrix<T>& Y) { return feed_forward<T>(context, weights, Y); });
    require_finite_state(X, layer + 1);
  }
  return X;
}

}  // namespace

template <class T>
std::vector<Matrix<T>> hidden_states(Context& context, const Transformer<T>& transformer, Matrix<T> X, LayerParts parts,
                                     const std::type_identity_t<AttendHead<T>>& attend, Index first) {
  std::vector<Matrix<T>> states;
  states.push_back(through_layers(context, transformer, std::move(X), parts, attend, first,
                                  [&](const Matrix<T>& input) { states.push_back(input); }));
  return states;
}

template <class T>
Matrix<T> last_hidden_state(Context& context, const Transformer<T>& transformer, Matrix<T> X, LayerParts parts,
                            const std::type_identity_t<AttendHead<T>>& attend, Index first) {
  return through_layers(context, transformer, std::move(X), parts, attend, first, [](const Matrix<T>&) {});
}

template <class T>
Matrix<T> token_logits(Context& context, const Transformer<T>& transformer, const In<T>& X) {
  return projected(context, normalised<T>(X, transformer.output_norm, transformer.norm_epsilon),
                   transformer.unembedding);
}

template <class T>
std::vector<HeadData<T>> layer_heads(Context& context, const Transformer<T>& transformer, Index layer,
                                     const Matrix<T>& X, bool rotated) {
  const TransformerLayer<T>& weights = transformer.layers.at(static_cast<size_t>(layer));
  const Turns<T> turns(X.rows(), rotated ? transformer.rotary_frequencies : std::vector<double>{});
  return heads_for(context, transformer, weights, normalised<T>(X, weights.attention_norm, transformer.norm_epsilon),
                   turns);
}

template struct Transformer<float>;
template std::shared_ptr<const Transformer<float>> StoredTransformer::in<float>() const;
template std::vector<Matrix<float>> hidden_states<float>(Context&, const Transformer<float>&, Matrix<float>, LayerParts,
                                                         const AttendHead<float>&, Index);
template Matrix<float> last_hidden_state<float>(Context&, const Transformer<float>&, Matrix<float>, LayerParts,
                                                const AttendHead<float>&, Index);
template Matrix<float> token_logits<float>(Context&, const Transformer<float>&, const In<float>&);
template std::vector<HeadData<float>> layer_heads<float>(Context&, const Transformer<float>&, Index,
                                                         const Matrix<float>&, bool);
template void turn_by_position<double>(Matrix<double>&, const std::vector<double>&);
template struct Transformer<double>;
template std::shared_ptr<const Transformer<double>> StoredTransformer::in<double>() const;
template std::vector<Matrix<double>> hidden_states<double>(Context&, const Transformer<double>&, Matrix<double>,
                                                           LayerParts, const AttendHead<double>&, Index);
template Matrix<double> last_hidden_state<double>(Context&, const Transformer<double>&, Matrix<double>, LayerParts,
                                                  const AttendHead<double>&, Index);
template Matrix<double> token_logits<double>(Context&, const Transformer<double>&, const In<double>&);
template std::vector<HeadData<double>> layer_heads<double>(Context&, const Transformer<double>&, Index,
                                                           const Matrix<double>&, bool);

}  // namespace attnbench
