// Bounds of logits by page: the greatest and the least entry of each channel over the keys of a page. methods.md U.
//   q.k_j = sum_c q_c k_jc <= sum_c max(q_c max_c, q_c min_c) = q+.max + q-.min for every key j of the page
//   with q+ = max(q, 0) and q- = min(q, 0), entry by entry
// Equal to the largest logit if the page has one key or d = 1. A bound below a logit that was read proves that no key
// of the page has a larger one.
#pragma once

#include <algorithm>

#include "harness/linalg/products.hpp"

namespace attnbench {

// Row p is [max | min] over the keys [p size, (p + 1) size) of K (n x d), ceil(n / size) x 2d.
template <class T>
Matrix<T> page_extremes(const In<T>& K, Index size) {
  const Index d = K.cols(), pages = (K.rows() + size - 1) / size;
  Matrix<T> extremes(pages, 2 * d);
  for (Index page = 0; page < pages; ++page) {
    const In<T> keys = row_block(K, page * size, std::min(size, K.rows() - page * size));
    extremes.row(page).head(d) = keys.colwise().maxCoeff();
    extremes.row(page).tail(d) = keys.colwise().minCoeff();
  }
  return extremes;
}

// bounds_ip for the rows of Q (b x d) and of extremes (pages x 2d), b x pages.
template <class T>
void page_bounds(Context& context, const InArg<T>& Q, const InArg<T>& extremes, OutArg<T> bounds) {
  Matrix<T> sides(Q.rows(), 2 * Q.cols());
  sides.leftCols(Q.cols()) = Q.cwiseMax(T(0));
  sides.rightCols(Q.cols()) = Q.cwiseMin(T(0));
  multiply_transposed<T>(context, sides, extremes, bounds);
}

}  // namespace attnbench
