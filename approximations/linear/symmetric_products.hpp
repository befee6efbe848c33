// The products of two channels of one token, each once.
//   P(x) = factor [x_l^2, 2^1/2 x_l x_m for l < m],  d (d + 1) / 2 numbers      P(q).P(k) = factor^2 (q.k)^2
#pragma once

#include <algorithm>
#include <numbers>
#include <span>
#include <vector>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

constexpr Index symmetric_product_count(Index d) { return d * (d + 1) / 2; }

// The products of each row of X (b x d), into products (b x d (d + 1) / 2).
template <class T>
void symmetric_products(const In<T>& X, T factor, Out<T> products) {
  constexpr Index step = 64 / static_cast<Index>(sizeof(T));  // entries of a vector register
  const T off_diagonal = factor * std::numbers::sqrt2_v<T>;
  const Index d = X.cols();
  std::vector<T> row(static_cast<size_t>(d + step), 0);
  for (Index i = 0; i < X.rows(); ++i) {
    T* next = products.data() + i * products.outerStride();
    const T* end = next + symmetric_product_count(d);
    std::copy_n(X.data() + i * X.outerStride(), d, row.begin());
    for (Index l = 0; l < d; ++l) {
      const T scaled = off_diagonal * row[static_cast<size_t>(l)];
      const T* x = row.data() + l;
      const Index rest = d - l, whole = (rest + step - 1) / step * step;
      if (next + whole <= end) {  // writes beyond those of l, where those of l + 1 come: without a short rest
        for (Index m = 0; m < whole; m += step)
          Eigen::Map<Eigen::Array<T, step, 1>>(next + m) = scaled * Eigen::Map<const Eigen::Array<T, step, 1>>(x + m);
      } else {
        for (Index m = 0; m < rest; ++m) next[m] = scaled * x[m];
      }
      *next = factor * x[0] * x[0];
      next += rest;
    }
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
