// Randomised attention (RA): a row from random features of its own. Zheng, Wang and Kong, arXiv:2204.04667, section 3.
//   w ~ sum_j a_j N(q + k_j, I), a the softmax row:  J ~ a, then w = q + k_J + z with z ~ N(0, I)
//   f(w) = softmax_j(w.k_j - |k_j|^2 / 2) V,  E f(w) = o exactly                                    methods.md A10
//   out = the mean of f over m draws a row
// The density of w is N(w; 0, I) sum_j exp(w.(q + k_j) - |q|^2/2 - |k_j|^2/2) / sum_j exp(q.k_j), whose second factor
// is the denominator of f up to constants, so that it cancels: the row as a whole is unbiased. A row draws among the
// keys that it sees, so the causal form is exact. m n^2 (d + 1) operations: a reference, not fast. J is drawn in double
// for both scalar types, because sums rounded to float would draw other keys. noise=false: z = 0, as in the authors'
// module in evaluation mode; the mean of a row is then not softmax's. State: u (n x m), uniform in (0, 1), and
// z (n m x d). O(m n) memory in blocks of rows.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/core/estimates.hpp"
#include "harness/linalg/per_row.hpp"
#include "harness/linalg/rows.hpp"
#include "harness/random/uniform_numbers.hpp"

namespace attnbench::randomised_method {
namespace {

// Rows whose draws share one product.
Index rows_at_once(Index m) { return std::clamp<Index>(64 / m, 1, 16); }

// The key at which the sums of the weights so far pass x; one without weight is never drawn.
Index key_at(std::span<const double> sums, double x) {
  auto key = static_cast<size_t>(std::upper_bound(sums.begin(), sums.end(), x) - sums.begin());
  if (key == sums.size()) --key;  // x was rounded up to the total
  while (key > 0 && sums[key] == sums[key - 1]) --key;
  return static_cast<Index>(key);
}

template <class T>
class Randomised final : public Approximation<T>, public Rows<T>, public UnbiasedRows<T> {
 public:
  explicit Randomised(const Draw& draw) : m_(draw.params.integer("m")) {
    const Index nq = draw.shape.nq, d = draw.shape.d;
    if (const auto* given = draw.injected("u", nq, m_)) {
      u_ = *given;
      z_ = *draw.injected("z", nq * m_, d);
      return;
    }
    Generator uniform = draw.streams.stream("randomised keys", draw.head, draw.replicate);
    u_ = uniform_numbers(uniform, nq, m_);
    Generator normal = draw.streams.stream("randomised noise", draw.head, draw.replicate);
    z_ = standard_normal(normal, nq * m_, d);
    if (!draw.params.flag("noise")) z_.setZero();
  }

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    for_blocks(head, mask, 0, out.rows(), context, [&](Context& single, Index begin, Matrix<T>& A) {
      auto block = row_block(out, begin, A.rows());
      if (A.cols() == 0) return void(block.setZero());
      multiply<T>(single, A, row_block(head.V, 0, A.cols()), block);
    });
  }

  Tensors state() const override { return {{"u", u_}, {"z", z_}}; }
  const Rows<T>* rows() const override { return this; }

  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    A.setZero();
    for_blocks(head, mask, first, A.rows(), context,
               [&](Context&, Index begin, Matrix<T>& block) { A.block(begin, 0, block.rows(), block.cols()) = block; });
  }

