#include "harness/linalg/rows.hpp"

#include "harness/linalg/exp.hpp"
#include "harness/linalg/rounding.hpp"

namespace attnbench {

namespace {
template <class T>
auto column(std::span<const T> v) {
  return Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>(v.data(), static_cast<Index>(v.size()));
}
template <class T>
auto row(std::span<const T> v) {
  return Eigen::Map<const Eigen::Array<T, 1, Eigen::Dynamic>>(v.data(), static_cast<Index>(v.size()));
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
  for (Index i = 0; i < X.rows(); ++i) X.row(i).array() = exponential(X.row(i).array() - shift[static_cast<size_t>(i)]);
  round_to<T>(context.rounding(), X);
  context.work.exps += static_cast<double>(X.size());
}

template <class T>
void exponentiate_columns(Context& context, OutArg<T> X, std::span<const T> shift) {
  for (Index i = 0; i < X.rows(); ++i) X.row(i).array() = exponential(X.row(i).array() - row(shift));
  round_to<T>(context.rounding(), X);
  context.work.exps += static_cast<double>(X.size());
}

template <class T>
void row_maxima(const InArg<T>& X, std::span<T> maximum) {
  for (Index i = 0; i < X.rows(); ++i) maximum[static_cast<size_t>(i)] = X.row(i).maxCoeff();
}

template <class T>
void raise_to_column_maxima(const InArg<T>& X, std::span<T> maximum) {
  auto m = row(maximum);
  for (Index i = 0; i < X.rows(); ++i) m = m.max(X.row(i).array());
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
  const Out<T> held(&X(i, begin), 1, end - begin, X.outerStride());
  auto seen = X.row(i).segment(begin, end - begin).array();
  seen = exponential(seen - seen.maxCoeff());
  round_to<T>(context.rounding(), held);
  seen /= seen.sum();
  round_to<T>(context.rounding(), held);
  context.work.exps += static_cast<double>(end - begin);
}

template <class T>
void scale_rows(OutArg<T> X, std::span<const T> factor) {
  X.array().colwise() *= column(factor);
}

template <class T>
void half_squared_norms(const InArg<T>& X, std::span<T> half) {
  column(half) = X.rowwise().squaredNorm().array() * T(0.5);
}

#define ATTNBENCH_INSTANTIATE(T)                                                  \
  template void exponentiate_rows<T>(Context&, OutArg<T>, std::span<const T>);    \
  template void exponentiate_columns<T>(Context&, OutArg<T>, std::span<const T>); \
  template void row_maxima<T>(const InArg<T>&, std::span<T>);                     \
  template void raise_to_column_maxima<T>(const InArg<T>&, std::span<T>);         \
  template void row_sums<T>(const InArg<T>&, std::span<T>);                       \
  template void add_column_sums<T>(const InArg<T>&, std::span<T>);                \
  template void softmax_within<T>(Context&, OutArg<T>, Index, Index, Index);      \
  template void scale_rows<T>(OutArg<T>, std::span<const T>);                     \
  template void half_squared_norms<T>(const InArg<T>&, std::span<T>);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
#undef ATTNBENCH_INSTANTIATE

}  // namespace attnbench
