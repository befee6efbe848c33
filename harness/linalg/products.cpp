#include "harness/linalg/products.hpp"

#include <cassert>

#include "harness/linalg/rounding.hpp"

namespace attnbench {

template <class T>
void multiply(Context& context, const InArg<T>& A, const InArg<T>& B, OutArg<T> C) {
  assert(A.cols() == B.rows() && C.rows() == A.rows() && C.cols() == B.cols());
  C.noalias() = A * B;
  round_to<T>(context.rounding(), C);
  context.work.flops += 2.0 * static_cast<double>(A.rows() * A.cols() * B.cols());
}

template <class T>
void multiply_add(Context& context, const InArg<T>& A, const InArg<T>& B, OutArg<T> C) {
  assert(A.cols() == B.rows() && C.rows() == A.rows() && C.cols() == B.cols());
  C.noalias() += A * B;
  round_to<T>(context.rounding(), C);
  context.work.flops += 2.0 * static_cast<double>(A.rows() * A.cols() * B.cols());
}

template <class T>
void multiply_transposed(Context& context, const InArg<T>& A, const InArg<T>& B, OutArg<T> C) {
  assert(A.cols() == B.cols() && C.rows() == A.rows() && C.cols() == B.rows());
  C.noalias() = A * B.transpose();
  round_to<T>(context.rounding(), C);
  context.work.flops += 2.0 * static_cast<double>(A.rows() * A.cols() * B.rows());
}

template <class T>
void transposed_multiply_add(Context& context, const InArg<T>& A, const InArg<T>& B, OutArg<T> C) {
  assert(A.rows() == B.rows() && C.rows() == A.cols() && C.cols() == B.cols());
  C.noalias() += A.transpose() * B;
  round_to<T>(context.rounding(), C);
  context.work.flops += 2.0 * static_cast<double>(A.rows() * A.cols() * B.cols());
}

#define ATTNBENCH_INSTANTIATE(T)                                                               \
  template void multiply<T>(Context&, const InArg<T>&, const InArg<T>&, OutArg<T>);            \
  template void multiply_add<T>(Context&, const InArg<T>&, const InArg<T>&, OutArg<T>);        \
  template void multiply_transposed<T>(Context&, const InArg<T>&, const InArg<T>&, OutArg<T>); \
  template void transposed_multiply_add<T>(Context&, const InArg<T>&, const InArg<T>&, OutArg<T>);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
#undef ATTNBENCH_INSTANTIATE

}  // namespace attnbench
