// Gated DeltaNet: the delta rule on a state that forgets. Yang, Kautz and Hatamizadeh, arXiv:2412.06464, eq. 10.
//   S_t = alpha_t (I - beta_t k_t k_t^T) S_t-1 + beta_t k_t v_t^T,  out_t = S_t^T q_t, |k_t| = |q_t| = 1
//   alpha_t = exp(-softplus(w_1.k_t - 3)) as in mamba-2, beta_t = sigmoid(w_2.k_t) as in deltanet   methods.md V
// alpha = 1 is deltanet.
#include "approximations/recurrences/recurrence.hpp"

namespace attnbench::gated_deltanet_method {
namespace {

template <class T>
class GatedDeltaNet final : public Recurrence<T> {
 public:
  explicit GatedDeltaNet(const Draw& draw) : Recurrence<T>(draw, {.erases = true, .unit_length = true, .gates = 2}) {}

 protected:
  Gates<T> gates(const Head<T>& head, Context& context) const override {
    if (!this->law()) return {given_gates(head, "keep", 1), given_gates(head, "write", 2)};
    const Matrix<T> z = this->law()->of(head.K, context);
    context.work.exps += static_cast<double>(z.size());
    return forget_and_write(z);
  }
  void pull_gates(const Head<T>&, const Gates<T>& gates, const Gates<T>& slopes, Context& context,
                  Out<T> dK) const override {
    if (!this->law()) return;
    const auto alpha = gates.keep.array(), beta = gates.write.array();
    Matrix<T> of_logits(alpha.rows(), 2);
    of_logits.col(0) = (-slopes.keep.array() * alpha * (1 - alpha)).matrix();
    of_logits.col(1) = (slopes.write.array() * beta * (1 - beta)).matrix();
    this->law()->pull(of_logits, context, dK);
  }
};

const bool registered = add(method<GatedDeltaNet>({
    .text = {.name = "gated-deltanet",
             .printed = "Gated DeltaNet",
             .summary = "the delta rule on a state that forgets by a gate of each token",
             .formula = "S_t = alpha_t (I - beta_t k_t k_t^T) S_t-1 + beta_t k_t v_t^T, out_t = S_t^T q_t",
             .reference = "Yang et al. 2024, arXiv:2412.06464, eq. 10",
             .cost = "O(n (d dv + chunk (d + dv))) time, O(n d + d dv) memory",
             .family = "recurrences",
             .departure = "gates by drawn weights of the key, in place of trained ones of the token; no convolution, "
                          "output gate or norm"},
    .parameters = {gates_parameter("alpha = exp(-softplus(w_1.k - 3)), beta = sigmoid(w_2.k)"), chunk_parameter()},
    .claims = [](const Params&, const Shape& shape) { return recurrence_claims(shape); },
    .memory = [](const Params& params, const Shape& shape) { return recurrence_memory(params, shape, false, true); },
    .cost =
        [](const Params& params, const Shape& shape) {
          Work work = recurrence_cost(params, shape, false, true);
          if (!are_given(params)) work.exps = 2 * static_cast<double>(shape.nk);
          return work;
        },
    .needs = {keep_need(), write_need()},
}));

}  // namespace
}  // namespace attnbench::gated_deltanet_method
