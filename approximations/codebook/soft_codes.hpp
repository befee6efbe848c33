// The feature map of soft vector quantisation: a key is spread over the codes, a query looks at the codes. Source 001
// (kexue 9862); methods.md D.
//   phi(q)_y = exp(q.c_y),   phi(k)_y = p(y|k) = softmax_y(log pi_y - |k - c_y|^2 / (2 sigma^2))
//   log p(y|k) = u_y - log sum_z exp(u_z),   u_y = log pi_y + (k.c_y - |c_y|^2/2) / sigma^2:  |k|^2 cancels
// c features. O(n c d) time.
#pragma once

#include "harness/core/feature_map.hpp"

namespace attnbench {

template <class T>
class SoftCodes final : public FeatureMap<T> {
 public:
  // codebook is c x d. counts are c x 1, the keys on each code, all above 0: pi in proportion to them; null: pi
  // uniform.
  SoftCodes(const Matrix<double>& codebook, const Matrix<double>* counts, double sigma);

  Index features() const override { return codebook_.rows(); }
  Form form() const override { return Form::exponents; }
  void map(Context&, const In<T>& X, Side, Index first_position, Out<T> block, std::span<T> log_scale) const override;
  Tensors state() const override { return state_; }
  bool differentiable() const override { return true; }
  // Queries: d_block C. Keys: (d_block - p(y|k) sum of d_block) C / sigma^2. log_scale is 0 whatever X.
  void pullback(Context&, const In<T>& X, Side, Index first_position, const In<T>& block, const In<T>& d_block,
                std::span<const T> d_log_scale, Out<T> dX) const override;

 private:
  // log p(y|k) of each row of X.
  void log_posterior(Context&, const In<T>& X, Out<T> block) const;

  Matrix<T> codebook_;  // c x d
  Matrix<T> offsets_;   // 1 x c: log pi_y - |c_y|^2 / (2 sigma^2), less a constant
  T precision_;         // 1 / sigma^2
  Tensors state_;
};

}  // namespace attnbench
