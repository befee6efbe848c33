// The engine of methods that replace each key by an estimate made from its stored code, k~ = decode(encode(k)):
//   out_i = sum_j exp(q_i.k~_j) v_j / sum_j exp(q_i.k~_j)                                                 methods.md R
// The estimated logit q.k~ is linear in q, so that one vector k~ a key gives all logits. A library computes q.k~ from
// the code itself; here the arithmetic of codes is emulated: k~ is a vector of real numbers. Each key is estimated by
// itself, so that the causal form changes nothing.
#pragma once

#include <algorithm>

#include "approximations/softmax/tiled_softmax.hpp"
#include "harness/core/estimates.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench {

template <class T>
class EstimatedKeys : public Approximation<T>, public Kernel<T>, public Rows<T>, public EstimatedLogits<T> {
 public:
  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const Matrix<T> keys = estimated(head.K, mask, context);
    tiled_softmax<T>({head.Q, keys, head.V, head.extra}, mask, {}, context, out);
  }

  const Kernel<T>* kernel() const override { return this; }
  const Rows<T>* rows() const override { return this; }

  void kernel(const Head<T>& head, Context& context, Out<T> block, std::span<T> log_rows,
              std::span<T> log_columns) const override {
    logits(head, context, block);
    row_maxima<T>(block, log_rows);
    exponentiate_rows<T>(context, block, log_rows);
    std::fill(log_columns.begin(), log_columns.end(), T(0));
  }

  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    multiply_transposed<T>(context, row_block(head.Q, first, A.rows()), estimated(head.K, mask, context), A);
    for (Index i = 0; i < A.rows(); ++i) softmax_within<T>(context, A, i, 0, mask.visible(first + i, A.cols()));
  }

  void logits(const Head<T>& head, Context& context, Out<T> block) const override {
    multiply_transposed<T>(context, head.Q, estimated(head.K, {}, context), block);
  }

 protected:
  // k~ of each row of K, b x d. Codes are decided in double for both scalar types, which then store the same ones.
  virtual void estimate(const In<double>& K, Context& context, Out<double> estimates) const = 0;

 private:
  static constexpr Index block_rows = 256;

  // Padded keys become 0.
  Matrix<T> estimated(const In<T>& K, Mask mask, Context& context) const {
    const Index keys = Mask{.keys = mask.keys}.visible(0, K.rows());
    Matrix<T> all = Matrix<T>::Zero(K.rows(), K.cols());
    context.for_blocks(keys, block_rows, [&](Context& single, Index begin, Index count) {
      const Matrix<double> exact = row_block(K, begin, count).template cast<double>();
      Matrix<double> estimates(count, K.cols());
      estimate(exact, single, estimates);
      row_block(all, begin, count) = estimates.template cast<T>();
    });
    return all;
  }
};

// Of softmax over estimated keys, beside the work of their estimates.
inline Work softmax_cost(const Shape& shape) {
  const double pairs = static_cast<double>(shape.nq * shape.nk) * (shape.mask.causal ? 0.5 : 1.0);
  return {.flops = 2 * pairs * static_cast<double>(shape.d + shape.dv), .exps = pairs};
}

}  // namespace attnbench
