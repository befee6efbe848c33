// Row and element operations on views, compiled once for float and double. X is b x c throughout.
#pragma once

#include <span>

#include "harness/linalg/products.hpp"

namespace attnbench {

// X_ij = exp(X_ij - shift_i).
template <class T>
void exponentiate_rows(Context& context, OutArg<T> X, std::span<const T> shift);
// maximum_i = max_j X_ij.
template <class T>
void row_maxima(const InArg<T>& X, std::span<T> maximum);
// sum_i = sum_j X_ij.
template <class T>
void row_sums(const InArg<T>& X, std::span<T> sum);
// sum_j += sum_i X_ij, rows added in order.
template <class T>
void add_column_sums(const InArg<T>& X, std::span<T> sum);
// The softmax of row i over its entries [begin, end). All other entries become 0, and so does the whole row if begin =
// end.
template <class T>
void softmax_within(Context& context, OutArg<T> X, Index i, Index begin, Index end);
// X_ij *= factor_i.
template <class T>
void scale_rows(OutArg<T> X, std::span<const T> factor);
// half_i = |x_i|^2 / 2.
template <class T>
void half_squared_norms(const InArg<T>& X, std::span<T> half);

}  // namespace attnbench
