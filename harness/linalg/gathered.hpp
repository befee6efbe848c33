// Products with rows of a matrix that lie apart, read where they are.
#pragma once

#include <span>

#include "harness/linalg/products.hpp"

namespace attnbench {

// products_t = x . X_r, r = rows[t]. x is 1 x c, X has c columns, products is 1 x (number of rows). A row may be there
// several times.
template <class T>
void multiply_gathered(Context& context, const InArg<T>& x, const InArg<T>& X, std::span<const Index> rows,
                       OutArg<T> products);
// sum += sum over t of weights_t X_r, r = rows[t]. weights is 1 x (number of rows), sum is 1 x c.
template <class T>
void add_gathered(Context& context, const InArg<T>& weights, const InArg<T>& X, std::span<const Index> rows,
                  OutArg<T> sum);

}  // namespace attnbench
