// The softmax weights of all queries, summed: the score of H2O, which evicts by it step after step (method
// heavy-hitter). Zhang et al. 2023, arXiv:2306.14048.
#include <algorithm>

#include "harness/core/key_score.hpp"
#include "harness/linalg/products.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::accumulated_score {
namespace {

constexpr Index block = 64;  // rows at once, so that memory does not grow with their number

const bool registered = add(KeyScoreEntry{
    .text = {.name = "accumulated",
             .summary = "weight that all queries together give a key",
             .formula = "s_j = sum_i A_ij, A exact attention",
             .reference = "Zhang et al. 2023 (H2O), arXiv:2306.14048, section 4",
             .cost = "O(n^2 d)",
             .departure = "the cache of one prompt; the method heavy-hitter evicts step by step"},
    .score =
        [](const Params&, const Head<double>& head, Mask mask, Context& context, const Matrix<double>&) {
          const Index keys = head.K.rows();
          std::vector<double> scores(static_cast<size_t>(keys), 0);
          for (Index first = 0; first < head.Q.rows(); first += block) {
            const Index count = std::min(block, head.Q.rows() - first);
            Matrix<double> weights(count, keys);
            multiply_transposed<double>(context, row_block(head.Q, first, count), head.K, weights);
            for (Index r = 0; r < count; ++r) {
              softmax_within<double>(context, weights, r, 0, mask.visible(first + r, keys));
              for (Index j = 0; j < keys; ++j) scores[static_cast<size_t>(j)] += weights(r, j);
            }
          }
          return scores;
        },
    .work =
        [](const Params&, const Shape& shape) {
          double visible = 0;
          for (Index i = 0; i < shape.nq; ++i) visible += static_cast<double>(shape.mask.visible(i, shape.nk));
          const double pairs = static_cast<double>(shape.nq) * static_cast<double>(shape.nk);
          return Work{.flops = 2 * pairs * static_cast<double>(shape.d), .exps = visible};
        },
    .memory =
        [](const Params&, const Shape& shape) {
          return sizeof(double) * static_cast<double>(std::min(block, shape.nq)) * static_cast<double>(shape.nk);
        },
});

}  // namespace
}  // namespace attnbench::accumulated_score
