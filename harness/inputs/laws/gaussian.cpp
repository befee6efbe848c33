// Independent normal queries, keys and values: no structure, the null hypothesis of every comparison.
//   Q_ij, K_ij ~ N(0, scale^2), V_ij ~ N(0, 1)
// Known answers: given Q, the logits of row i (q.k = Q_i.K_j d^-1/2) are iid N(0, s_i^2), s_i = scale^2 |g_i| d^-1/2
// for a standard normal g_i in R^d, so E s_i^2 = scale^4. As n grows (methods.md I)
//   exp(H_i) / n -> exp(-s_i^2 / 2)              effective support of row i, H its entropy
//   1 / (n sum_j A_ij^2) -> exp(-s_i^2)          participation
//   |A_i - 1/n| / |A_i| -> sqrt(1 - exp(-s_i^2)) error of the uniform average, relative, Euclidean norms
#include "harness/inputs/laws/input_stream.hpp"

namespace attnbench::gaussian_law {

namespace {

HeadData<double> draw(const Params& params, const InputRequest& request) {
  const double scale = params.real("scale");
  HeadData<double> head{normal_rows(params, request, "Q", request.nq, request.d),
                        normal_rows(params, request, "K", request.nk, request.d),
                        normal_rows(params, request, "V", request.nk, request.dv)};
  head.Q *= scale;  // in place: at n = 65,536 temporaries would be the memory peak of a cell that streams
  head.K *= scale;
  return head;
}

const bool registered = add(InputEntry{
    .text = {.name = "gaussian",
             .summary = "independent normal queries, keys and values",
             .formula = "Q_ij, K_ij ~ N(0, scale^2), V_ij ~ N(0, 1); logits of a row iid N(0, s^2), E s^2 = scale^4",
             .reference = "none: the baseline",
             .cost = "O(n d) to draw",
             .family = "law"},
    .parameters = {Parameter::real("scale", 1, "standard deviation of the entries of Q and K", 0, 1e6)},
    .draw = draw,
});

}  // namespace

}  // namespace attnbench::gaussian_law
