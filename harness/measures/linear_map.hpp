// An attention matrix that is too large to be formed, as what it does to blocks of vectors.
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

// The same and what a look at all entries says.
struct StreamedAttention {
  LinearMap map;
  bool regular_triangle = false;  // see below
};

// Reads A once, in blocks of rows: its Frobenius norm, whether it is finite (NumericallyInvalid names the first entry
// that is not), and its entries, when they are few (a window, a pattern): products are then over them. Otherwise A G is
// attend with V = G, and A^T G is Rows::transposed_times. The method must offer rows(). It and the head are referred
// to, and must outlive the map. O(block nk) memory a thread, and 12 bytes an entry of at most 2^24.
StreamedAttention stream_attention(const Approximation<double>& method, const Head<double>& head, Mask mask,
                                   Context& context);

// Whether rows [first, first + A.rows()) are those of a square lower triangular matrix without zeros on its diagonal:
// its determinant is the product of the diagonal, so it has full rank, however small that product is (methods.md H2).
bool is_regular_triangle(const In<double>& A, Index first = 0);

}  // namespace attnbench
