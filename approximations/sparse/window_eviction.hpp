// Decoding with a window: the first `sinks` tokens stay; a ring buffer holds the last `window` + 1 of the others.
#pragma once

#include "approximations/softmax/key_value_cache.hpp"

namespace attnbench {

template <class T>
class WindowEviction final : public Eviction<T> {
 public:
  WindowEviction(Index sinks, Index window) : sinks_(sinks), ring_(window + 1) {}
  Index slots() const override { return sinks_ + ring_; }
  Index evict(Index position) const override { return sinks_ + (position - sinks_) % ring_; }

 private:
  Index sinks_, ring_;
};

}  // namespace attnbench
