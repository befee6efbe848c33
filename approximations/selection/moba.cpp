// Mixture of block attention (MoBA): exact softmax over the blocks of keys whose mean has the largest logit. Lu et al.
// 2025, arXiv:2502.13189, section 2.2.
//   gate of a block = q.(mean of its keys)                                                                methods.md U
//   row i keeps `keep` blocks: its own and those of the largest gates (ties: the first);  softmax over their keys
// The gate is the mean logit of the block: at least one key has a logit as large, but the largest may be hidden. The
// paper trains models with this gate; here it is an approximation of softmax attention of the given q, k and v.
#include "approximations/selection/pages.hpp"

namespace attnbench::moba_method {
namespace {

template <class T>
struct Means {
  static Index width(Index d) { return d; }
  static Matrix<T> of(const In<T>& K, Index size) {
    Matrix<T> means(Pages{.size = size}.containing(K.rows()), K.cols());
    for (Index block = 0; block < means.rows(); ++block)
      means.row(block) = row_block(K, block * size, std::min(size, K.rows() - block * size)).colwise().mean();
    return means;
  }
  static void score(Context& context, const In<T>& Q, const In<T>& summaries, Out<T> scores) {
    multiply_transposed<T>(context, Q, summaries, scores);
  }
};

Pages blocks_of(const Params& params) { return {.size = params.integer("block"), .keep = params.integer("keep")}; }

template <class T>
class MoBA final : public PagedSoftmax<T, Means<T>> {
 public:
  explicit MoBA(const Draw& draw) : PagedSoftmax<T, Means<T>>(blocks_of(draw.params)) {}
};

const bool registered = add(method<MoBA>({
    .text = {.name = "moba",
             .printed = "MoBA",
             .summary = "softmax over the row's own block of keys and the blocks whose mean key has the largest logit",
             .formula = "A_ij = exp(q_i.k_j) / sum over the blocks kept of exp(q_i.k_l), gate of a block q_i.mean(k)",
             .reference = "Lu et al. 2025, arXiv:2502.13189, section 2.2",
             .cost = "O(n^2 / block d + n keep block (d + dv)) time, O(n / block d) memory",
             .family = "selection",
             .departure = "applied to given q, k and v, without the training that the paper asks for; without a causal "
                          "mask, later blocks have gates as well",
             .aliases = {"mixture-of-block-attention"}},
    .parameters = {Parameter::integer("block", 64, "keys of a block", 1),
                   Parameter::integer("keep", 3, "blocks of a row, its own included", 1).as_budget()},
    .claims =
        [](const Params&, const Shape&) {
          return Claims{
              .row_stochastic = true, .non_negative = true, .causal_exact = true, .exact_when = "keep=1000000000"};
        },
    .memory = [](const Params& params,
                 const Shape& shape) { return memory_of_pages(blocks_of(params), shape.d, shape); },
    .cost = [](const Params& params, const Shape& shape) { return cost_of_pages(blocks_of(params), shape.d, shape); },
}));

}  // namespace
}  // namespace attnbench::moba_method
