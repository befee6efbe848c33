// Maxima, sums and exponentials with an offset per row and per column, each in one pass over the block, for softmax
// tiles and for features in exponent form. X is b x c throughout; offsets are added to the exponent, and an empty span
// of them means 0.
#pragma once

#include <span>

#include "harness/linalg/products.hpp"

namespace attnbench {

// maximum_j = max(maximum_j, max_i (X_ij + row_offset_i)).
template <class T>
void raise_to_column_maxima(const InArg<T>& X, std::span<const T> row_offset, std::span<T> maximum);
// maximum_i = max_j (X_ij + column_offset_j).
template <class T>
void row_maxima(const InArg<T>& X, std::span<const T> column_offset, std::span<T> maximum);
// X_ij = exp(X_ij + row_offset_i + column_offset_j); then column_sum_j += sum_i X_ij, rows added in order, unless
// column_sum is empty.
template <class T>
void exponentiate(Context& context, OutArg<T> X, std::span<const T> row_offset, std::span<const T> column_offset,
                  std::span<T> column_sum = {});

}  // namespace attnbench
