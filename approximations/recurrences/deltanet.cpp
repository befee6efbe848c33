// DeltaNet: linear attention by the delta rule. Before a token writes its value, what the state holds for its key is
// erased. Schlag et al., arXiv:2102.11174, eq. 25; Yang et al., arXiv:2406.06484, eq. 2 (in chunks).
//   S_t = (I - beta_t k_t k_t^T) S_t-1 + beta_t k_t v_t^T,  out_t = S_t^T q_t, |k_t| = |q_t| = 1     methods.md V
//   beta_t = sigmoid(w.k_t), w drawn; in the papers trained weights of the token
// A step of gradient descent on |S^T k_t - v_t|^2 / 2 with the rate beta_t. With beta = 1 and orthonormal keys a query
// that is one of them gets its value exactly.
#include "approximations/recurrences/recurrence.hpp"

namespace attnbench::deltanet_method {
namespace {

template <class T>
class DeltaNet final : public Recurrence<T> {
 public:
  explicit DeltaNet(const Draw& draw) : Recurrence<T>(draw, {.erases = true, .unit_length = true, .gates = 1}) {}

 protected:
  Gates<T> gates(const Head<T>& head, Context& context) const override {
    const Matrix<T> keep = Matrix<T>::Ones(head.K.rows(), 1);
    if (!this->law()) return {keep, given_gates(head, "write", 2)};
    const Matrix<T> z = this->law()->of(head.K, context);
    context.work.exps += static_cast<double>(z.size());
    return {keep, z.unaryExpr(&sigmoid<T>)};
  }
  void pull_gates(const Head<T>&, const Gates<T>& gates, const Gates<T>& slopes, Context& context,
                  Out<T> dK) const override {
    if (!this->law()) return;
    const auto beta = gates.write.array();
    const Matrix<T> of_logits = (slopes.write.array() * beta * (1 - beta)).matrix();
    this->law()->pull(of_logits, context, dK);
  }
};

const bool registered = add(method<DeltaNet>({
    .text = {.name = "deltanet",
             .printed = "DeltaNet",
             .summary = "linear attention that erases what the state holds for a key before it writes",
             .formula = "S_t = (I - beta_t k_t k_t^T) S_t-1 + beta_t k_t v_t^T, out_t = S_t^T q_t",
             .reference = "Yang et al. 2024, arXiv:2406.06484, eq. 2",
             .cost = "O(n (d dv + chunk (d + dv))) time, O(n d + d dv) memory",
             .family = "recurrences",
             .departure =
                 "beta by drawn weights of the key, in place of trained ones of the token; keys and queries of "
                 "unit length without an activation before",
             .aliases = {"delta-rule"}},
    .parameters = {gates_parameter("beta = sigmoid(w.k)"), chunk_parameter()},
    .claims = [](const Params&, const Shape& shape) { return recurrence_claims(shape); },
    .memory = [](const Params& params, const Shape& shape) { return recurrence_memory(params, shape, false, true); },
    .cost =
        [](const Params& params, const Shape& shape) {
          Work work = recurrence_cost(params, shape, false, true);
          if (!are_given(params)) work.exps = static_cast<double>(shape.nk);
          return work;
        },
    .needs = {write_need()},
}));

}  // namespace
}  // namespace attnbench::deltanet_method
