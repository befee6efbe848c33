// The products of two channels of one token, each once.
//   P(x) = factor [x_l^2, 2^1/2 x_l x_m for l < m],  d (d + 1) / 2 numbers      P(q).P(k) = factor^2 (q.k)^2
#pragma once

#include <numbers>
#include <span>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

constexpr Index symmetric_product_count(Index d) { return d * (d + 1) / 2; }

// The products of each row of X (b x d), into products (b x d (d + 1) / 2).
template <class T>
void symmetric_products(const In<T>& X, T factor, Out<T> products) {
  const T off_diagonal = factor * std::numbers::sqrt2_v<T>;
  for (Index i = 0; i < X.rows(); ++i)
    for (Index l = 0, first = 0, rest = X.cols(); rest > 0; ++l, first += rest--) {
      const T x = X(i, l);
      products.row(i).segment(first, rest) = off_diagonal * x * X.row(i).tail(rest);
      products(i, first) = factor * x * x;
    }
}

// Adds to dX (b x d) the gradient of sum_if d_products_if products_if.
template <class T>
void pull_back_symmetric_products(const In<T>& X, T factor, const In<T>& d_products, Out<T> dX) {
  const T off_diagonal = factor * std::numbers::sqrt2_v<T>;
  for (Index i = 0; i < X.rows(); ++i)
    for (Index l = 0, first = 0, rest = X.cols(); rest > 0; ++l, first += rest--) {
      const T x = X(i, l);
      const auto d_others = d_products.row(i).segment(first + 1, rest - 1);
      dX(i, l) += 2 * factor * x * d_products(i, first) +
                  off_diagonal * (d_others.array() * X.row(i).tail(rest - 1).array()).sum();
      dX.row(i).tail(rest - 1) += off_diagonal * x * d_others;
    }
}

}  // namespace attnbench
