// Quest: exact softmax over the pages of keys whose logits may be largest. Tang et al. 2024, arXiv:2406.10774, section
// 3.3 and algorithm 1.
//   score of a page = sum_c max(q_c max_c, q_c min_c), max_c and min_c over its keys                      methods.md U
//   row i keeps `keep` pages: its own and those of the largest scores (ties: the first);  softmax over their keys
// A score is an upper bound of every logit in its page (page_bounds.hpp). Scores take O(n / page) of a row instead of
// O(n). The row's own page counts among those kept, as in the authors' kernels; their evaluation script does not force
// it, and keeps at least 3 pages. Neither keeps the first page, and both leave two layers of a model dense.
#include "approximations/selection/page_bounds.hpp"
#include "approximations/selection/pages.hpp"
#include "harness/core/bounds.hpp"

namespace attnbench::quest_method {
namespace {

template <class T>
struct Bounds {
  static Index width(Index d) { return 2 * d; }
  static Matrix<T> of(const In<T>& K, Index size) { return page_extremes<T>(K, size); }
  static void score(Context& context, const In<T>& Q, const In<T>& summaries, Out<T> scores) {
    page_bounds<T>(context, Q, summaries, scores);
  }
};

Pages pages_of(const Params& params) { return {.size = params.integer("page"), .keep = params.integer("keep")}; }

template <class T>
class Quest final : public PagedSoftmax<T, Bounds<T>>, public LogitBounds<T> {
 public:
  explicit Quest(const Draw& draw) : PagedSoftmax<T, Bounds<T>>(pages_of(draw.params)) {}

  void logit_bounds(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> bounds) const override {
    const Index size = this->pages_.size;
    const Matrix<T> extremes =
        page_extremes<T>(row_block(head.K, 0, Mask{.keys = mask.keys}.visible(0, head.K.rows())), size);
    Matrix<T> of_pages(bounds.rows(), extremes.rows());
    page_bounds<T>(context, row_block(head.Q, first, bounds.rows()), extremes, of_pages);
    bounds.setZero();
    for (Index page = 0; page < extremes.rows(); ++page) {
      const Index key = page * size, keys = std::min(size, bounds.cols() - key);
      bounds.middleCols(key, keys).colwise() = of_pages.col(page);
    }
  }
};

const bool registered = add(method<Quest>({
    .text = {.name = "quest",
             .summary = "softmax over the row's own page of keys and the pages whose logits have the largest bounds",
             .formula =
                 "A_ij = exp(q_i.k_j) / sum over the pages kept of exp(q_i.k_l), page score sum_c max(q_c max_c, "
                 "q_c min_c) over its keys",
             .reference = "Tang et al. 2024, arXiv:2406.10774, algorithm 1",
             .cost = "O(n^2 / page d + n keep page (d + dv)) time, O(n / page d) memory",
             .family = "selection",
             .departure = "every row is treated as a decoding step is there; the row's own page counts among those "
                          "kept, as in the authors' kernels"},
    .parameters = {Parameter::integer("page", 16, "keys of a page", 1),
                   Parameter::integer("keep", 8, "pages of a row, its own included", 1).as_budget()},
    .claims =
        [](const Params&, const Shape&) {
          return Claims{
              .row_stochastic = true, .non_negative = true, .causal_exact = true, .exact_when = "keep=1000000000"};
        },
    .memory = [](const Params& params,
                 const Shape& shape) { return memory_of_pages(pages_of(params), 2 * shape.d, shape); },
    .cost = [](const Params& params,
               const Shape& shape) { return cost_of_pages(pages_of(params), 2 * shape.d, shape); },
}));

}  // namespace
}  // namespace attnbench::quest_method
