#include "harness/linalg/exponentials.hpp"

#include "harness/linalg/exp.hpp"
#include "harness/linalg/rounding.hpp"

namespace attnbench {

namespace {
template <class T>
auto row(std::span<const T> v) {
  return Eigen::Map<const Eigen::Array<T, 1, Eigen::Dynamic>>(v.data(), static_cast<Index>(v.size()));
}
template <class T>
auto row(std::span<T> v) {
  return Eigen::Map<Eigen::Array<T, 1, Eigen::Dynamic>>(v.data(), static_cast<Index>(v.size()));
}
}  // namespace

template <class T>
void raise_to_column_maxima(const InArg<T>& X, std::span<const T> row_offset, std::span<T> maximum) {
  auto m = row(maximum);
  for (Index i = 0; i < X.rows(); ++i) m = m.max(X.row(i).array() + row_offset[static_cast<size_t>(i)]);
}

template <class T>
void row_maxima(const InArg<T>& X, std::span<const T> column_offset, std::span<T> maximum) {
  const auto offset = row(column_offset);
  for (Index i = 0; i < X.rows(); ++i) maximum[static_cast<size_t>(i)] = (X.row(i).array() + offset).maxCoeff();
}

template <class T>
void exponentiate(Context& context, OutArg<T> X, std::span<const T> row_offset, std::span<const T> column_offset,
                  std::span<T> column_sum) {
  const auto offset = row(column_offset);
  for (Index i = 0; i < X.rows(); ++i) {
    auto x = X.row(i).array();
    x = exponential(x + row_offset[static_cast<size_t>(i)] + offset);
    if (context.rounding() != Rounding::none)
      round_to<T>(context.rounding(), Out<T>(X.data() + i * X.outerStride(), 1, X.cols(), X.cols()));
    if (!column_sum.empty()) row(column_sum) += x;
  }
  context.work.exps += static_cast<double>(X.size());
}

#define ATTNBENCH_INSTANTIATE(T)                                                              \
  template void raise_to_column_maxima<T>(const InArg<T>&, std::span<const T>, std::span<T>); \
  template void row_maxima<T>(const InArg<T>&, std::span<const T>, std::span<T>);             \
  template void exponentiate<T>(Context&, OutArg<T>, std::span<const T>, std::span<const T>, std::span<T>);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
#undef ATTNBENCH_INSTANTIATE

}  // namespace attnbench
