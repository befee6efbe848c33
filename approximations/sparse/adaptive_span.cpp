// Adaptive span: softmax over a window whose edge fades out. Sukhbaatar et al., arXiv:1905.07799, section 2.
//   A_ij = m(|i - j|) exp(q_i.k_j) / sum_l m(|i - l|) exp(q_i.k_l),  m(x) = min(1, max(0, (R + z - x) / R)) methods.md
//   F13
// z = span: distances up to z have the weight 1, and over the next R = ramp tokens it falls to 0. ramp=1 is local
// attention of window z. The paper learns z for each head, with a penalty for long spans; here it is given. Its terms
// of relative positions come with the input relative-positions, with drawn weights.
#include <cmath>

#include "approximations/sparse/band.hpp"
#include "approximations/sparse/window.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::adaptive_span_method {
namespace {

template <class T>
class AdaptiveSpan final : public Approximation<T>, public Rows<T>, public Pattern<T> {
 public:
  explicit AdaptiveSpan(const Draw& draw) : span_(draw.params.integer("span")), ramp_(draw.params.integer("ramp")) {}

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    context.for_blocks(head.Q.rows(), band_rows, [&](Context& single, Index begin, Index count) {
      const KeyRange keys = band_of_rows(begin, count, reach(), mask, head.K.rows());
      Out<T> rows = row_block(out, begin, count);
      if (keys.size() == 0) return void(rows.setZero());
      Matrix<T> weights(count, keys.size());
      weigh(head, mask, begin, keys, single, weights);
      multiply<T>(single, weights, row_block(head.V, keys.begin, keys.size()), rows);
    });
  }

  const Rows<T>* rows() const override { return this; }
  const Pattern<T>* pattern() const override { return this; }
  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    A.setZero();
    for (Index i = 0; i < A.rows(); ++i) {
      const KeyRange keys = band_of_row(first + i, reach(), mask, A.cols());
      if (keys.size() == 0) continue;
      weigh(head, mask, first + i, keys, context,
            Out<T>(A.data() + i * A.outerStride() + keys.begin, 1, keys.size(), keys.size()));
    }
  }

  void keys_of_rows(const Head<T>& head, Mask mask, Index first, Context&,
                    std::span<std::vector<Index>> keys) const override {
    keys_of_pattern(Window(0, reach()), head.Q.rows(), head.K.rows(), mask, first, keys);
  }

 private:
  Index reach() const { return span_ + ramp_ - 1; }  // the largest distance of weight above 0

  // Rows [begin, begin + A.rows()) of the attention matrix, over the keys of the range.
  void weigh(const Head<T>& head, Mask mask, Index begin, KeyRange keys, Context& context, Out<T> A) const {
    multiply_transposed<T>(context, row_block(head.Q, begin, A.rows()), row_block(head.K, keys.begin, keys.size()), A);
    for (Index i = 0; i < A.rows(); ++i) {
      const KeyRange seen = band_of_row(begin + i, reach(), mask, head.K.rows());
      const Index left = seen.begin - keys.begin, position = begin + i + mask.offset;
      softmax_within<T>(context, A, i, left, left + seen.size());
      if (seen.size() == 0) continue;
      auto row = A.row(i).segment(left, seen.size()).array();
      for (Index j = 0; j < seen.size(); ++j) {
        const Index distance = std::abs(position - (seen.begin + j));
        if (distance > span_) row[j] *= static_cast<T>(span_ + ramp_ - distance) / static_cast<T>(ramp_);
      }
      row /= row.sum();
    }
  }

  Index span_, ramp_;
};

double pairs(const Params& params, const Shape& shape) {
  return pairs_of(Window(0, params.integer("span") + params.integer("ramp") - 1), shape);
}

const bool registered = add(method<AdaptiveSpan>({
    .text = {.name = "adaptive-span",
             .printed = "Adaptive span",
             .summary = "softmax over a window whose edge fades out",
             .formula = "A_ij ~ m(|i - j|) exp(q_i.k_j), m 1 up to the span, falling to 0 over the ramp",
             .reference = "Sukhbaatar et al. 2019, arXiv:1905.07799, section 2",
             .cost = "O(n (span + ramp) (d + dv)) time, O(span + ramp) memory beyond input and output",
             .family = "sparse",
             .departure = "the span is given, not learnt; relative positions come with the input of that name"},
    .parameters = {Parameter::integer("span", 64, "distance up to which a token has its full weight", 0).as_budget(),
                   Parameter::integer("ramp", 32, "tokens over which the weight falls to 0; 1: a hard edge", 1)},
    .claims =
        [](const Params&, const Shape&) {
          return Claims{
              .row_stochastic = true, .non_negative = true, .causal_exact = true, .exact_when = "span=1000000000"};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          const Index reach = params.integer("span") + params.integer("ramp");
          const Index keys = std::min(shape.nk, band_rows + (shape.mask.causal ? 1 : 2) * reach);
          return static_cast<double>(band_rows * keys) * bytes_of(shape.precision);
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const double seen = pairs(params, shape);
          return Work{.flops = 2 * seen * static_cast<double>(shape.d + shape.dv), .exps = seen};
        },
}));

}  // namespace
}  // namespace attnbench::adaptive_span_method
