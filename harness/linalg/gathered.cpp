// Keys that lie apart are read once for one row, so their reading takes the time and not the arithmetic. Copying them
// next to each other for a product would read them twice. (Gathers of a tenth of 16384 keys,
// d = 64: 21 ns for a key and its value out of the third-level cache, 8 ns out of the second.)
#include "harness/linalg/gathered.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <numeric>
#include <utility>
#include <vector>

#include "harness/linalg/bfloat16_products.hpp"
#include "harness/linalg/rounding.hpp"
#include "harness/linalg/vector.hpp"

namespace attnbench {

namespace {

template <class T>
using Lanes = typename Vector<T>::type;

// Adds the halves of every block of 2 `step` entries of a and of b, a's sums first in each.
template <class T, int step, size_t... J>
Lanes<T> add_halves(const Lanes<T>& a, const Lanes<T>& b, std::index_sequence<J...>) {
  constexpr size_t all = sizeof...(J);
  return __builtin_shufflevector(a, b, (J & step ? all + J - step : J)...) +
         __builtin_shufflevector(a, b, (J & step ? all + J : J + step)...);
}
// Entry i of the result is the sum of v[i]. Overwrites v.
template <class T, int step = lanes<T> / 2>
Lanes<T> sums_of(Lanes<T> (&v)[lanes<T>]) {
  for (int i = 0; i < step; ++i) v[i] = add_halves<T, step>(v[i], v[i + step], std::make_index_sequence<lanes<T>>());
  if constexpr (step > 1)
    return sums_of<T, step / 2>(v);
  else
    return v[0];
}

// The products of x with as many rows as a vector has entries, row i at rows[i].
template <class T>
Lanes<T> products_of(const T* x, const std::array<const T*, lanes<T>>& rows, Index columns) {
  Lanes<T> sum[lanes<T>] = {};
  Index c = 0;
  for (; c + lanes<T> <= columns; c += lanes<T>) {
    const auto entries = load(x + c);
#pragma GCC unroll 16
    for (int i = 0; i < lanes<T>; ++i) sum[i] += entries * load(rows[static_cast<size_t>(i)] + c);
  }
  Lanes<T> total = sums_of<T>(sum);
  for (; c < columns; ++c)
    for (int i = 0; i < lanes<T>; ++i) total[i] += x[c] * rows[static_cast<size_t>(i)][c];
  return total;
}

// Adds to columns [c, c + Width vectors) of the sum, the weights of even and of odd places apart, so that no addition
// waits for the one before.
template <class T, int Width>
void add_columns(const T* weights, const InArg<T>& X, std::span<const Index> rows, Index c, T* sum) {
  Lanes<T> even[Width], odd[Width] = {};
  for (int v = 0; v < Width; ++v) even[v] = load(sum + c + v * lanes<T>);
  size_t t = 0;
  for (; t + 2 <= rows.size(); t += 2) {
    const T* first = X.data() + rows[t] * X.outerStride() + c;
    const T* second = X.data() + rows[t + 1] * X.outerStride() + c;
    for (int v = 0; v < Width; ++v) {
      even[v] += weights[t] * load(first + v * lanes<T>);
      odd[v] += weights[t + 1] * load(second + v * lanes<T>);
    }
  }
  if (t < rows.size())
    for (int v = 0; v < Width; ++v)
      even[v] += weights[t] * load(X.data() + rows[t] * X.outerStride() + c + v * lanes<T>);
  for (int v = 0; v < Width; ++v) store<T>(sum + c + v * lanes<T>, even[v] + odd[v]);
}

// Calls multiply(x, X, rows). Under Operands::bf16 it gets x and those rows of X rounded, in copies: time there is that
// of copying.
template <class T, class Multiply>
void with_operands(const Context& context, const InArg<T>& x, const InArg<T>& X, std::span<const Index> rows,
                   const Multiply& multiply) {
  if constexpr (std::is_same_v<T, float>)
    if (context.operands() == Operands::bf16) {
      Matrix<float> chosen(std::ssize(rows), X.cols());
      for (Index t = 0; t < chosen.rows(); ++t) chosen.row(t) = X.row(rows[static_cast<size_t>(t)]);
      const Matrix<float> rounded_x = rounded_to_bfloat16(x), rounded = rounded_to_bfloat16(chosen);
      std::vector<Index> all(rows.size());
      std::iota(all.begin(), all.end(), Index{0});
      return multiply(In<T>(rounded_x), In<T>(rounded), std::span<const Index>(all));
    }
  multiply(x, X, rows);
}

template <class T>
void products_with_rows(const In<T>& x, const In<T>& X, std::span<const Index> rows, Out<T> products) {
  std::array<const T*, lanes<T>> places;
  for (size_t t = 0; t < rows.size(); t += lanes<T>) {
    const size_t count = std::min<size_t>(lanes<T>, rows.size() - t);
    for (size_t i = 0; i < places.size(); ++i)  // the last row again, where there are no more
      places[i] = X.data() + rows[t + std::min(i, count - 1)] * X.outerStride();
    const auto of_rows = products_of<T>(x.data(), places, X.cols());
    if (count == places.size())
      store<T>(products.data() + t, of_rows);
    else
      for (size_t i = 0; i < count; ++i) products(0, static_cast<Index>(t + i)) = of_rows[i];
  }
}

template <class T>
void add_rows(const In<T>& weights, const In<T>& X, std::span<const Index> rows, Out<T> sum) {
  Index c = 0;
  for (; c + 4 * lanes<T> <= X.cols(); c += 4 * lanes<T>) add_columns<T, 4>(weights.data(), X, rows, c, sum.data());
  for (; c + lanes<T> <= X.cols(); c += lanes<T>) add_columns<T, 1>(weights.data(), X, rows, c, sum.data());
  for (; c < X.cols(); ++c)
    for (size_t t = 0; t < rows.size(); ++t) sum(0, c) += weights.data()[t] * X(rows[t], c);
}

}  // namespace

template <class T>
void multiply_gathered(Context& context, const InArg<T>& x, const InArg<T>& X, std::span<const Index> rows,
                       OutArg<T> products) {
  assert(x.rows() == 1 && x.cols() == X.cols() && products.rows() == 1 && products.cols() == std::ssize(rows));
  with_operands<T>(context, x, X, rows, [&](const In<T>& a, const In<T>& A, std::span<const Index> places) {
    products_with_rows<T>(a, A, places, products);
  });
  context.work.flops += 2 * static_cast<double>(std::ssize(rows) * X.cols());
  round_to<T>(context.rounding(), products);
}

template <class T>
void add_gathered(Context& context, const InArg<T>& weights, const InArg<T>& X, std::span<const Index> rows,
                  OutArg<T> sum) {
  assert(weights.rows() == 1 && weights.cols() == std::ssize(rows) && sum.rows() == 1 && sum.cols() == X.cols());
  with_operands<T>(context, weights, X, rows, [&](const In<T>& a, const In<T>& A, std::span<const Index> places) {
    add_rows<T>(a, A, places, sum);
  });
  context.work.flops += 2 * static_cast<double>(std::ssize(rows) * X.cols());
  round_to<T>(context.rounding(), sum);
}

#define ATTNBENCH_INSTANTIATE(T)                                                                                     \
  template void multiply_gathered<T>(Context&, const InArg<T>&, const InArg<T>&, std::span<const Index>, OutArg<T>); \
  template void add_gathered<T>(Context&, const InArg<T>&, const InArg<T>&, std::span<const Index>, OutArg<T>);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
#undef ATTNBENCH_INSTANTIATE

}  // namespace attnbench
