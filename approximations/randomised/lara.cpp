// Linear randomised attention (LARA): c random vectors that all rows share. Zheng, Wang and Kong, arXiv:2204.04667,
// section 4.
//   w_c ~ N(mu_c, I), mu_c = qbar_c + kbar_c, means of even segments of the queries and of the keys
//   f_c = softmax_j(w_c.k_j - |k_j|^2 / 2) V,  l_c = log sum_j exp(w_c.k_j - |k_j|^2 / 2)
//   out_i = sum_c r_ic f_c / sum_c r_ic,  r_ic = alpha_ic exp(w_c.q_i + l_c) / exp(L_cc),  L_cb = w_c.mu_b - |mu_b|^2 /
//   2
// exp(w.q_i + l) is the density of randomised attention (randomised.cpp) and exp(L_cb) that of proposal b, both over
// N(w; 0, I) and up to a factor of the row: self-normalised multiple importance sampling.             methods.md A10
// weights=balance: alpha_ic = exp(L_cc) / sum_b exp(L_cb), Veach and Guibas' balance heuristic. The alphas sum to one
//   at every w, so that E sum_c r_ic f_c = sum_j exp(q_i.k_j) v_j exp(|q_i|^2/2): numerator and denominator are
//   unbiased.
//   noise=false: w_c = mu_c, as in the authors' module in evaluation mode; then they have a bias.
// weights=query: the paper's alpha_ic = balance + t_ic - 1/C, t_i = softmax_c(q_i.qbar_c), at least 1e-8 as in the
//   authors' module: a proposal near the query counts more. The bound biases numerator and denominator.
// weights=over-queries: the same with t_ic = softmax_i(q_i.qbar_c), as the authors' module computes it. t_ic is then
// 1/n
//   in the mean over the queries in place of 1/C over the proposals, and the alphas do not sum to one.
// There are no more proposals than unpadded queries or keys. No causal form: segments average later tokens. rank <= c.
// L is in double for both scalar types. O(n c (d + dv) + c^2 d) time, O(c (d + dv + c)) memory.
#include <algorithm>
#include <cmath>
#include <limits>

#include "approximations/low-rank/segments.hpp"
#include "approximations/low-rank/unpadded_queries.hpp"
#include "approximations/softmax/tiled_softmax.hpp"
#include "harness/core/estimates.hpp"
#include "harness/linalg/exponentials.hpp"
#include "harness/linalg/per_row.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::lara_method {
namespace {

constexpr Index query_block = 256;
constexpr double least_alpha = 1e-8;  // of weights=query, as in the authors' module

template <class T>
class Lara : public Approximation<T>, public Kernel<T>, public Factored<T> {
 public:
  explicit Lara(const Draw& draw)
      : c_(draw.params.integer("c")),
        by_query_(draw.params.text("weights") != "balance"),
        over_queries_(draw.params.text("weights") == "over-queries"),
        padded_(draw.shape.mask.keys >= 0) {
    const Index count = std::min({c_, draw.shape.nq, draw.shape.nk}), d = draw.shape.d;
    if (const auto* given = draw.injected("z", count, d)) {
      z_ = *given;
      return;
    }
    Generator generator = draw.streams.stream("lara", draw.head, draw.replicate);
    z_ = standard_normal(generator, count, d);
    if (!draw.params.flag("noise")) z_.setZero();
  }

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const Index keys = mask.visible(0, head.K.rows());
    if (keys == 0) return void(out.setZero());
    const Samples samples = samples_of(head, mask, keys, row_block(head.V, 0, keys), context);
    context.for_blocks(out.rows(), query_block, [&](Context& single, Index begin, Index count) {
      Matrix<T> R(count, samples.W.rows());
      PerRow<T> log_rows(count), sums(count);
      weigh(row_block(head.Q, begin, count), samples, single, R, log_rows);
      row_sums<T>(R, sums);
      for (T& sum : sums) sum = 1 / sum;
      auto block = row_block(out, begin, count);
      multiply<T>(single, R, samples.F, block);
      scale_rows<T>(block, std::span<const T>(sums));
    });
  }

