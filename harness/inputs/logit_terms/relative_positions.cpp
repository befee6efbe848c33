// The relative position terms of Transformer-XL.
//   s_ij = (q_i + u).k_j + (q_i + v).W r(i - j)                                                         methods.md W3
//   r(t) = (sin t w_0, cos t w_0, sin t w_1, ...), w_c = 10000^(-2c/d), c < d/2
// Dai et al. 2019, arXiv:1901.02860, section 3.3. u, v and W are one draw for the head, u and v standard normal and the
// entries of W normal with variance strength^2 / d; in the source they are learnt.
// sin and cos of t = i - j are products of those of i and of j. With p = W^T (q_i + v) the second term is
//   sum_c (p_s sin iw + p_c cos iw) cos jw + (p_c sin iw - p_s cos iw) sin jw
// so that d further coordinates of q and k hold it, without an n x n matrix. Coordinates beyond an even number are 0.
#include <cmath>

#include "harness/inputs/laws/input_stream.hpp"
#include "harness/inputs/logit_terms/inner_input.hpp"

namespace attnbench::relative_positions_term {
namespace {

// The frequency of the coordinates 2c and 2c + 1.
double frequency(Index c, Index d) { return std::pow(10000.0, -2 * static_cast<double>(c) / static_cast<double>(d)); }

HeadData<double> draw(const Params& params, const InputRequest& request) {
  const Index d = request.d / 2;
  const HeadData<double> inner = inner_head(params, request, request.nq, request.nk, d);
  Generator generator = shared_stream(params, request, "terms");
  // inner_head scales q and k by the same factor, and each product of u, v and W with them gets it once.
  const double factor = unit_coordinate(request.d) / unit_coordinate(d);
  const Matrix<double> u = factor * standard_normal(generator, 1, d), v = factor * standard_normal(generator, 1, d),
                       W = params.real("strength") / std::sqrt(static_cast<double>(d)) *
                           standard_normal(generator, d, d);
  const Matrix<double> P = (inner.Q.rowwise() + v.row(0)) * W;
  HeadData<double> head{Matrix<double>::Zero(request.nq, request.d), Matrix<double>::Zero(request.nk, request.d),
                        inner.V};
  head.Q.leftCols(d) = inner.Q.rowwise() + u.row(0);
  head.K.leftCols(d) = inner.K;
  // Queries are the last tokens where there are fewer of them than keys.
  const Index first = request.nk - request.nq;
  for (Index c = 0; c < d / 2; ++c) {
    const double w = frequency(c, d);
    for (Index i = 0; i < request.nq; ++i) {
      const double angle = w * static_cast<double>(first + i), sine = std::sin(angle), cosine = std::cos(angle);
      head.Q(i, d + 2 * c) = P(i, 2 * c) * sine + P(i, 2 * c + 1) * cosine;
      head.Q(i, d + 2 * c + 1) = P(i, 2 * c + 1) * sine - P(i, 2 * c) * cosine;
    }
    for (Index j = 0; j < request.nk; ++j) {
      const double angle = w * static_cast<double>(j);
      head.K(j, d + 2 * c) = factor * std::cos(angle);
      head.K(j, d + 2 * c + 1) = factor * std::sin(angle);
    }
  }
  return head;
}

const bool registered = add(InputEntry{
    .text = {.name = "relative-positions",
             .summary = "another input with the relative position terms of Transformer-XL in its logits",
             .formula = "s_ij = (q_i + u).k_j + (q_i + v).W r(i - j), r sines and cosines, as d more coordinates",
             .reference = "Dai et al. 2019, arXiv:1901.02860, section 3.3",
             .cost = "that of the other input, and O(n d^2)",
             .family = "logit term",
             .departure = "u, v and W are drawn at random, where the source learns them"},
    .parameters = {inner_parameter(),
                   Parameter::real("strength", 1, "of W: its entries have variance strength^2 / d", 0, 1e6)},
    .draw = draw,
    .limits = [](const Params& params) { return wider_limits(params, [](Index d) { return 2 * d; }); },
    .content = inner_content,
});

}  // namespace
}  // namespace attnbench::relative_positions_term
