// The token mixing of MLP-Mixer. Tolstikhin et al., arXiv:2105.01601, eq. 1.
//   out = X + W2 GELU(W1 LN(X)),  X = V (n x dv), W1 hidden x n, W2 n x hidden                    methods.md G
// LN normalises each token over its channels: y = (x - mean) / sigma, sigma^2 = variance + 1e-6, no affine part.
// GELU(z) = z Phi(z), with erf. No biases. W1 ~ N(0, 1/n), W2 ~ N(0, 1/hidden) (LeCun's rule, the authors' start);
// trained W1 and W2 are injected as state. Q and K are not read. O(n hidden dv) time.
// residual=false omits the term X and leaves only the branch that mixes tokens.
// How one token moves another, in channel c, with everything included (residual, and LN through mean and variance):
//   d out_ic / d V_jc = [i = j, with the residual] + sum_h W2_ih GELU'(z_hc) W1_hj s_jc,
//   z = W1 LN(X),  s_jc = (1 - 1/dv - y_jc^2 / dv) / sigma_j
// Without the residual that has rank <= hidden. With padding the unpadded tokens are mixed, and rows beyond are 0.
#include <cmath>
#include <numbers>

#include "approximations/mixers/positions.hpp"
#include "harness/linalg/products.hpp"

namespace attnbench::mixer_method {
namespace {

constexpr Index block_rows = 64;
constexpr double epsilon = 1e-6;  // of LN, as in the authors' library

template <class T>
T cumulative_normal(T z) {  // Phi
  return T(0.5) * (1 + std::erf(z / std::numbers::sqrt2_v<T>));
}
template <class T>
T gelu_slope(T z) {
  return cumulative_normal(z) + z * std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi_v<T>);
}

// y and 1 / sigma of every token.
template <class T>
void normalise_tokens(const In<T>& X, Out<T> Y, std::vector<T>& inverse_sigma) {
  for (Index i = 0; i < X.rows(); ++i) {
    Y.row(i) = X.row(i).array() - X.row(i).mean();
    const T variance = Y.row(i).squaredNorm() / static_cast<T>(X.cols());
    inverse_sigma.push_back(1 / std::sqrt(variance + static_cast<T>(epsilon)));
    Y.row(i) *= inverse_sigma.back();
  }
}

// hidden x n. Drawn token by token, so that a longer sequence has the columns of a shorter one, up to the factor.
template <class T>
Matrix<T> first_layer(const Draw& draw, Index hidden, Index n) {
  if (const auto* given = draw.injected("W1", hidden, n)) return given->cast<T>();
  return rows_in_order<T>(draw, "W1", n, hidden, 1 / std::sqrt(static_cast<double>(n))).transpose();
}

template <class T>
class MlpMixer final : public Approximation<T>, public TokenMixing<T> {
 public:
  explicit MlpMixer(const Draw& draw) : residual_(draw.params.flag("residual")) {
    const Index hidden = draw.params.integer("hidden"), n = draw.shape.nk;
    W1_ = first_layer<T>(draw, hidden, n);
    W2_ = rows_in_order<T>(draw, "W2", n, hidden, 1 / std::sqrt(static_cast<double>(hidden)));
  }

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const Index tokens = mask.visible(0, head.V.rows()), dv = head.V.cols();
    out.bottomRows(out.rows() - tokens).setZero();
    if (tokens == 0) return;
    Matrix<T> hidden = hidden_inputs(context, row_block(head.V, 0, tokens));
    context.for_blocks(hidden.rows(), block_rows, [&](Context& single, Index first, Index count) {
      auto block = row_block(hidden, first, count);
      block = block.unaryExpr([](T z) { return z * cumulative_normal(z); });
      single.work.exps += static_cast<double>(count * dv);
    });
    context.for_blocks(tokens, block_rows, [&](Context& single, Index first, Index count) {
      auto block = row_block(out, first, count);
      multiply<T>(single, row_block(W2_, first, count), hidden, block);
      if (residual_) block += row_block(head.V, first, count);
    });
  }