  Tensors state() const override { return {{"z", z_}}; }
  const Kernel<T>* kernel() const override { return padded_ ? nullptr : this; }  // the interface gives it no mask
  const Factored<T>* factored() const override { return this; }

  // sum_c r_ic softmax_j(w_c.k_j - |k_j|^2 / 2), which estimates exp(q_i.k_j).
  void kernel(const Head<T>& head, Context& context, Out<T> block, std::span<T> log_rows,
              std::span<T> log_columns) const override {
    const Samples samples = of_every_key(head, context);
    Matrix<T> R(head.Q.rows(), samples.W.rows());
    weigh_estimates(head, samples, context, R, log_rows);
    multiply<T>(context, R, samples.F, block);
    std::fill(log_columns.begin(), log_columns.end(), T(0));
  }

  void diagonal(const Head<T>& head, Context& context, std::span<T> values, std::span<T> log_scale) const override {
    const Samples samples = of_every_key(head, context);
    Matrix<T> R(head.Q.rows(), samples.W.rows());
    weigh_estimates(head, samples, context, R, log_scale);
    for (Index i = 0; i < R.rows(); ++i) values[static_cast<size_t>(i)] = R.row(i).dot(samples.F.col(i));
  }

  // sum_c r_ic: the softmax of each sample sums to one. Not block by block: every entry of the kernel depends on all
  // keys.
  void normalisers(const Head<T>& head, Mask mask, Context& context, std::span<T> values,
                   std::span<T> log_scale) const override {
    const Index keys = mask.visible(0, head.K.rows());
    if (keys == 0) {
      std::fill(values.begin(), values.end(), T(0));
      return std::fill(log_scale.begin(), log_scale.end(), -std::numeric_limits<T>::infinity());
    }
    const Samples samples = samples_of(head, mask, keys, Matrix<T>::Ones(keys, 1).eval(), context);
    Matrix<T> R(head.Q.rows(), samples.W.rows());
    weigh_estimates(head, samples, context, R, log_scale);
    for (Index i = 0; i < R.rows(); ++i) values[static_cast<size_t>(i)] = R.row(i).sum();
  }

  // L_ic = r_ic / sum_c r_ic, R_jc = softmax_j(w_c.k_j - |k_j|^2 / 2).
  void factors(const Head<T>& head, Mask mask, Context& context, Matrix<T>& L, Matrix<T>& R) const override {
    const Index keys = mask.visible(0, head.K.rows());
    L = Matrix<T>::Zero(head.Q.rows(), 1);
    R = Matrix<T>::Zero(head.K.rows(), 1);
    if (keys == 0) return;
    const Samples samples = samples_of(head, mask, keys, Matrix<T>::Identity(keys, keys).eval(), context);
    L = Matrix<T>::Zero(head.Q.rows(), samples.W.rows());
    R = Matrix<T>::Zero(head.K.rows(), samples.W.rows());
    PerRow<T> log_rows(L.rows());
    weigh(head.Q, samples, context, L, log_rows);
    for (Index i = 0; i < L.rows(); ++i) L.row(i) /= L.row(i).sum();
    R.topRows(keys) = samples.F.transpose();
  }

 protected:
  struct Samples {
    Matrix<T> qbar, W;   // C x d
    Matrix<T> F;         // C x the columns of V
    PerRow<T> log;       // l_c - log sum_b exp(L_cb); of weights=query l_c - L_cc
    PerRow<T> balance;   // exp(L_cc) / sum_b exp(L_cb)
    PerRow<T> log_near;  // log sum_i exp(q_i.qbar_c) of weights=over-queries
  };

  Samples of_every_key(const Head<T>& head, Context& context) const {
    const Index nk = head.K.rows();
    return samples_of(head, {}, nk, Matrix<T>::Identity(nk, nk).eval(), context);
  }
  // R_ic = r_ic exp(-|q_i|^2/2 - log_row_i): with it the row estimates exp(q_i.k_j).
  void weigh_estimates(const Head<T>& head, const Samples& samples, Context& context, Matrix<T>& R,
                       std::span<T> log_rows) const {
    weigh(head.Q, samples, context, R, log_rows);
    for (Index i = 0; i < R.rows(); ++i) log_rows[static_cast<size_t>(i)] -= head.Q.row(i).squaredNorm() / 2;
  }

