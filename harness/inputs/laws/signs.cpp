// Queries and keys with a chosen share of positive entries. Separates maps that treat the signs differently (elu, relu)
// from those that do not.
//   X_ij = scale s_ij |g_ij| for Q and K, g standard normal, s_ij = 1 with probability positive and -1 else;
//   V_ij ~ N(0, 1)
// Known answers: E X^2 = scale^2 for any `positive`, E X = scale (2 positive - 1) sqrt(2/pi). positive=0.5 gives the
// law of `gaussian`. positive=0: no entry is above zero, where elu is the exponential (methods.md C1). positive=1: no
// entry is below zero, so that no relu feature of a token vanishes.
#include <boost/random/uniform_01.hpp>

#include "harness/inputs/laws/input_stream.hpp"

namespace attnbench::signs_law {

namespace {

Matrix<double> with_signs(const Params& params, const InputRequest& request, const char* tensor, const char* signs,
                          Index rows) {
  const double positive = params.real("positive");
  Matrix<double> X = params.real("scale") * normal_rows(params, request, tensor, rows, request.d).cwiseAbs();
  Generator generator = token_stream(params, request, signs);
  boost::random::uniform_01<double> uniform;
  for (Index i = 0; i < rows; ++i)
    for (Index l = 0; l < request.d; ++l)
      if (uniform(generator) >= positive) X(i, l) = -X(i, l);
  return X;
}

HeadData<double> draw(const Params& params, const InputRequest& request) {
  return {with_signs(params, request, "Q", "signs of Q", request.nq),
          with_signs(params, request, "K", "signs of K", request.nk),
          normal_rows(params, request, "V", request.nk, request.dv)};
}

const bool registered = add(InputEntry{
    .text = {.name = "signs",
             .summary = "normal queries and keys with a chosen share of entries above zero",
             .formula = "X_ij = scale s_ij |g_ij|, s_ij = 1 with probability positive and -1 else; V_ij ~ N(0, 1)",
             .reference = "",
             .cost = "O(n d) to draw",
             .family = "law"},
    .parameters = {Parameter::real("positive", 0, "share of the entries of Q and K above zero", 0, 1),
                   Parameter::real("scale", 1, "root mean square of the entries of Q and K", 0, 1e6)},
    .draw = draw,
});

}  // namespace

}  // namespace attnbench::signs_law
