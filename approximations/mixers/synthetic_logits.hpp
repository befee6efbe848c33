// The logits B that Synthesizer puts in place of q k^T. Tay et al., arXiv:2005.00743, section 3.
//   random            B_ij = R_pj, p the position of row i: no input is read                             eq. 4
//   factorised        R = R1 R2^T, R1 and R2 n x k: logits of rank k                                     eq. 6
//   dense             B_i = W2 relu(W1 x_i + b1) + b2 in R^n, x_i = q_i                                  eq. 2
//   factorised-dense  B_i = a_i (x) c_i: B_ij = a_i[j / |c|] c_i[j mod |c|], |a| |c| >= n, a and c two such networks;
//                     |c| is the root of n, rounded up                                                   eq. 5
// The paper trains them. Here they are drawn by He's rule, so that the logits of unit-normal tokens have variance 1, as
// in softmax attention: R_ij ~ N(0, 1); R1, R2 ~ N(0, k^-1/2); W1 ~ N(0, 2 d^-1/2), which is 2/d on tokens that are not
// scaled by d^-1/4; W2 ~ N(0, 1/hidden); biases 0. Trained weights are injected as state.
#pragma once

#include "approximations/mixers/positions.hpp"

namespace attnbench {

template <class T>
class SyntheticLogits {
 public:
  virtual ~SyntheticLogits() = default;
  // Logits of rows [first, first + B.rows()) of the head, at positions from `position` on, for the first B.cols() keys.
  virtual void logits(const Head<T>& head, Index first, Index position, Context&, Out<T> B) const = 0;
  virtual Tensors state() const = 0;
};

// Makes the logits that the spec's `kind` names.
template <class T>
std::unique_ptr<SyntheticLogits<T>> synthetic_logits(const Draw& draw);
// Whether this kind has a row of weights for each position of a query.
bool of_positions_alone(const Params& params);
// FLOPs of the logits of one head.
double flops_of_logits(const Params& params, const Shape& shape);

}  // namespace attnbench
