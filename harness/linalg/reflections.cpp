#include "harness/linalg/reflections.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <vector>

#include "harness/linalg/vector.hpp"

namespace attnbench {

namespace {

constexpr Index together = 8;  // reflections that pass over the matrix at once
// Vectors of a row beside each other: the sums over rows, eight of each, stay in registers.
constexpr Index widest = vector_bytes == 64 ? 3 : 1;

// I - V T V^T, the product of eight reflections I - tau v v^T, v a column of V. T^-1 is the upper triangle of V^T V,
// with 1 / tau on its diagonal.
struct Group {
  explicit Group(Index d) : V(static_cast<size_t>(d * together)) {}

  std::vector<double> V;  // one row after the other
  Index rows = 0;
  double products[together][together];  // V^T V
  double tau[together];

  // Reflections that take e1 of the last d - first coordinates, of the last d - first - 1 and so on to -s x / |x|, s
  // the sign of x_1. Those of fewer than two coordinates are left out.
  void set(std::span<const double> directions, Index d, Index first) {
    rows = d - first;
    std::fill_n(V.begin(), rows * together, 0.0);
    for (Index j = 0; j < std::min(together, rows - 1); ++j) {
      const Index size = rows - j;
      const Eigen::Map<const Eigen::VectorXd> x(directions.data() + size * (size - 1) / 2, size);
      double* v = V.data() + j * (together + 1);
      for (Index i = 0; i < size; ++i) v[i * together] = x[i];
      *v += std::copysign(x.norm(), x[0]);
    }
    typedef double Row __attribute__((vector_size(together * sizeof(double))));
    Row sums[together] = {};
    for (Index i = 0; i < rows; ++i) {
      Row row;
      std::memcpy(&row, V.data() + i * together, sizeof row);
      for (Index j = 0; j < together; ++j) sums[j] += row[j] * row;
    }
    std::memcpy(products, sums, sizeof products);
    for (Index j = 0; j < together; ++j) tau[j] = products[j][j] > 0 ? 2 / products[j][j] : 0;
  }

  // C -= V T V^T C for `count` vectors of neighbouring columns.
  template <Index count>
  void reflect(double* C, Index stride) const {
    using Lanes = Vector<double>::type;
    Lanes X[together][count] = {};
    for (Index i = 0; i < rows; ++i) {
      const double* v = V.data() + i * together;
      Lanes row[count];
      for (Index c = 0; c < count; ++c) row[c] = load(C + i * stride + c * lanes<double>);
      for (Index j = 0; j < together; ++j)
        for (Index c = 0; c < count; ++c) X[j][c] += v[j] * row[c];
    }
    for (Index j = together - 1; j >= 0; --j)
      for (Index c = 0; c < count; ++c) {
        for (Index k = j + 1; k < together; ++k) X[j][c] -= products[j][k] * X[k][c];
        X[j][c] *= tau[j];
      }
    for (Index i = 0; i < rows; ++i) {
      const double* v = V.data() + i * together;
      double* place = C + i * stride;
      Lanes row[count];
#pragma GCC unroll 4
      for (Index c = 0; c < count; ++c) row[c] = load(place + c * lanes<double>);
#pragma GCC unroll 8
      for (Index j = 0; j < together; ++j)
#pragma GCC unroll 4
        for (Index c = 0; c < count; ++c) row[c] -= v[j] * X[j][c];
#pragma GCC unroll 4
      for (Index c = 0; c < count; ++c) store<double>(place + c * lanes<double>, row[c]);
    }
  }
  template <Index count = widest>
  void reflect_columns(double* C, Index columns, Index stride) const {
    constexpr Index step = count * lanes<double>;
    for (; columns >= step; columns -= step, C += step) reflect<count>(C, stride);
    if constexpr (count > 1) reflect_columns<count - 1>(C, columns, stride);
  }
};

}  // namespace

Matrix<double> product_of_reflections(std::span<const double> directions, Index d) {
  assert(std::ssize(directions) == d * (d + 1) / 2);
  const Index width = (d + together - 1) / together * together;
  // Rows a multiple of 512 bytes apart would share a few sets of the cache.
  const Index stride = width % 64 == 0 ? width + together : width;
  Matrix<double> Q = Matrix<double>::Zero(d, stride);
  for (Index size = 1; size <= d; ++size) {
    const double first = directions[static_cast<size_t>(size * (size - 1) / 2)];
    Q(d - size, d - size) = (first < 0) == (size > 1) ? 1 : -1;
  }
  Group group(d);
  for (Index first = (d - 1) / together * together; first >= 0; first -= together) {
    group.set(directions, d, first);
    group.reflect_columns(Q.data() + first * (stride + 1), width - first, stride);
  }
  if (stride == d) return Q;
  return Q.leftCols(d);
}

}  // namespace attnbench
