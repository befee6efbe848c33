// A stack of attention layers, in float or double. The caller provides the attention of every head.
//   Y = norm(X);  Q, K, V = Y Wq^T, Y Wk^T, Y Wv^T for each head, Q and K rotated where positions are rotary
//   X <- X + [heads' outputs] Wo^T;   X <- X + gelu(norm(X) Wu^T + b_u) Wd^T + b_d
//   logits of a token = norm(X) E^T after the last layer, E vocabulary x width
// The order is that of pre-normalised transformers (Xiong et al. 2020, arXiv:2002.04745); any part can be left out.
// With the root mean square in place of LayerNorm, a gated feed-forward part and keys that several queries share it is
// Llama (Touvron et al. 2023, arXiv:2302.13971), with shifts of Q, K and V Qwen 2, with norms of Q and K Qwen 3.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <variant>
#include <vector>

#include "harness/core/problem.hpp"
#include "harness/linalg/context.hpp"

namespace attnbench {

// A matrix of weights: its own, or a view of numbers that another object keeps, such as a mapped file. Copies share the
// numbers, which nobody changes.
template <class T>
class Weights {
 public:
  Weights() = default;
  template <class Derived>
  Weights(const Eigen::MatrixBase<Derived>& X)  // NOLINT(google-explicit-constructor): as a matrix is assigned
      : Weights(std::make_shared<const Matrix<T>>(X)) {}
  Weights(const T* numbers, Index rows, Index columns, std::shared_ptr<const void> keeper)
      : numbers_(numbers), rows_(rows), columns_(columns), keeper_(std::move(keeper)) {}

  Index rows() const { return rows_; }
  Index cols() const { return columns_; }
  Index size() const { return rows_ * columns_; }
  In<T> view() const { return {numbers_, rows_, columns_, columns_}; }

 private:
  explicit Weights(const std::shared_ptr<const Matrix<T>>& own)
      : numbers_(own->data()), rows_(own->rows()), columns_(own->cols()), keeper_(own) {}

  const T* numbers_ = nullptr;
  Index rows_ = 0, columns_ = 0;
  std::shared_ptr<const void> keeper_;
};

// y = scale o (x - mean) / sqrt(variance + epsilon) + shift, token by token. Both 1 x width. Without a shift the norm
// is that of the root mean square (Zhang and Sennrich 2019, arXiv:1910.07467): y = scale o x / sqrt(mean of x^2 +
// epsilon).
template <class T>
struct Norm {
  Matrix<T> scale, shift = {};
};

// Matrices without rows or columns are parts that the layer does not have.
template <class T>
struct TransformerLayer {
  Norm<T> attention_norm, feed_forward_norm;
  Weights<T> queries, keys;   // heads d x width, head after head; of keys key_heads d
  Weights<T> values;          // key_heads dv x width
  Weights<T> out;             // width x heads dv
  Weights<T> up;              // hidden x width
  Matrix<T> up_shift = {};    // 1 x hidden
  Weights<T> down;            // width x hidden
  Matrix<T> down_shift = {};  // 1 x width
  Weights<T> gate = {};       // hidden x width: silu(Y Wg^T) o (Y Wu^T) in place of gelu
  Matrix<T> query_shift = {}, key_shift = {}, value_shift = {};  // added to Q, K and V: one row
  Norm<T> query_norm = {}, key_norm = {};  // of each head's q and k, before they are rotated: 1 x d
};

template <class T>
struct Transformer {
  Index heads = 1, d = 0, dv = 0;
  Index key_heads = 0;  // head h reads the keys and values of head h key_heads / heads; 0: every head has its own
  // Rotary positions: the angle of channel pair c (channels c and d/2 + c) at token i is i times number c. Empty: none.
  std::vector<double> rotary_frequencies = {};
  std::vector<TransformerLayer<T>> layers = {};
  // How the last hidden state predicts a token. Both empty: the stack predicts none.
  Norm<T> output_norm = {};
  Weights<T> unembedding = {};  // vocabulary x width
  double norm_epsilon = 1e-5;

  Index key_head(Index head) const { return key_heads == 0 ? head : head * key_heads / heads; }
  Index weights() const;  // numbers in all matrices, the unembedding included

  template <class U>
  Transformer<U> cast() const;
};

// base^(-2 c / d) for c < d/2 (Su et al. 2021, arXiv:2104.09864, Eq. 15).
std::vector<double> rotary_frequencies(Index d, double base);

// Turns the channel pairs of each row of X (n x d) by the row's number times these frequencies. With negative ones it
// undoes that.
template <class T>
void turn_by_position(Matrix<T>& X, const std::vector<double>& frequencies);

// The parts of every layer besides attention.
struct LayerParts {
  bool skip = true;          // false: the branch alone
  bool feed_forward = true;  // false: attention alone
  bool norm = true;          // false: no norm before a branch
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

// The last of these alone.
template <class T>
Matrix<T> last_hidden_state(Context& context, const Transformer<T>& transformer, Matrix<T> X, LayerParts parts,
                            const std::type_identity_t<AttendHead<T>>& attend, Index first = 0);

// n x vocabulary, from X after the last layer. Row i of a causal model is about token i + 1.
template <class T>
Matrix<T> token_logits(Context& context, const Transformer<T>& transformer, const In<T>& X);

// Q, K and V of every head of a layer for its input X (n x width), as hidden_states gives them to AttendHead.
// rotated = false: Q and K before the rotation.
template <class T>
std::vector<HeadData<T>> layer_heads(Context& context, const Transformer<T>& transformer, Index layer,
                                     const Matrix<T>& X, bool rotated = true);

// A transformer in the precision in which its weights are kept.
class StoredTransformer {
 public:
  StoredTransformer() = default;
  template <class T>
  StoredTransformer(std::shared_ptr<const Transformer<T>> kept) : kept_(std::move(kept)) {}  // NOLINT

  // The transformer itself if it is kept so, or a copy whose numbers are rounded to T.
  template <class T>
  std::shared_ptr<const Transformer<T>> in() const;

  bool kept_in_float() const { return kept_.index() == 0; }
  // read(transformer) of the kept one: for its sizes.
  template <class Read>
  auto visit(const Read& read) const {
    return std::visit([&](const auto& kept) { return read(*kept); }, kept_);
  }
  Index layers() const {
    return visit([](const auto& t) { return std::ssize(t.layers); });
  }
  Index heads() const {
    return visit([](const auto& t) { return t.heads; });
  }
  Index d() const {
    return visit([](const auto& t) { return t.d; });
  }
  Index dv() const {
    return visit([](const auto& t) { return t.dv; });
  }

 private:
  std::variant<std::shared_ptr<const Transformer<float>>, std::shared_ptr<const Transformer<double>>> kept_;
};

// A transformer, and the tokens that enter its first layer.
struct EmbeddedTokens {
  StoredTransformer transformer;
  Matrix<double> X;  // n x width
};

// Tokens from which the transformer predicts others, such as the next ones or those that are masked.
struct PredictionTask {
  EmbeddedTokens read;
  std::vector<std::optional<Index>> predicted;  // by row of the logits, the true token; nullopt: the row predicts none
  std::vector<Index> bytes = {};                // by row, how many bytes of the text that token is; empty: one each
  bool answer = false;                          // what is predicted is the answer to a question, and nothing else
};

}  // namespace attnbench
