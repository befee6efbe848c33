// An attention matrix that is too large to form, represented by its products with blocks of vectors.
#pragma once

#include <functional>

#include "harness/core/approximation.hpp"

namespace attnbench {

struct LinearMap {
  Index rows = 0, columns = 0;
  double frobenius_squared = 0;
  // out = A G for G columns x b, and out = A^T G for G rows x b.
  using Product = std::function<void(Context&, const In<double>& G, Out<double> out)>;
  Product times, transposed_times;
};

LinearMap map_of(const Matrix<double>& A);  // refers to A, which must outlive it

// The map, and facts found by reading all entries.
struct StreamedAttention {
  LinearMap map;
  bool regular_triangle = false;  // as is_regular_triangle below
};

// Reads A once, in blocks of rows. Computes its Frobenius norm, checks that it is finite (NumericallyInvalid names the
// first entry that is not), and keeps its non-zero entries if they are few (a window, a pattern); products then use
// these entries. Otherwise A G is attend with V = G, and A^T G is Rows::transposed_times. The method must offer rows().
// The map refers to the method and the head, which must outlive it. O(block nk) memory per thread, and 12 bytes for
// each of at most 2^24 entries.
StreamedAttention stream_attention(const Approximation<double>& method, const Head<double>& head, Mask mask,
                                   Context& context);

// Whether rows [first, first + A.rows()) belong to a square lower triangular matrix without zeros on its diagonal. Its
// determinant is the product of the diagonal, so it has full rank, however small that product is (methods.md H2).
bool is_regular_triangle(const In<double>& A, Index first = 0);

}  // namespace attnbench
