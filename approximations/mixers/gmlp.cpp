// The spatial gating unit of gMLP. Liu et al., arXiv:2105.08050, eq. 3.
//   out = Z1 o (W Z2 + b 1^T),  Z1 = Z2 = V, W n x n, b in R^n, o elementwise                     methods.md G
// The paper's equation gates all of Z; its variant, which splits the channels of Z into Z1 and Z2 and halves the width,
// has no output of V's shape. The normalisation of Z2, which the paper adds for stability, is left out.
//   init=random         W_ij ~ N(0, 1/n), b = 1: a W of full rank, as training may give
//   init=near-identity  W_ij ~ N(0, (1e-3 / n)^2), b = 1: the paper's start, almost V itself
//   init=identity       W = 0, b = 1: V itself
// Trained W and b are injected as state. Row i has position p = i + offset, reads row p of W and is gated by V_p; a row
// at a padded position is 0. Causal: W is restricted to j <= p. Quadratic in V; Q and K are not read.
// How one token moves another, in channel c:
//   d out_ic / d V_jc = [p = j] (sum_l W_pl V_lc + b_p) + V_pc W_pj
#include <cmath>

#include "approximations/mixers/positions.hpp"
#include "harness/linalg/products.hpp"

namespace attnbench::gmlp_method {
namespace {

constexpr Index block_rows = 64;

double deviation_of_weights(const std::string& init, Index n) {
  if (init == "identity") return 0;
  return init == "near-identity" ? 1e-3 / static_cast<double>(n) : 1 / std::sqrt(static_cast<double>(n));
}

template <class T>
class SpatialGating final : public Approximation<T>, public TokenMixing<T> {
 public:
  explicit SpatialGating(const Draw& draw)
      : drawn_(positions_of_rows(draw.shape.nq, draw.shape.mask)),
        W_(rows_by_position<T>(draw, "W", drawn_, draw.shape.nk,
                               deviation_of_weights(draw.params.text("init"), draw.shape.nk))),
        b_(constant_unless_injected<T>(draw, "b", drawn_.size(), 1, 1)) {}

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const auto [begin_row, end_row] = gated_rows(head, mask);
    out.topRows(begin_row).setZero();
    out.bottomRows(out.rows() - end_row).setZero();
    context.for_blocks(end_row - begin_row, block_rows,
                       [&, first = begin_row](Context& single, Index begin, Index count) {
                         auto block = row_block(out, first + begin, count);
                         const Index position = first + begin + mask.offset;
                         gates(head, mask, first + begin, single, block);
                         block.array() *= row_block(head.V, position, count).array();
                         single.work.flops += 2 * static_cast<double>(block.size());
                       });
  }

  Tensors state() const override { return {{"W", W_.template cast<double>()}, {"b", b_.template cast<double>()}}; }
  const TokenMixing<T>* mixing() const override { return this; }

  void token_jacobian(const Head<T>& head, Mask mask, Index column, Context& context, Out<T> M) const override {
    const auto [begin_row, end_row] = gated_rows(head, mask);
    M.setZero();
    Matrix<T> gate(1, head.V.cols());
    for (Index i = begin_row; i < end_row; ++i) {
      const Index p = i + mask.offset, seen = mask.visible(i, head.V.rows());
      gates(head, mask, i, context, gate);
      M.row(i).head(seen) = head.V(p, column) * W_.row(p - drawn_.begin).head(seen);
      M(i, p) += gate(0, column);
    }
  }

 private:
  // The rows that have their own token: positions from 0 up to the padding.
  Positions gated_rows(const Head<T>& head, Mask mask) const {
    const Index begin = std::clamp<Index>(-mask.offset, 0, head.Q.rows());
    const Index tokens = Mask{.keys = mask.keys}.visible(0, head.V.rows());
    const Index end = std::clamp<Index>(tokens - mask.offset, begin, head.Q.rows());
    require_drawn(drawn_, {begin + mask.offset, end + mask.offset}, "gmlp");
    return {begin, end};
  }

  // W V + b for rows from `first` on, all of them gated. Adds the tokens that all of these rows see, then those that
  // only some see: a row sums over its own tokens in order, independently of later tokens.
  void gates(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> block) const {
    const Index nk = head.V.rows(), count = block.rows(), place = first + mask.offset - drawn_.begin;
    const Index common = mask.visible(first, nk), needed = mask.visible(first + count - 1, nk);
    multiply<T>(context, In<T>(W_.row(place).data(), count, common, W_.cols()), row_block(head.V, 0, common), block);
    if (needed > common) {
      Matrix<T> triangle = W_.block(place, common, count, needed - common);
      for (Index i = 0; i < count; ++i) triangle.row(i).tail(needed - mask.visible(first + i, nk)).setZero();
      multiply_add<T>(context, triangle, row_block(head.V, common, needed - common), block);
    }
    block.colwise() += b_.col(0).segment(place, count);
  }

  Positions drawn_;
  Matrix<T> W_, b_;  // rows at drawn positions x nk, x 1
};

const bool registered = add(method<SpatialGating>({
    .text = {.name = "gmlp",
             .printed = "gMLP",
             .summary = "spatial gating: V times a learnt mixture of its tokens, entry by entry",
             .formula = "out = V o (W V + b 1^T), W n x n; causal: W lower triangular",
             .reference = "Liu et al. 2021, arXiv:2105.08050, eq. 3",
             .cost = "O(n^2 dv) time; W is n^2; no memory beyond state, input and output",
             .family = "mixers",
             .departure = "Z1 = Z2 = V, without the normalisation of Z2 that the paper adds for stability; the "
                          "paper's variant splits the channels between Z1 and Z2"},
    .parameters = {Parameter::choice("init", "random", "how W is drawn", {"random", "near-identity", "identity"})},
    .claims =
        [](const Params&, const Shape& shape) {
          return Claims{.no_form = no_weights_for_rows(shape),
                        .causal_exact = true,
                        .linear_in_V = false,
                        .no_attention_matrix = "V gates a mixture of V: out is quadratic in V"};
        },
    .memory = [](const Params&, const Shape&) { return 0.0; },
    .cost =
        [](const Params&, const Shape& shape) {
          const double pairs =
              static_cast<double>(shape.nq) * static_cast<double>(shape.nk) / (shape.mask.causal ? 2 : 1);
          return Work{.flops = 2 * pairs * static_cast<double>(shape.dv)};
        },
    .caveats = [](const Params&, const Shape&) { return std::vector<std::string>{drawn_not_trained}; },
}));

}  // namespace
}  // namespace attnbench::gmlp_method
