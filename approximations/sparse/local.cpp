// Local attention: softmax over a window of half width w. Beltagy et al., arXiv:2004.05150, section 3.1.
//   row i sees j with |i - j| <= w;  A = rownorm(softmax's A on the window)                          methods.md F
// nnz = n (2w + 1) - w (w + 1), causal n (w + 1) - w (w + 1) / 2; w >= n - 1 is exact, w = 0 the identity. Longformer's
// window W is w = W/2. L1 distance to exact, a row: 2 (1 - p) with p the mass that exact attention gives the window.
#include "approximations/sparse/window.hpp"

namespace attnbench::local_method {
namespace {

const bool registered = add(sparse_method(
    {
        .text = {.name = "local",
                 .printed = "Local window",
                 .summary = "softmax over a sliding window",
                 .formula = "A_ij = exp(q_i.k_j) / sum over |i - l| <= w of exp(q_i.k_l), for |i - j| <= w",
                 .reference = "Beltagy et al. 2020, arXiv:2004.05150, section 3.1",
                 .cost = "O(n w (d + dv)) time, O(w) memory beyond input and output",
                 .aliases = {"sliding-window"}},
        .parameters = {Parameter::integer("window", 64, "half width w: row i sees |i - j| <= w", 0).as_budget()},
        .claims = exact_with_a_full_window,
    },
    [](const Draw& draw) { return std::make_shared<Window>(0, draw.params.integer("window")); }));

}  // namespace
}  // namespace attnbench::local_method
