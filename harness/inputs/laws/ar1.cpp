// Neighbouring tokens resemble each other: the rows of Q, K and V are stationary first-order autoregressions along the
// tokens.
//   X_0 = s g_0,  X_i = correlation X_(i-1) + s sqrt(1 - correlation^2) g_i,  g standard normal
//   s = scale for Q and K, 1 for V; Q, K and V independent of each other
// Known answers: every entry is N(0, s^2) and Corr(X_ij, X_(i+l)j) = correlation^l. correlation=0 gives the law of
// `gaussian`; correlation=1 makes all keys equal, so attention is the uniform average.
#include <cmath>

#include "harness/inputs/laws/input_stream.hpp"

namespace attnbench::ar1_law {

namespace {

Matrix<double> autoregression(Matrix<double> X, double correlation, double scale) {
  const double innovation = std::sqrt(1 - correlation * correlation);
  for (Index i = 1; i < X.rows(); ++i) X.row(i) = correlation * X.row(i - 1) + innovation * X.row(i);
  return scale * X;
}

HeadData<double> draw(const Params& params, const InputRequest& request) {
  const double correlation = params.real("correlation"), scale = params.real("scale");
  return {autoregression(normal_rows(params, request, "Q", request.nq, request.d), correlation, scale),
          autoregression(normal_rows(params, request, "K", request.nk, request.d), correlation, scale),
          autoregression(normal_rows(params, request, "V", request.nk, request.dv), correlation, 1)};
}

const bool registered = add(InputEntry{
    .text = {.name = "ar1",
             .summary = "tokens that resemble their neighbours: rows are a stationary AR(1) process",
             .formula = "X_i = correlation X_(i-1) + s sqrt(1 - correlation^2) g_i; s = scale for Q and K, 1 for V",
             .reference = "",
             .cost = "O(n d) to draw",
             .family = "law"},
    .parameters = {Parameter::real("correlation", 0.9, "of one token with the next", -1, 1),
                   Parameter::real("scale", 1, "standard deviation of the entries of Q and K", 0, 1e6)},
    .draw = draw,
});

}  // namespace

}  // namespace attnbench::ar1_law