  // V: the values of the keys, or other columns to average.
  Samples samples_of(const Head<T>& head, Mask mask, Index keys, const In<T>& V, Context& context) const {
    const Index queries = unpadded_queries(head.Q.rows(), mask), C = std::min({c_, queries, keys}), d = head.Q.cols();
    const In<T> K = row_block(head.K, 0, keys);
    Samples samples{Matrix<T>(C, d), Matrix<T>(C, d), Matrix<T>(C, V.cols()),
                    PerRow<T>(C),    PerRow<T>(C),    PerRow<T>(over_queries_ ? C : 0)};
    Matrix<T> kbar(C, d);
    pool<T>(context, row_block(head.Q, 0, queries), Segments::even(queries, C), {}, samples.qbar);
    pool<T>(context, K, Segments::even(keys, C), {}, kbar);
    const Matrix<double> mu = samples.qbar.template cast<double>() + kbar.template cast<double>();
    const Matrix<double> W = mu + z_.topRows(C);
    samples.W = W.template cast<T>();

    PerRow<T> bias(keys);
    half_squared_norms<T>(K, bias);
    for (T& half : bias) half = -half;
    tiled_softmax<T>({samples.W, K, V}, {}, bias, context, samples.F, samples.log);

    Context unrounded(context.threads());
    Matrix<double> L(C, C);
    multiply_transposed<double>(unrounded, W, mu, L);
    const Eigen::ArrayXd half = mu.rowwise().squaredNorm() / 2;
    for (Index a = 0; a < C; ++a) {
      L.row(a).array() -= half.transpose();
      const double largest = L.row(a).maxCoeff(), own = L(a, a);
      const double all = largest + std::log((L.row(a).array() - largest).exp().sum());
      samples.log[a] -= static_cast<T>(by_query_ ? own : all);
      samples.balance[a] = static_cast<T>(std::exp(own - all));
    }
    if (over_queries_) {
      Matrix<T> nothing(C, 0);
      const In<T> Q = row_block(head.Q, 0, queries);
      tiled_softmax<T>({samples.qbar, Q, row_block(Matrix<T>(queries, 0), 0, queries)}, {}, {}, context, nothing,
                       samples.log_near);
    }
    unrounded.work.exps += static_cast<double>(C * C);
    context.work += unrounded.work;
    return samples;
  }

 private:
  // R_ic = r_ic exp(-log_row_i), all finite, with a sum above 0.
  void weigh(const In<T>& Q, const Samples& samples, Context& context, Matrix<T>& R, std::span<T> log_rows) const {
    multiply_transposed<T>(context, Q, samples.W, R);
    row_maxima<T>(R, std::span<const T>(samples.log), log_rows);
    PerRow<T> shift(R.rows());
    for (Index i = 0; i < R.rows(); ++i) shift[i] = -log_rows[static_cast<size_t>(i)];
    exponentiate<T>(context, R, std::span<const T>(shift), std::span<const T>(samples.log));
    if (!by_query_) return;
    Matrix<T> near(R.rows(), R.cols());
    multiply_transposed<T>(context, Q, samples.qbar, near);
    const Eigen::Map<const Eigen::Array<T, 1, Eigen::Dynamic>> balance(samples.balance.data(), R.cols());
    for (Index i = 0; i < R.rows(); ++i) {
      if (over_queries_) {
        for (Index c = 0; c < near.cols(); ++c) near(i, c) = std::exp(near(i, c) - samples.log_near[c]);
        context.work.exps += static_cast<double>(near.cols());
      } else {
        softmax_within<T>(context, near, i, 0, near.cols());
      }
      R.row(i).array() *= (balance + near.row(i).array() - 1 / static_cast<T>(R.cols())).max(T(least_alpha));
    }
  }

  Index c_;
  bool by_query_, over_queries_, padded_;
  Matrix<double> z_;  // min(c, nq, nk) x d
};

