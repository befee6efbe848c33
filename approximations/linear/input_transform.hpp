// Maps of q and k that preserve every weight exp(q.k) up to a factor per query: softmax attention does not change, but
// the variance of random features does. methods.md 0.
//   q' = q G,  k' = k G^-T + c        exp(q.k) = exp(q'.k') exp(-q'.c)
// Fitted to a head: G = I, diagonal (arXiv:2302.00787, SADERF) or full (ADERF), both minimising the mean of |q' +
// k'|^2; c = -(mean q' + mean k') then removes the means from q' + k'.
#pragma once

#include "harness/core/feature_map.hpp"

namespace attnbench {

enum class TransformKind { none, diagonal, full };

struct InputTransform {
  Matrix<double> query, key;  // G and G^-T, d x d
  Matrix<double> shift;       // c, 1 x d

  Matrix<double> of_queries(const In<double>& Q) const;
  Matrix<double> of_keys(const In<double>& K) const;
  HeadData<double> of(const Head<double>& head) const { return {of_queries(head.Q), of_keys(head.K), head.V}; }
};

// Directions in which a head has no extent stay unchanged: every invertible G is correct, even if it fits badly.
InputTransform fit_transform(const Head<double>& head, TransformKind kind, bool centre);
InputTransform transform_of(const Matrix<double>& G, const Matrix<double>& shift);

// The head that a draw's method learns from. If it is missing, throws Misuse, which names `what` as its user.
const Head<double>& calibration_of(const Draw& draw, const std::string& what);

// The theory of an estimate on transformed inputs, from its theory on the inputs that it is given.
KernelTheory transformed(const KernelTheory& theory, const InputTransform& transform);

// A feature map that acts on transformed inputs.
template <class T>
class TransformedInputs final : public FeatureMap<T> {
 public:
  // state: the tensors that recreate this transform; the map's own state is added to them.
  TransformedInputs(std::unique_ptr<FeatureMap<T>> map, const InputTransform& transform, Tensors state);

  Index features() const override { return map_->features(); }
  Form form() const override { return map_->form(); }
  void map(Context&, const In<T>& X, Side, Index first_position, Out<T> block, std::span<T> log_scale) const override;
  Tensors state() const override;
  bool depends_on_keys() const override { return map_->depends_on_keys(); }
  bool differentiable() const override { return map_->differentiable(); }
  void pullback(Context&, const In<T>& X, Side, Index first_position, const In<T>& block, const In<T>& d_block,
                std::span<const T> d_log_scale, Out<T> dX) const override;
  std::unique_ptr<FeatureMap<T>> given_keys(Context&, const In<T>& K) const override;

 private:
  TransformedInputs(std::unique_ptr<FeatureMap<T>> map, const TransformedInputs& other);
  Matrix<T> transformed(Context&, const In<T>& X, Side) const;

  std::unique_ptr<FeatureMap<T>> map_;
  Matrix<T> query_, key_, shift_;
  Tensors state_;
};

}  // namespace attnbench
