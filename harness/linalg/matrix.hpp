// Dense matrices and the two views that every interface passes: In (for reading) and Out (for writing the caller's
// memory). Row-major; row i is token i. Views have an outer stride, so that one head of a [heads, n, d] tensor is a
// view.
#pragma once

#include <Eigen/Core>

namespace attnbench {

using Index = Eigen::Index;

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class T>
class Out : public Eigen::Map<Matrix<T>, 0, Eigen::OuterStride<>> {
 public:
  using Base = Eigen::Map<Matrix<T>, 0, Eigen::OuterStride<>>;
  Out(T* data, Index rows, Index columns, Index stride) : Base(data, rows, columns, Eigen::OuterStride<>(stride)) {}
  Out(Matrix<T>& m) : Out(m.data(), m.rows(), m.cols(), m.cols()) {}  // NOLINT(google-explicit-constructor)
  using Base::operator=;
  // The view is a handle: copying it refers to the same memory, assigning it copies the numbers.
  Out(const Out&) = default;
  Out& operator=(const Out& other) {
    Base::operator=(other);
    return *this;
  }
};

template <class T>
class In : public Eigen::Map<const Matrix<T>, 0, Eigen::OuterStride<>> {
 public:
  using Base = Eigen::Map<const Matrix<T>, 0, Eigen::OuterStride<>>;
  In(const T* data, Index rows, Index columns, Index stride)
      : Base(data, rows, columns, Eigen::OuterStride<>(stride)) {}
  In(const Matrix<T>& m) : In(m.data(), m.rows(), m.cols(), m.cols()) {}      // NOLINT
  In(const Out<T>& m) : In(m.data(), m.rows(), m.cols(), m.outerStride()) {}  // NOLINT
};

// Rows [first, first + count) of a view, as a view.
template <class T>
In<T> row_block(const In<T>& m, Index first, Index count) {
  return {m.data() + first * m.outerStride(), count, m.cols(), m.outerStride()};
}
template <class T>
Out<T> row_block(Out<T> m, Index first, Index count) {
  return {m.data() + first * m.outerStride(), count, m.cols(), m.outerStride()};
}
template <class T>
In<T> row_block(const Matrix<T>& m, Index first, Index count) {
  return row_block(In<T>(m), first, count);
}
template <class T>
Out<T> row_block(Matrix<T>& m, Index first, Index count) {
  return row_block(Out<T>(m), first, count);
}

// The top left rows x columns corner of a scratch matrix, as a view, so that ragged last blocks reuse the full block's
// memory.
template <class T>
Out<T> corner(Matrix<T>& m, Index row_count, Index column_count) {
  return {m.data(), row_count, column_count, m.cols()};
}

}  // namespace attnbench
