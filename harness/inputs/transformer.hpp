// A stack of attention layers in double. The caller provides the attention of every head.
//   Y = norm(X);  Q, K, V = Y Wq^T, Y Wk^T, Y Wv^T for each head, Q and K rotated where positions are rotary
//   X <- X + [heads' outputs] Wo^T;   X <- X + gelu(norm(X) Wu^T + b_u) Wd^T + b_d
// The order is that of pre-normalised transformers (Xiong et al. 2020, arXiv:2002.04745); any part can be left out.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "harness/core/problem.hpp"
#include "harness/linalg/context.hpp"

namespace attnbench {

// y = scale o (x - mean) / sqrt(variance + 1e-5) + shift, token by token. Both 1 x width.
struct LayerNorm {
  Matrix<double> scale, shift;
};

struct TransformerLayer {
  LayerNorm attention_norm, feed_forward_norm;
  Matrix<double> queries, keys;     // heads d x width, head after head
  Matrix<double> values;            // heads dv x width
  Matrix<double> out;               // width x heads dv
  Matrix<double> up, up_shift;      // hidden x width, 1 x hidden
  Matrix<double> down, down_shift;  // width x hidden, 1 x width
};

struct Transformer {
  Index heads = 1, d = 0, dv = 0;
  bool rotary = false;  // base 10,000, first half of the channels against the second, token i at position i
  std::vector<TransformerLayer> layers;
};

// The parts of every layer besides attention.
struct LayerParts {
  bool skip = true;          // false: the branch alone
  bool feed_forward = true;  // false: attention alone
  bool norm = true;          // false: no LayerNorm
  // false: the last layer ends after its attention, for callers that do not read the tokens after it
  bool last_feed_forward = true;
};

// Attention of one head: Q and K n x d, not scaled; writes n x dv.
using AttendHead = std::function<void(Index layer, Index head, const HeadData<double>& head_data, Out<double> out)>;

// X (n x width) before the first layer and after each layer: layers + 1 matrices. Throws NumericallyInvalid, which
// names the layer and the place, for NaN or infinity.
std::vector<Matrix<double>> hidden_states(Context& context, const Transformer& transformer, Matrix<double> X,
                                          LayerParts parts, const AttendHead& attend);

// A transformer, and the tokens that enter its first layer.
struct EmbeddedTokens {
  std::shared_ptr<const Transformer> transformer;
  Matrix<double> X;  // n x width
};

}  // namespace attnbench
