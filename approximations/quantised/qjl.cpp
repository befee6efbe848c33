// QJL: keys stored as m signs of random projections and a norm. Zandieh, Daliri and Han 2024, arXiv:2406.03482,
// Definition 3.1 and Lemma 3.2.
//   q.k~ = sqrt(pi/2) |k| / m sum_i (w_i.q) sign(w_i.k),  w_i ~ N(0, I_d)                                methods.md R
//   E q.k~ = q.k,   Var q.k~ = (pi/2 |q|^2 |k|^2 - (q.k)^2) / m
//   E exp(t q.k~) = (2 Phi(t c q.k/|k|))^m exp(m t^2 c^2 |q|^2 / 2),  c = sqrt(pi/2) |k| / m,  Phi the normal law
// The logits are unbiased. The weights exp(q.k~) are not: their mean is the last line at t = 1.
// rot=true: the vectors of the authors' library, rows of random orthogonal blocks times sqrt(d). Their norms do not
//   vary, and E q.k~ = sqrt(d/2) Gamma(d/2) / Gamma((d+1)/2) q.k: 1.57 % too large at d = 16.
// Signs are decided in double for both scalar types; sign(0) = 1. O(n m d) time for the estimates, then that of
// softmax.
#include <cmath>

#include "approximations/quantised/estimated_keys.hpp"
#include "approximations/quantised/sign_estimates.hpp"

namespace attnbench::qjl_method {
namespace {

// m rows of independent Haar matrices times sqrt(d). A row and its negative give the same estimate, so that the sign
// that a QR factorisation leaves open has no effect.
Matrix<double> orthogonal_rows(Generator& generator, Index m, Index d) {
  Matrix<double> W(m, d);
  for (Index begin = 0; begin < m; begin += d) {
    const Index count = std::min(d, m - begin);
    W.middleRows(begin, count) = std::sqrt(static_cast<double>(d)) * haar_orthogonal(generator, d).topRows(count);
  }
  return W;
}

template <class T>
class Qjl final : public EstimatedKeys<T> {
 public:
  explicit Qjl(const Draw& draw) {
    const Index m = draw.params.integer("m"), d = draw.shape.d;
    if (const auto* given = draw.injected("w", m, d)) {
      W_ = *given;
      return;
    }
    Generator generator = draw.streams.stream("qjl", draw.params.text("rot"), draw.head, draw.replicate);
    W_ = draw.params.flag("rot") ? orthogonal_rows(generator, m, d) : standard_normal(generator, m, d);
  }

  Tensors state() const override { return {{"w", W_}}; }

 protected:
  void estimate(const In<double>& K, Context& context, Out<double> estimates) const override {
    estimates.setZero();
    add_sign_estimates(context, K, W_, estimates);
  }

 private:
  Matrix<double> W_;  // m x d
};

// log E exp(t q.k~) for independent normal vectors. Of |k| = 0 the estimate is 0.
double log_moment(double t, const Pair& pair, double m) {
  if (pair.k2 == 0) return 0;
  const double c = t * std::sqrt(M_PI / 2 * pair.k2) / m;
  return m * std::log(std::erfc(-c * pair.qk / std::sqrt(2 * pair.k2))) + m * c * c * pair.q2 / 2;
}

KernelTheory theory(const Params& params) {
  const double m = static_cast<double>(params.integer("m"));
  return {.target = "exp(q.k)",
          .mean = [m](const Pair& pair) { return std::exp(log_moment(1, pair, m)); },
          .variance =
              [m](const Pair& pair) {
                const double mean = log_moment(1, pair, m);
                return std::exp(2 * mean) * std::expm1(log_moment(2, pair, m) - 2 * mean);
              }};
}

const bool registered = add(method<Qjl>({
    .text = {.name = "qjl",
             .printed = "QJL",
             .summary = "softmax on keys that are stored as signs of random projections and a norm; emulated",
             .formula = "out_i = softmax_j(sqrt(pi/2) |k_j| / m sum_l (w_l.q_i) sign(w_l.k_j)) V, w_l ~ N(0, I_d)",
             .reference = "Zandieh et al. 2024, arXiv:2406.03482, Definition 3.1",
             .cost = "O(n m d + n^2 (d + dv)) time, O(n d) memory beyond state, input and output; emulated",
             .family = "quantised",
             .departure = "signs are emulated: an estimate is a vector of d numbers. Values stay as they are; the "
                          "authors quantise them by token, and keep the largest channels of keys apart"},
    .parameters = {Parameter::integer("m", 256, "signs of a key", 1, 1 << 20).as_budget(),
                   Parameter::flag("rot", false,
                                   "rows of orthogonal matrices times sqrt(d) in place of normal vectors, as in the "
                                   "authors' library: estimates are too large")
                       .as_published()},
    .claims =
        [](const Params&, const Shape&) {
          return Claims{
              .row_stochastic = true, .non_negative = true, .permutation_equivariant = true, .causal_exact = true};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          const double of_blocks = static_cast<double>(std::min<Index>(256, shape.nk)) *
                                   static_cast<double>(params.integer("m") + 2 * shape.d);
          return static_cast<double>(shape.nk * shape.d) * bytes_of(shape.precision) + 8 * of_blocks;
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          Work work = softmax_cost(shape);
          work.flops += 4 * static_cast<double>(shape.nk * params.integer("m") * shape.d);
          return work;
        },
    .theory = [](const Params& params, const Shape&, const Head<double>*) { return std::optional(theory(params)); },
}));

}  // namespace
}  // namespace attnbench::qjl_method
