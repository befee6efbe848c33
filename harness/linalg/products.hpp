// The seam: the only place where matrix products are compiled (float and double). Methods call these functions on views
// and never expand an Eigen product. A small method file thus compiles in seconds, the work is counted in one place,
// and one can exchange the GEMM here. Shapes are asserted; A is a x k, B as each line says, C is a x b.
#pragma once

#include <span>
#include <type_traits>
#include <vector>

#include "harness/linalg/context.hpp"

namespace attnbench {

template <class T>
using InArg = std::type_identity_t<In<T>>;
template <class T>
using OutArg = std::type_identity_t<Out<T>>;

// Announces rows that will be read or written soon. The next products of this thread prefetch them into its cache, one
// line per step of their inner loops; otherwise memory would wait for arithmetic, and then arithmetic for memory. (elu
// features at n = 65536: 1.3 to 1.7 times faster.) At most eight views are kept; a new call drops the unfetched views
// of the previous one.
template <class T>
void fetch_during_products(const std::vector<In<T>>& views);

// X^T in the first columns of X.cols() x width numbers; the others are 0.
template <class T>
Matrix<T> transposed(const InArg<T>& X, Index width);

// C = A B, B is k x b.
template <class T>
void multiply(Context& context, const InArg<T>& A, const InArg<T>& B, OutArg<T> C);

// Columns [begin, end).
struct ColumnRange {
  Index begin = 0, end = 0;
  bool operator==(const ColumnRange&) const = default;
};
// Rows of C that the kernel computes together: a strip.
inline constexpr Index strip_rows = 6;
// C = A B, but in strip s (rows 6 s to 6 s + 5) only the columns needed[s]; other entries keep their values. Ranges
// begin and end at whole vectors. B is k x b.
template <class T>
void multiply_needed(Context& context, const InArg<T>& A, const InArg<T>& B, std::span<const ColumnRange> needed,
                     OutArg<T> C);
// C += A B, B is k x b.
template <class T>
void multiply_add(Context& context, const InArg<T>& A, const InArg<T>& B, OutArg<T> C);
// C = A B^T, B is b x k.
template <class T>
void multiply_transposed(Context& context, const InArg<T>& A, const InArg<T>& B, OutArg<T> C);
// C = A^T B, A is k x a, B is k x b.
template <class T>
void transposed_multiply(Context& context, const InArg<T>& A, const InArg<T>& B, OutArg<T> C);
// C += A^T B, A is k x a, B is k x b.
template <class T>
void transposed_multiply_add(Context& context, const InArg<T>& A, const InArg<T>& B, OutArg<T> C);

}  // namespace attnbench
