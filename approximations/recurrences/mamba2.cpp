// Mamba-2 (SSD): a state space model with one scalar for its transition, which is linear attention with a gate. Dao and
// Gu, arXiv:2405.21060, section 5 and eq. 7.
//   S_t = a_t S_t-1 + dt_t k_t v_t^T,  out_t = S_t^T q_t; B = k, C = q, X = v                        methods.md V
//   dt_t = softplus(w.k_t - 3),  a_t = exp(-dt_t): the state forgets over some 20 tokens
// In the paper dt comes from the token by trained weights, and a = exp(-A dt) with A trained from values in [1, 16].
#include <cmath>

#include "approximations/recurrences/recurrence.hpp"

namespace attnbench::mamba2_method {
namespace {

constexpr double bias = 3;

template <class T>
class Mamba2 final : public Recurrence<T> {
 public:
  explicit Mamba2(const Draw& draw) : Recurrence<T>(draw, {.gates = 1}) {}

 protected:
  Gates<T> gates(const Head<T>& head, Context& context) const override {
    if (!this->law()) return {given_gates(head, "keep", 1), given_gates(head, "write", 1e6)};
    const Matrix<T> z = this->law()->of(head.K, context).array() - static_cast<T>(bias);
    context.work.exps += 2 * static_cast<double>(z.size());
    return {z.unaryExpr([](T x) { return sigmoid(-x); }), z.unaryExpr([](T x) { return softplus(x); })};
  }
  void pull_gates(const Head<T>&, const Gates<T>& gates, const Gates<T>& slopes, Context& context,
                  Out<T> dK) const override {
    if (!this->law()) return;
    const auto a = gates.keep.array();
    const Matrix<T> of_logits = ((1 - a) * (slopes.write.array() - a * slopes.keep.array())).matrix();
    this->law()->pull(of_logits, context, dK);
  }
};

const bool registered = add(method<Mamba2>({
    .text = {.name = "mamba-2",
             .printed = "Mamba-2",
             .summary = "linear attention whose state forgets, and writes, by one gate of each token",
             .formula = "A_ij = q_i.k_j dt_j prod_(j < t <= i) a_t, j <= i",
             .reference = "Dao and Gu 2024, arXiv:2405.21060, eq. 7",
             .cost = "O(n (d dv + chunk (d + dv))) time, O(n d + d dv) memory",
             .family = "recurrences",
             .departure =
                 "one head's state space alone: gates by drawn weights of the key, no convolution, skip or norm",
             .aliases = {"mamba2", "ssd"}},
    .parameters = {gates_parameter("dt = softplus(w.k - 3), a = exp(-dt)"), chunk_parameter()},
    .claims = [](const Params&, const Shape& shape) { return recurrence_claims(shape); },
    .memory = [](const Params& params, const Shape& shape) { return recurrence_memory(params, shape, false, false); },
    .cost =
        [](const Params& params, const Shape& shape) {
          Work work = recurrence_cost(params, shape, false, false);
          if (!are_given(params)) work.exps = 2 * static_cast<double>(shape.nk);
          return work;
        },
    .needs = {keep_need(), write_need()},
}));

}  // namespace
}  // namespace attnbench::mamba2_method
