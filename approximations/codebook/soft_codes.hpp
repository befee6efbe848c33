// The feature map of soft vector quantisation: a key is spread over the codes, a query looks at the codes. Source 001
// (kexue 9862); methods.md D.
//   phi(q)_y = exp(q.c_y),   phi(k)_y = p(y|k) = softmax_y(log pi_y - |k - c_y|^2 / (2 sigma^2))
//   log p(y|k) = u_y - log sum_z exp(u_z),   u_y = log pi_y + (k.c_y - |c_y|^2/2) / sigma^2:  |k|^2 cancels
// Without the normaliser, phi(k)_y = pi_y exp(-|k - c_y|^2 / (2 sigma^2)), the joint density: with equal |c_y| that is
// Performer's positive map.
// c features. O(n c d) time.
#pragma once

#include <string>

#include "harness/core/feature_map.hpp"

namespace attnbench {

enum class CodeWeights { posterior, joint };

template <class T>
class SoftCodes final : public FeatureMap<T> {
 public:
  // codebook is c x d. counts, c x 1 and above 0, are the keys on each code: pi is proportional to them, or uniform if
  // counts is null. name: the codebook's name in the state.
  SoftCodes(const Matrix<double>& codebook, const Matrix<double>* counts, double sigma,
            CodeWeights weights = CodeWeights::posterior, const std::string& name = "codebook");

  Index features() const override { return codebook_.rows(); }
  Form form() const override { return Form::exponents; }
  void map(Context&, const In<T>& X, Side, Index first_position, Out<T> block, std::span<T> log_scale) const override;
  Tensors state() const override { return state_; }
  bool differentiable() const override { return true; }
  // Queries: d_block C. Keys: (d_block - p(y|k) sum of d_block) C / sigma^2, since log_scale is 0 for every X; for the
  // joint density (d_block C - d_log_scale k) / sigma^2.
  void pullback(Context&, const In<T>& X, Side, Index first_position, const In<T>& block, const In<T>& d_block,
                std::span<const T> d_log_scale, Out<T> dX) const override;

 private:
  // u_y of each row of X, and log p(y|k).
  void log_joint(Context&, const In<T>& X, Out<T> block) const;
  void log_posterior(Context&, const In<T>& X, Out<T> block) const;

  Matrix<T> codebook_;  // c x d
  Matrix<T> offsets_;   // 1 x c: log pi_y - |c_y|^2 / (2 sigma^2), less a constant
  T precision_;         // 1 / sigma^2
  CodeWeights weights_;
  Tensors state_;
};

}  // namespace attnbench
