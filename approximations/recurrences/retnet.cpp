// Retention (RetNet): linear attention without features and normaliser, whose state decays. Sun et al.,
// arXiv:2307.08621, eq. 5 and 8.
//   S_t = gamma S_t-1 + k_t v_t^T,  out_t = S_t^T q_t;   A_ij = gamma^(p - j) q_i.k_j for j <= p, p the last key that
//   row i sees                                                                                             methods.md V
// gamma = e^-slope: the decay is ALiBi with that slope, for weights q.k in place of exp(q.k). By default head h has the
// paper's gamma = 1 - 2^(-5 - h), its eq. 8; slope=0 keeps everything. The paper then normalises each head by a group
// norm, which belongs to a model.
#include <cmath>

#include "approximations/recurrences/recurrence.hpp"

namespace attnbench::retnet_method {
namespace {

template <class T>
class RetNet final : public Recurrence<T> {
 public:
  explicit RetNet(const Draw& draw) : Recurrence<T>(draw, {}), decay_(decay(draw)) {}

 protected:
  Gates<T> gates(const Head<T>& head, Context&) const override {
    return {Matrix<T>::Constant(head.K.rows(), 1, decay_), Matrix<T>::Ones(head.K.rows(), 1)};
  }

 private:
  static T decay(const Draw& draw) {
    if (draw.params.text("slope") == "by-head")
      return static_cast<T>(1 - std::exp2(-5 - static_cast<double>(draw.head)));
    return static_cast<T>(std::exp(-draw.params.real("slope")));
  }

  T decay_;
};

const bool registered = add(method<RetNet>({
    .text = {.name = "retnet",
             .printed = "Retention",
             .summary = "linear attention whose state decays by a constant factor with each token",
             .formula = "A_ij = gamma^(i - j) q_i.k_j, j <= i",
             .reference = "Sun et al. 2023, arXiv:2307.08621, eq. 5",
             .cost = "O(n (d dv + chunk (d + dv))) time, O(n d + d dv) memory",
             .family = "recurrences",
             .departure = "without the group norm of the paper's layer, and without its rotary phase",
             .aliases = {"retention"}},
    .parameters = {Parameter::real_or("slope", "by-head",
                                      "gamma = exp(-slope); by-head: gamma = 1 - 2^(-5 - head), as in the paper", 0,
                                      100),
                   chunk_parameter()},
    .claims = [](const Params&, const Shape& shape) { return recurrence_claims(shape); },
    .memory = [](const Params& params, const Shape& shape) { return recurrence_memory(params, shape, false, false); },
    .cost = [](const Params& params, const Shape& shape) { return recurrence_cost(params, shape, false, false); },
}));

}  // namespace
}  // namespace attnbench::retnet_method
