// Bounds on exact weights that follow from what a method computes. Second base classes, beside Approximation: a method
// that derives from one claims `bounds` for it, and the experiments logit-bounds and coarse-weights measure how tight
// the bounds are.
#pragma once

#include "harness/core/approximation.hpp"

namespace attnbench {

// Of methods that choose keys by upper bounds of their logits. If no bound of an unread key is above the largest logit
// that a row read, the row has read its largest logit.
template <class T>
class LogitBounds {
 public:
  virtual ~LogitBounds() = default;
  // bounds_ij >= q_(first + i).k_j for every key j that the row sees. The other entries may be anything.
  virtual void logit_bounds(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> bounds) const = 0;
};

// Null if the method bounds no logits.
template <class T>
const LogitBounds<T>* logit_bounds(const Approximation<T>& method) {
  return dynamic_cast<const LogitBounds<T>*>(&method);
}

// Neighbouring rows and some keys, whose weights a method replaces by one number for all pairs together.
struct CoarseWeight {
  Index first_row, rows;
  std::vector<Index> keys;  // ascending
  double log_weight;        // at most log sum over the pairs of exp(q_i.k_j)
};

// Of methods that replace the weights of pairs of tokens by the weight of their means, which is not above their mean
// weight (Jensen's inequality).
template <class T>
class CoarseWeights {
 public:
  virtual ~CoarseWeights() = default;
  // All of the head, without pairs that have weights of their own.
  virtual std::vector<CoarseWeight> coarse_weights(const Head<T>& head, Mask mask, Context& context) const = 0;
};

// Null if the method replaces no weights so.
template <class T>
const CoarseWeights<T>* coarse_weights(const Approximation<T>& method) {
  return dynamic_cast<const CoarseWeights<T>*>(&method);
}

}  // namespace attnbench
