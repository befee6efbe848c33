// Gates of recurrences, one row a token. They come from a law of the keys with drawn weights, which stands for a
// trained one, or with the head (`gates=given`).
#pragma once

#include <algorithm>
#include <cmath>

#include "harness/core/approximation.hpp"
#include "harness/linalg/products.hpp"

namespace attnbench {

template <class T>
struct Gates {
  Matrix<T> keep;   // tokens x 1 or tokens x d: the share of the state that stays, from 0 to 1
  Matrix<T> write;  // tokens x 1: the strength of writing, from 0
};

// z = K W^T, one column a gate. W ~ N(0, d^-1/2), so that z has variance 1 on unit-normal tokens, whose keys are scaled
// by d^-1/4. W is the state "W" of the method.
template <class T>
class GateLogits {
 public:
  GateLogits(const Draw& draw, Index gates);

  Matrix<T> of(const In<T>& K, Context& context) const;  // tokens x gates
  // dK += slopes W.
  void pull(const In<T>& slopes, Context& context, Out<T> dK) const;
  Tensors state() const { return {{"W", W_.template cast<double>()}}; }

 private:
  Matrix<T> W_;  // gates x d
};

template <class T>
T sigmoid(T z) {
  return 1 / (1 + std::exp(-z));
}
template <class T>
T softplus(T z) {
  return std::max(z, T(0)) + std::log1p(std::exp(-std::abs(z)));
}

// keep = exp(-softplus(z_1 - 3)), with which a state forgets over some 20 tokens, and write = sigmoid(z_2). z: tokens
// x 2.
template <class T>
Gates<T> forget_and_write(const Matrix<T>& z) {
  return {z.col(0).unaryExpr([](T x) { return sigmoid(3 - x); }), z.col(1).unaryExpr([](T x) { return sigmoid(x); })};
}

// Gates that come with the head, after a check that they lie in [0, most]. Throws Misuse.
template <class T>
Matrix<T> given_gates(const Head<T>& head, const std::string& name, double most);

// law: drawn weights; given: the head's own, which the entry's needs name.
Parameter gates_parameter(const std::string& law);
inline bool are_given(const Params& params) { return params.text("gates") == "given"; }
Need keep_need();
Need write_need();

}  // namespace attnbench
