// Gated linear attention (GLA): the state forgets each channel of the keys at a rate of its own, which depends on the
// token. Yang et al., arXiv:2312.06635, eq. 3 and section 4.1.
//   S_t = diag(alpha_t) S_t-1 + k_t v_t^T,  out_t = S_t^T q_t                                        methods.md V
//   alpha_t = sigmoid(W k_t)^(1/16), W d x d drawn; in the paper a trained map of rank 16 of the token, and a bias
#include <cmath>

#include "approximations/recurrences/recurrence.hpp"

namespace attnbench::gla_method {
namespace {

constexpr double temperature = 16;

template <class T>
class Gla final : public Recurrence<T> {
 public:
  explicit Gla(const Draw& draw) : Recurrence<T>(draw, {.gates = draw.shape.d}) {}

 protected:
  Gates<T> gates(const Head<T>& head, Context& context) const override {
    const Matrix<T> write = Matrix<T>::Ones(head.K.rows(), 1);
    if (!this->law()) return {given_gates(head, "keep_channels", 1), write};
    Matrix<T> keep = this->law()->of(head.K, context);
    keep = keep.unaryExpr([](T z) { return std::pow(sigmoid(z), static_cast<T>(1 / temperature)); });
    context.work.exps += 2 * static_cast<double>(keep.size());
    return {std::move(keep), write};
  }
  void pull_gates(const Head<T>&, const Gates<T>& gates, const Gates<T>& slopes, Context& context,
                  Out<T> dK) const override {
    if (!this->law()) return;
    const auto derivative = [](T a) {
      return a * (1 - std::pow(a, static_cast<T>(temperature))) / static_cast<T>(temperature);
    };
    const Matrix<T> of_logits = slopes.keep.cwiseProduct(gates.keep.unaryExpr(derivative));
    this->law()->pull(of_logits, context, dK);
  }
};

Need keep_channels() {
  Need need = keep_need();
  need.name = "keep_channels";
  need.columns = "d";
  need.meaning = "the share of each channel of the state that stays when the token comes, from 0 to 1";
  return need;
}

const bool registered = add(method<Gla>({
    .text = {.name = "gla",
             .printed = "Gated linear attention",
             .summary = "linear attention whose state forgets channel by channel, by gates of each token",
             .formula = "A_ij = sum over channels of q_ic k_jc prod_(j < t <= i) alpha_tc, j <= i",
             .reference = "Yang et al. 2023, arXiv:2312.06635, eq. 3",
             .cost = "O(n (d dv + chunk (d + dv))) time, O(n d + d dv) memory",
             .family = "recurrences",
             .departure =
                 "gates by drawn weights of the key, in place of trained ones of the token; without output gate "
                 "and norm",
             .aliases = {"gated-linear-attention"}},
    .parameters = {gates_parameter("sigmoid(W k)^(1/16)"), chunk_parameter()},
    .claims = [](const Params&, const Shape& shape) { return recurrence_claims(shape); },
    .memory = [](const Params& params, const Shape& shape) { return recurrence_memory(params, shape, true, false); },
    .cost =
        [](const Params& params, const Shape& shape) {
          Work work = recurrence_cost(params, shape, true, false);
          if (are_given(params)) return work;
          const double numbers = static_cast<double>(shape.nk * shape.d);
          return work += {.flops = 2 * numbers * static_cast<double>(shape.d), .exps = 2 * numbers};
        },
    .needs = {keep_channels()},
}));

}  // namespace
}  // namespace attnbench::gla_method