// With weights=balance, which claims that sums have no bias.
template <class T>
class BalancedLara final : public Lara<T>, public UnbiasedSums<T> {
 public:
  using Lara<T>::Lara;

  void sums(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> numerators, std::span<T> denominators,
            std::span<T> log_scale) const override {
    const Index keys = mask.visible(0, head.K.rows()), rows = numerators.rows();
    numerators.setZero();
    std::fill(denominators.begin(), denominators.end(), T(0));
    std::fill(log_scale.begin(), log_scale.end(), T(0));
    if (keys == 0) return;
    const auto samples = this->samples_of(head, mask, keys, row_block(head.V, 0, keys), context);
    Matrix<T> R(rows, samples.W.rows());
    this->weigh_estimates({row_block(head.Q, first, rows), head.K, head.V}, samples, context, R, log_scale);
    multiply<T>(context, R, samples.F, numerators);
    row_sums<T>(R, denominators);
  }
};

template <class T>
std::unique_ptr<Approximation<T>> drawn(const Draw& draw) {
  if (draw.params.text("weights") == "balance") return std::make_unique<BalancedLara<T>>(draw);
  return std::make_unique<Lara<T>>(draw);
}

double proposals(const Params& params, const Shape& shape) {
  return static_cast<double>(std::min({params.integer("c"), shape.nq, shape.nk}));
}

const bool registered = add(MethodEntry{
    .text = {.name = "lara",
             .printed = "LARA",
             .summary = "randomised attention with random vectors that all rows share, each row weighing them",
             .formula = "out_i = sum_c r_ic f_c / sum_c r_ic, f_c = softmax_j(w_c.k_j - |k_j|^2 / 2) V, "
                        "w_c ~ N(qbar_c + kbar_c, I), r_ic the importance weights",
             .reference = "Zheng et al. 2022, arXiv:2204.04667",
             .cost = "O(n c (d + dv) + c^2 d) time, O(c (d + dv + c)) memory beyond input and output",
             .family = "randomised",
             .departure = "segments have no learnt layers"},
    .parameters = {Parameter::integer("c", 64, "proposals, each with one sample; at most as many as tokens", 1, 1 << 20)
                       .as_budget(),
                   Parameter::choice("weights", "query",
                                     "of samples: the paper's, which favour proposals near the query, or the balance "
                                     "heuristic, whose numerators and denominators have no bias; over-queries: the "
                                     "authors' module, where they favour by a softmax over queries",
                                     {"query", "balance", "over-queries"}),
                   Parameter::flag("noise", true,
                                   "false: w_c = qbar_c + kbar_c, as in evaluation mode of the authors' module")
                       .as_published()},
    .f32 = drawn<float>,
    .f64 = drawn<double>,
    .claims =
        [](const Params& params, const Shape& shape) {
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .no_form = shape.mask.causal ? "every proposal averages tokens, later ones included" : "",
                        .equal_keys = true,
                        .rank_at_most = params.integer("c")};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          const double C = proposals(params, shape), d = static_cast<double>(shape.d);
          const double block = static_cast<double>(std::min(query_block, shape.nq));
          const double matrices = params.text("weights") == "balance" ? 1 : 2;
          return 8 * C * (C + 2 * d) +
                 (C * (3 * d + static_cast<double>(shape.dv)) + matrices * block * C + static_cast<double>(shape.nk)) *
                     bytes_of(shape.precision);
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const double C = proposals(params, shape), d = static_cast<double>(shape.d),
                       dv = static_cast<double>(shape.dv);
          const double nq = static_cast<double>(shape.nq), nk = static_cast<double>(shape.nk);
          Work work{.flops = 2 * C * (nq + nk) * (d + dv) + 2 * C * C * d + (nq + nk) * d,
                    .exps = C * (nq + nk) + C * C};
          if (params.text("weights") != "balance") work += {.flops = 2 * nq * C * d, .exps = nq * C};
          if (params.text("weights") == "over-queries") work += {.flops = 2 * nq * C * d, .exps = nq * C};
          return work;
        },
});

}  // namespace
}  // namespace attnbench::lara_method