 private:
  // Calls body(context, begin, A) with rows [first + begin, first + begin + A.rows()) of the attention matrix and the
  // keys that any of them sees as columns.
  template <class Body>
  void for_blocks(const Head<T>& head, Mask mask, Index first, Index total, Context& context, const Body& body) const {
    const Index nk = head.K.rows(), most_seen = total > 0 ? mask.visible(first + total - 1, nk) : 0;
    const Matrix<double> K = row_block(head.K, 0, most_seen).template cast<double>();
    PerRow<T> half(most_seen);
    half_squared_norms<T>(row_block(head.K, 0, most_seen), half);
    context.for_blocks(total, rows_at_once(m_), [&](Context& single, Index begin, Index count) {
      const Index row = first + begin, seen = mask.visible(row + count - 1, nk);
      Matrix<T> A = Matrix<T>::Zero(count, seen);
      if (seen > 0) {
        Matrix<T> weights(count * m_, seen);
        multiply_transposed<T>(single, drawn_vectors(head.Q, row_block(K, 0, seen), mask, row, count, nk, single),
                               row_block(head.K, 0, seen), weights);
        weights.array().rowwise() -= Eigen::Map<const Eigen::Array<T, 1, Eigen::Dynamic>>(half.data(), seen);
        for (Index i = 0; i < count; ++i)
          for (Index t = i * m_; t < (i + 1) * m_; ++t) {
            softmax_within<T>(single, weights, t, 0, mask.visible(row + i, nk));
            A.row(i) += weights.row(t) / static_cast<T>(m_);
          }
      }
      body(single, begin, A);
    });
  }

  // w of the m draws of rows [row, row + count), those of one row after another. 0 for a row that sees no key.
  Matrix<T> drawn_vectors(const In<T>& Q, const In<double>& K, Mask mask, Index row, Index count, Index nk,
                          Context& context) const {
    const Matrix<double> queries = row_block(Q, row, count).template cast<double>();
    Matrix<double> a(count, K.rows());
    // Halves of emulated half precision would draw other keys: accelerators compute a softmax row in float at least.
    Context unrounded;
    multiply_transposed<double>(unrounded, queries, K, a);
    Matrix<T> W = Matrix<T>::Zero(count * m_, Q.cols());
    for (Index i = 0; i < count; ++i) {
      const Index seen = mask.visible(row + i, nk);
      if (seen == 0) continue;
      softmax_within<double>(unrounded, a, i, 0, seen);
      std::span<double> sums(a.row(i).data(), static_cast<size_t>(seen));
      std::partial_sum(sums.begin(), sums.end(), sums.begin());
      for (Index t = 0; t < m_; ++t) {
        const Index key = key_at(sums, u_(row + i, t) * sums.back());
        W.row(i * m_ + t) = (queries.row(i) + K.row(key) + z_.row((row + i) * m_ + t)).template cast<T>();
      }
    }
    context.work += unrounded.work;
    return W;
  }

  Index m_;
  Matrix<double> u_, z_;
};

const bool registered = add(method<Randomised>({
    .text = {.name = "randomised",
             .printed = "Randomised attention",
             .summary = "each row from random features that it draws from its own softmax row: unbiased as a whole",
             .formula = "out_i = mean over m draws of softmax_j(w.k_j - |k_j|^2 / 2) V, w ~ sum_j a_ij N(q_i + k_j, I)",
             .reference = "Zheng et al. 2022, arXiv:2204.04667",
             .cost = "O(n^2 (m d + dv)) time, O(n (m + d)) memory beyond state, input and output; the state is n m d",
             .family = "randomised",
             .aliases = {"ra"}},
    .parameters = {Parameter::integer("m", 8, "draws whose mean a row is", 1, 1 << 16).as_budget(),
                   Parameter::flag("noise", true, "false: w = q + k_J, as in evaluation mode of the authors' module")
                       .as_published()},
    .claims =
        [](const Params&, const Shape&) {
          return Claims{.row_stochastic = true, .non_negative = true, .equal_keys = true, .causal_exact = true};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          const Index m = params.integer("m"), rows = rows_at_once(m);
          return static_cast<double>(shape.nk) * (8 * static_cast<double>(shape.d + rows) +
                                                  static_cast<double>(rows * (m + 1)) * bytes_of(shape.precision));
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const double pairs = static_cast<double>(shape.nq * shape.nk) * (shape.mask.causal ? 0.5 : 1.0);
          const auto m = static_cast<double>(params.integer("m"));
          return Work{.flops = 2 * pairs * ((m + 1) * static_cast<double>(shape.d) + static_cast<double>(shape.dv)),
                      .exps = pairs * (m + 1)};
        },
}));

}  // namespace
}  // namespace attnbench::randomised_method
