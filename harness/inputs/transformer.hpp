// A stack of attention layers, in float or double. The caller provides the attention of every head.
//   Y = norm(X);  Q, K, V = Y Wq^T, Y Wk^T, Y Wv^T for each head, Q and K rotated where positions are rotary
//   X <- X + [heads' outputs] Wo^T;   X <- X + gelu(norm(X) Wu^T + b_u) Wd^T + b_d
//   logits of a token = norm(X) E^T after the last layer, E vocabulary x width
// The order is that of pre-normalised transformers (Xiong et al. 2020, arXiv:2002.04745); any part can be left out.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "harness/core/problem.hpp"
#include "harness/linalg/context.hpp"

namespace attnbench {

// y = scale o (x - mean) / sqrt(variance + 1e-5) + shift, token by token. Both 1 x width.
template <class T>
struct LayerNorm {
  Matrix<T> scale, shift;
};

template <class T>
struct TransformerLayer {
  LayerNorm<T> attention_norm, feed_forward_norm;
  Matrix<T> queries, keys;     // heads d x width, head after head
  Matrix<T> values;            // heads dv x width
  Matrix<T> out;               // width x heads dv
  Matrix<T> up, up_shift;      // hidden x width, 1 x hidden
  Matrix<T> down, down_shift;  // width x hidden, 1 x width
};

template <class T>
struct Transformer {
  Index heads = 1, d = 0, dv = 0;
  bool rotary = false;  // base 10,000, first half of the channels against the second, token i at position i
  std::vector<TransformerLayer<T>> layers;
  // How the last hidden state predicts a token. Both empty: the stack predicts none.
  LayerNorm<T> output_norm = {};
  Matrix<T> unembedding = {};  // vocabulary x width

  template <class U>
  Transformer<U> cast() const;
};

// The parts of every layer besides attention.
struct LayerParts {
  bool skip = true;          // false: the branch alone
  bool feed_forward = true;  // false: attention alone
  bool norm = true;          // false: no LayerNorm
  // false: the last layer ends after its attention, for callers that do not read the tokens after it
  bool last_feed_forward = true;
};

// Attention of head number `head` of those of a layer: Q and K n x d, not scaled; writes n x dv. The heads of a layer
// come in their order.
template <class T>
using AttendHead = std::function<void(Index layer, Index head, std::span<const HeadData<T>> heads, Out<T> out)>;

// X (n x width) before layer `first`, which it enters, and after each layer from there on. Throws NumericallyInvalid,
// which names the layer and the place, for NaN or infinity.
template <class T>
std::vector<Matrix<T>> hidden_states(Context& context, const Transformer<T>& transformer, Matrix<T> X, LayerParts parts,
                                     const std::type_identity_t<AttendHead<T>>& attend, Index first = 0);

// n x vocabulary, from X after the last layer. Row i of a causal model is about token i + 1.
template <class T>
Matrix<T> token_logits(Context& context, const Transformer<T>& transformer, const Matrix<T>& X);

// A transformer, and the tokens that enter its first layer.
struct EmbeddedTokens {
  std::shared_ptr<const Transformer<double>> transformer;
  Matrix<double> X;  // n x width
};

// Tokens from which the transformer predicts others, such as the next ones or those that are masked.
struct PredictionTask {
  EmbeddedTokens read;
  std::vector<std::optional<Index>> predicted;  // by row of the logits, the true token; nullopt: the row predicts none
};

}  // namespace attnbench
