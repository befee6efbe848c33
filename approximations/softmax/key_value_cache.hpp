// Softmax attention to one token after another, over a cache of keys and values.
//   out_t = sum_s exp(q_t.k_s) v_s / sum_s exp(q_t.k_s) over the tokens s <= t that are kept           methods.md H
// O(t (d + dv)) a step when all of them are. A method that keeps fewer says by an eviction policy which one goes.
#pragma once

#include <memory>

#include "harness/core/approximation.hpp"

namespace attnbench {

// Which token makes room for the next one. Tokens stand in slots; positions count from 0.
template <class T>
class Eviction {
 public:
  virtual ~Eviction() = default;
  // How many tokens are kept at most.
  virtual Index slots() const = 0;
  // The slot, of a full cache, whose token makes room for the one at that position.
  virtual Index evict(Index position) const = 0;
  // The token at that position stands in that slot now.
  virtual void placed(Index position, Index slot) {
    (void)position;
    (void)slot;
  }
  // Whether it looks at the attention that kept tokens get, and that of one query, slot by slot.
  virtual bool looks_at_attention() const { return false; }
  virtual void attended(std::span<const T> weights) { (void)weights; }
  // What it keeps itself for that many tokens.
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

  // A step is both: the next token comes (k 1 x d, v 1 x dv), then a query (1 x d) reads the tokens that are kept.
  void add(const In<T>& k, const In<T>& v);
  void read(const In<T>& q, Context& context, Out<T> out);
  // What the last query gave to the token in each slot: 1 x kept.
  In<T> weights() const { return {weights_.data(), 1, kept_, weights_.cols()}; }

 private:
  void weigh(const In<T>& q, Context& context);

  std::unique_ptr<Eviction<T>> eviction_;
  Index capacity_;     // tokens that may come
  Matrix<T> K_, V_;    // slots x d, slots x dv
  Matrix<T> weights_;  // 1 x slots
  Index kept_ = 0, came_ = 0;
};

}  // namespace attnbench