  Tensors state() const override { return {{"W1", W1_.template cast<double>()}, {"W2", W2_.template cast<double>()}}; }
  const TokenMixing<T>* mixing() const override { return this; }

  void token_jacobian(const Head<T>& head, Mask mask, Index column, Context& context, Out<T> M) const override {
    const Index tokens = mask.visible(0, head.V.rows()), dv = head.V.cols();
    M.setZero();
    if (tokens == 0) return;
    const In<T> X = row_block(head.V, 0, tokens);
    const Matrix<T> z = hidden_inputs(context, X).col(column);
    Matrix<T> Y(tokens, dv);
    std::vector<T> inverse_sigma;
    normalise_tokens<T>(X, Y, inverse_sigma);
    Matrix<T> left = W2_.topRows(tokens), right = W1_.leftCols(tokens);
    for (Index h = 0; h < left.cols(); ++h) left.col(h) *= gelu_slope(z(h, 0));
    for (Index j = 0; j < tokens; ++j)
      right.col(j) *=
          (1 - (1 + Y(j, column) * Y(j, column)) / static_cast<T>(dv)) * inverse_sigma[static_cast<size_t>(j)];
    multiply<T>(context, left, right, Out<T>(M.data(), tokens, tokens, M.outerStride()));
    if (residual_) M.diagonal().head(tokens).array() += 1;
  }

 private:
  // W1 LN(X), hidden x dv.
  Matrix<T> hidden_inputs(Context& context, const In<T>& X) const {
    Matrix<T> Y(X.rows(), X.cols()), hidden(W1_.rows(), X.cols());
    std::vector<T> inverse_sigma;
    normalise_tokens<T>(X, Y, inverse_sigma);
    context.for_blocks(hidden.rows(), block_rows, [&](Context& single, Index first, Index count) {
      multiply<T>(single, In<T>(W1_.row(first).data(), count, X.rows(), W1_.cols()), Y,
                  row_block(hidden, first, count));
    });
    return hidden;
  }

  bool residual_;
  Matrix<T> W1_, W2_;  // hidden x nk, nk x hidden
};

std::string no_form(const Shape& shape) {
  if (shape.mask.causal) return "every hidden unit is a sum over all tokens, later ones included";
  if (shape.nq != shape.nk || shape.mask.offset != 0) return "it has one output for each token, at that token's place";
  return "";
}

const bool registered = add(method<MlpMixer>({
    .text = {.name = "mixer",
             .printed = "MLP-Mixer",
             .summary = "a two-layer network along the tokens, the same for every channel of V",
             .formula = "out = V + W2 GELU(W1 LN(V))",
             .reference = "Tolstikhin et al. 2021, MLP-Mixer, arXiv:2105.01601, eq. 1",
             .cost = "O(n hidden dv) time, O((n + hidden) dv) memory beyond state, input and output",
             .family = "mixers",
             .aliases = {"mlp-mixer"}},
    .parameters = {Parameter::integer("hidden", 256, "hidden width of the network", 1, 1 << 16).as_budget(),
                   Parameter::flag("residual", true, "add V; false: the branch that mixes tokens, alone")},
    .claims =
        [](const Params&, const Shape& shape) {
          return Claims{.no_form = no_form(shape),
                        .linear_in_V = false,
                        .no_attention_matrix = "GELU and LN of V come between tokens, so out is not a matrix times V"};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          return static_cast<double>((shape.nk + params.integer("hidden")) * shape.dv) * bytes_of(shape.precision);
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const auto hidden = static_cast<double>(params.integer("hidden")), dv = static_cast<double>(shape.dv);
          return Work{.flops = 4 * static_cast<double>(shape.nk) * hidden * dv, .exps = hidden * dv};
        },
    .caveats = [](const Params&, const Shape&) { return std::vector<std::string>{drawn_not_trained}; },
}));

}  // namespace
}  // namespace attnbench::mixer_method
