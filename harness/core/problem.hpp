// The inputs of a method: one attention head, the keys that each row may see, and the sizes.
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

enum class Precision { f32, f64 };

// Row i sees key j when j < keys and, if causal, j <= i + offset. keys = -1: all keys (no padding).
struct Mask {
  bool causal = false;
  Index offset = 0;
  Index keys = -1;

  // Row i sees keys [0, visible(i, nk)).
  Index visible(Index i, Index nk) const {
    const Index unpadded = keys < 0 ? nk : std::min(keys, nk);
    return causal ? std::clamp<Index>(i + offset + 1, 0, unpadded) : unpadded;
  }
  bool operator==(const Mask&) const = default;
};

struct Shape {
  Index nq = 0, nk = 0, d = 0, dv = 0;
  Mask mask = {};
  Precision precision = Precision::f32;
};

inline double bytes_of(Precision precision) { return precision == Precision::f32 ? 4 : 8; }

using Tensors = std::map<std::string, Matrix<double>>;

// One head: Q is nq x d, K is nk x d, V is nk x dv. Q and K are scaled by d^-1/4 (methods.md 0), so the weights that
// softmax normalises are exp(q.k). extra: further inputs by name (gates, positions), or null.
template <class T>
struct Head {
  In<T> Q, K, V;
  const Tensors* extra = nullptr;
};

// A head that owns its numbers.
template <class T>
struct HeadData {
  Matrix<T> Q, K, V;
  Head<T> view() const { return {Q, K, V}; }
  template <class U>
  HeadData<U> cast() const {
    return {Q.template cast<U>(), K.template cast<U>(), V.template cast<U>()};
  }
};

}  // namespace attnbench
