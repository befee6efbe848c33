// The inputs of a method: one attention head, the keys that each row may see, and the sizes.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "harness/linalg/context.hpp"

namespace attnbench {

// f32, f64: every number is of this type. bf16: numbers are float, and matrix products read bfloat16 (Operands::bf16).
enum class Precision { f32, f64, bf16 };

inline bool in_float(Precision precision) { return precision != Precision::f64; }
inline Operands operands_of(Precision precision) {
  return precision == Precision::bf16 ? Operands::bf16 : Operands::given;
}
// "f32", "f64", "bf16".
std::string to_string(Precision precision);
std::optional<Precision> precision_of(const std::string& text);
// The same after --precision. Any other text throws Misuse.
Precision parse_precision(const std::string& text);

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

inline double bytes_of(Precision precision) { return in_float(precision) ? 4 : 8; }

using Tensors = std::map<std::string, Matrix<double>>;

// An input of a method beside Q, K and V, such as gates or positions (harness/core/needs.hpp). Each axis has an entry a
// query, an entry a key, or a number of entries that does not depend on them.
struct Extra {
  enum class Axis { queries, keys, fixed };
  Matrix<double> numbers;
  Axis rows = Axis::keys, columns = Axis::fixed;
};
using Extras = std::map<std::string, Extra>;

// The entries of these queries and keys.
Extras part_of(const Extras& whole, std::span<const Index> queries, std::span<const Index> keys);

// One head: Q is nq x d, K is nk x d, V is nk x dv. Q and K are scaled by d^-1/4 (methods.md 0), so the weights that
// softmax normalises are exp(q.k). extra: the inputs that the method needs beside them, or null.
template <class T>
struct Head {
  In<T> Q, K, V;
  const Extras* extra = nullptr;

  // An input that MethodEntry::needs names.
  const Matrix<double>& needed(const std::string& name) const;
};

// A head that owns its numbers.
template <class T>
struct HeadData {
  Matrix<T> Q, K, V;
  Extras extra = {};
  Head<T> view() const { return {Q, K, V, &extra}; }
  template <class U>
  HeadData<U> cast() const {
    return {Q.template cast<U>(), K.template cast<U>(), V.template cast<U>(), extra};
  }
};

// Consecutive queries and keys of a head, with their entries of its further inputs. Refers to the head's Q, K and V.
template <class T>
class HeadPart {
 public:
  HeadPart(const Head<T>& whole, Index query, Index queries, Index key, Index keys);
  // The same rows of all three, as a decoder takes them.
  static HeadPart tokens(const Head<T>& whole, Index first, Index count) { return {whole, first, count, first, count}; }
  Head<T> view() const { return {Q_, K_, V_, &extra_}; }

 private:
  In<T> Q_, K_, V_;
  Extras extra_;
};

}  // namespace attnbench
