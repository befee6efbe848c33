// Softmax attention to one token after another, over a cache of keys and values.
//   out_t = sum_s exp(q_t.k_s) v_s / sum_s exp(q_t.k_s) over the tokens s <= t that are kept           methods.md H
// O(t (d + dv)) a step if all are kept. A method that keeps fewer has an eviction policy, which selects them.
#pragma once

#include <memory>

#include "harness/core/approximation.hpp"

namespace attnbench {

// Chooses the token that the next one replaces. Each kept token occupies a slot; positions count from 0.
template <class T>
class Eviction {
 public:
  virtual ~Eviction() = default;
  // The largest number of tokens that are kept.
  virtual Index slots() const = 0;
  // The slot of a full cache that the token at `position` takes over.
  virtual Index evict(Index position) const = 0;
  // Called when the token at `position` has been written to `slot`.
  virtual void placed(Index position, Index slot) {
    (void)position;
    (void)slot;
  }
  // Whether the policy uses attention weights. If so, `attended` receives those of each query, slot by slot.
  virtual bool looks_at_attention() const { return false; }
  virtual void attended(std::span<const T> weights) { (void)weights; }
  // The memory of the policy itself while the cache keeps `kept` tokens.
  virtual size_t bytes(Index kept) const {
    (void)kept;
    return 0;
  }
};

template <class T>
class KeyValueCache final : public Decoder<T> {
 public:
  // For shape.nk tokens. Without a policy all of them are kept.
  explicit KeyValueCache(const Shape& shape, std::unique_ptr<Eviction<T>> eviction = nullptr);

  void prefill(const Head<T>& tokens, Context& context) override;
  void step(const Head<T>& token, Context& context, Out<T> out) override;
  size_t bytes() const override;

  // A step adds the next token (k 1 x d, v 1 x dv), then reads: the query q (1 x d) attends to the kept tokens.
  void add(const In<T>& k, const In<T>& v);
  void read(const In<T>& q, Context& context, Out<T> out);
  Index kept() const { return kept_; }  // tokens
  // The weights of the last query on the token in each slot: 1 x kept.
  In<T> weights() const { return {weights_.data(), 1, kept_, weights_.cols()}; }

 private:
  void weigh(const In<T>& q, Context& context);

  std::unique_ptr<Eviction<T>> eviction_;
  Index capacity_;     // the number of tokens that may be added
  Matrix<T> K_, V_;    // slots x d, slots x dv
  Matrix<T> weights_;  // 1 x slots
  Index kept_ = 0, came_ = 0;
};

}  // namespace attnbench
