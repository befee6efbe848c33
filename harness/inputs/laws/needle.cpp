// Retrieval: every query is aimed at one key, its needle, among independent normal keys.
//   K_ij, V_ij ~ N(0, 1);  Q_i = strength sqrt(d) K_t / |K_t|^2,  t = t(i) uniform on 0 .. min(i, nk - 1)
// The needle is never after the query, so the same head serves causal masks.
// Known answers: the logit of the needle is exactly strength. Given K_t the logits of the other keys are iid N(0, s^2),
// s = strength / |K_t|, so its weight p satisfies E[1/p - 1] = (n - 1) exp(s^2/2 - strength) over n keys. As strength /
// log n grows, the output of row i tends to V_t(i), which reveals a method that misses needles.
#include <algorithm>
#include <boost/random/uniform_int_distribution.hpp>
#include <cmath>

#include "harness/inputs/laws/input_stream.hpp"

namespace attnbench::needle_law {

namespace {

std::vector<Index> needles(const Params& params, const InputRequest& request) {
  std::vector<Index> keys;
  Generator generator = token_stream(params, request, "Q");
  for (Index i = 0; i < request.nq; ++i) {
    boost::random::uniform_int_distribution<Index> needle(0, std::min(i, request.nk - 1));
    keys.push_back(needle(generator));
  }
  return keys;
}

HeadData<double> draw(const Params& params, const InputRequest& request) {
  const double strength = params.real("strength") * std::sqrt(static_cast<double>(request.d));
  HeadData<double> head{Matrix<double>(request.nq, request.d), normal_rows(params, request, "K", request.nk, request.d),
                        normal_rows(params, request, "V", request.nk, request.dv)};
  const auto aimed_at = needles(params, request);
  for (Index i = 0; i < request.nq; ++i) {
    const auto key = head.K.row(aimed_at[static_cast<size_t>(i)]);
    head.Q.row(i) = strength / key.squaredNorm() * key;
  }
  return head;
}

const bool registered = add(InputEntry{
    .text = {.name = "needle",
             .summary = "one key for each query to retrieve, among independent normal keys",
             .formula = "Q_i = strength sqrt(d) K_t / |K_t|^2, t uniform on 0 .. min(i, nk - 1); K_ij, V_ij ~ N(0, 1)",
             .reference = "",
             .cost = "O(n d) to draw",
             .family = "law"},
    .parameters = {Parameter::real("strength", 12,
                                   "the logit of the needle; 12 gives it 0.98 of the weight at n=1024, d=64", 0, 1e6)},
    .draw = draw,
    .needles = needles,
});

}  // namespace

}  // namespace attnbench::needle_law
