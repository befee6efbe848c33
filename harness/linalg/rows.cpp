#include "harness/linalg/rows.hpp"

#include "harness/linalg/exponentials.hpp"
#include "harness/linalg/rounding.hpp"

namespace attnbench {

namespace {
template <class T>
auto column(std::span<const T> v) {
  return Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>(v.data(), static_cast<Index>(v.size()));
}
template <class T>
auto column(std::span<T> v) {
  return Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>(v.data(), static_cast<Index>(v.size()));
}
template <class T>
auto row(std::span<T> v) {
  return Eigen::Map<Eigen::Array<T, 1, Eigen::Dynamic>>(v.data(), static_cast<Index>(v.size()));
}
}  // namespace

template <class T>
void exponentiate_rows(Context& context, OutArg<T> X, std::span<const T> shift) {
  for (Index i = 0; i < X.rows(); ++i) {
    const T offset = -shift[static_cast<size_t>(i)];
    exponentiate<T>(context, Out<T>(X.data() + i * X.outerStride(), 1, X.cols(), X.cols()), std::span(&offset, 1), {});
  }
}

template <class T>
void row_maxima(const InArg<T>& X, std::span<T> maximum) {
  for (Index i = 0; i < X.rows(); ++i) maximum[static_cast<size_t>(i)] = X.row(i).maxCoeff();
}

template <class T>
void row_sums(const InArg<T>& X, std::span<T> sum) {
  for (Index i = 0; i < X.rows(); ++i) sum[static_cast<size_t>(i)] = X.row(i).sum();
}

template <class T>
void add_column_sums(const InArg<T>& X, std::span<T> sum) {
  auto s = row(sum);
  for (Index i = 0; i < X.rows(); ++i) s += X.row(i).array();
}

template <class T>
void softmax_within(Context& context, OutArg<T> X, Index i, Index begin, Index end) {
  X.row(i).head(begin).setZero();
  X.row(i).tail(X.cols() - end).setZero();
  if (begin == end) return;
  const Out<T> seen(&X(i, begin), 1, end - begin, X.outerStride());
  const T largest = seen.maxCoeff();
  exponentiate_rows<T>(context, seen, std::span(&largest, 1));
  X.row(i).segment(begin, end - begin) /= seen.sum();
  round_to<T>(context.rounding(), seen);
}

template <class T>
void scale_rows(OutArg<T> X, std::span<const T> factor) {
  X.array().colwise() *= column(factor);
}

template <class T>
void half_squared_norms(const InArg<T>& X, std::span<T> half) {
  column(half) = X.rowwise().squaredNorm().array() * T(0.5);
}

#define ATTNBENCH_INSTANTIATE(T)                                               \
  template void exponentiate_rows<T>(Context&, OutArg<T>, std::span<const T>); \
  template void row_maxima<T>(const InArg<T>&, std::span<T>);                  \
  template void row_sums<T>(const InArg<T>&, std::span<T>);                    \
  template void add_column_sums<T>(const InArg<T>&, std::span<T>);             \
  template void softmax_within<T>(Context&, OutArg<T>, Index, Index, Index);   \
  template void scale_rows<T>(OutArg<T>, std::span<const T>);                  \
  template void half_squared_norms<T>(const InArg<T>&, std::span<T>);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
#undef ATTNBENCH_INSTANTIATE

}  // namespace attnbench
