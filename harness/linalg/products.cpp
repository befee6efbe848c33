// Matrix products by one register-blocked kernel: a tile of C, 6 rows by 4 vectors, stays in registers while a panel of
// B streams by. The kernel packs only B, one panel at a time, and not if its rows are as wide as a panel. At the
// engines' block shapes (docs/engines.md) it is 1.1 to 1.3 times faster than Eigen's GEMM, because their operands are
// too narrow to repay the packing of A. Every entry of C is one sum in the order of k for any shape, so a shorter block
// has the same bits.
#include "harness/linalg/products.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>
#include <vector>

#include "harness/linalg/bfloat16_products.hpp"
#include "harness/linalg/rounding.hpp"
#include "harness/linalg/vector.hpp"

namespace attnbench {

namespace {

constexpr int vectors = vector_bytes == 64 ? 4 : 2;  // 24 of 32 registers hold C, or 12 of 16
constexpr Index depth = 512;  // of a panel: with 64 columns 128 KB, a part of the second-level cache

template <class T>
constexpr Index panel = vectors* lanes<T>;

// Memory that the products of this thread prefetch.
struct Upcoming {
  static constexpr Index line = 64;
  struct Range {
    const char *next = nullptr, *end = nullptr;
  };
  static constexpr int most = 8;
  Range ranges[most];
  int current = 0;

  // The next `count` lines, of which some may lie beyond the end of the range, or null if nothing is left to fetch.
  const char* take(Index count) {
    while (current < most && ranges[current].next >= ranges[current].end) ++current;
    if (current == most) return nullptr;
    const char* first = ranges[current].next;
    ranges[current].next += count * line;
    return first;
  }
};
thread_local Upcoming upcoming;

// Locates entry (i, k) of A: i steps of `row`, k steps of `column`.
template <class T>
struct Entries {
  const T* data;
  Index row, column;
};

// c = or += the first `count` entries of a vector. Apart from its caller, which would keep vectors in memory otherwise.
template <class T>
[[gnu::noinline]] void store_part(T* c, typename Vector<T>::type v, Index count, bool add) {
  T entries[lanes<T>];
  std::memcpy(entries, &v, sizeof v);
  for (Index j = 0; j < count; ++j) c[j] = add ? c[j] + entries[j] : entries[j];
}

// C (rows x columns) += or = A B for packed B: k x Width vectors, with rows B_stride apart. fetch: null, or k lines to
// bring into the cache. Loops over the entries of `sum` are unrolled whole, so that it stays in registers from the
// first step to the stores; a tile of 64 steps took 1.2 times as long with it on the stack.
template <class T, int Rows, int Width, bool Fetch = false>
void tile(Index k, Entries<T> A, const T* B, Index B_stride, T* C, Index C_stride, Index columns, bool add,
          const char* fetch = nullptr) {
  typename Vector<T>::type sum[Rows][Width];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int v = 0; v < Width; ++v) sum[i][v] = typename Vector<T>::type{};
#pragma GCC unroll 4
  for (Index l = 0; l < k; ++l) {
    if constexpr (Fetch) __builtin_prefetch(fetch + l * Upcoming::line, 0, 2);
    typename Vector<T>::type b[Width];
    for (int v = 0; v < Width; ++v) b[v] = load(B + l * B_stride + v * lanes<T>);
    for (int i = 0; i < Rows; ++i) {
      const T a = A.data[i * A.row + l * A.column];
      for (int v = 0; v < Width; ++v) sum[i][v] += a * b[v];
    }
  }
  const bool whole = columns == Width * lanes<T>;
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
    T* c = C + i * C_stride;
#pragma GCC unroll 8
    for (int v = 0; v < Width; ++v)
      if (whole)
        store<T>(c + v * lanes<T>, add ? load(c + v * lanes<T>) + sum[i][v] : sum[i][v]);
      else
        store_part<T>(c + v * lanes<T>, sum[i][v], std::min(lanes<T>, columns - v * lanes<T>), add);
  }
}

template <class T, int Width>
void rows_of_tiles(Index rows, Index k, Entries<T> A, const T* B, Index B_stride, Out<T>& C, Index first, Index columns,
                   bool add) {
  Index i = 0;
  const auto at = [&](Index row) { return Entries<T>{A.data + row * A.row, A.row, A.column}; };
  const auto c = [&](Index row) { return C.data() + row * C.outerStride() + first; };
  for (; i + strip_rows <= rows; i += strip_rows) {
    if constexpr (Width == vectors)
      if (const char* lines = upcoming.take(k)) {
        tile<T, strip_rows, Width, true>(k, at(i), B, B_stride, c(i), C.outerStride(), columns, add, lines);
        continue;
      }
    tile<T, strip_rows, Width>(k, at(i), B, B_stride, c(i), C.outerStride(), columns, add);
  }
  if (rows - i >= 4) {
    tile<T, 4, Width>(k, at(i), B, B_stride, c(i), C.outerStride(), columns, add);
    i += 4;
  }
  if (rows - i >= 2) {
    tile<T, 2, Width>(k, at(i), B, B_stride, c(i), C.outerStride(), columns, add);
    i += 2;
  }
  if (rows > i) tile<T, 1, Width>(k, at(i), B, B_stride, c(i), C.outerStride(), columns, add);
}

// The same, for `columns` columns of C from `first` on, a panel at most.
template <class T>
void panel_of_tiles(Index rows, Index k, Entries<T> A, const T* B, Index B_stride, Out<T>& C, Index first,
                    Index columns, bool add) {
  switch ((columns + lanes<T> - 1) / lanes<T>) {
    case 1:
      return rows_of_tiles<T, 1>(rows, k, A, B, B_stride, C, first, columns, add);
    case 2:
      return rows_of_tiles<T, 2>(rows, k, A, B, B_stride, C, first, columns, add);
    case 3:
      return rows_of_tiles<T, 3>(rows, k, A, B, B_stride, C, first, columns, add);
    default:
      return rows_of_tiles<T, vectors>(rows, k, A, B, B_stride, C, first, columns, add);
  }
}

// Transposes a square of vectors in place, in log2(lanes) rounds. Each round swaps the off-diagonal blocks of `step`
// entries inside blocks twice as large.
template <class T, int step, size_t... J>
void swap_blocks(typename Vector<T>::type& a, typename Vector<T>::type& b, std::index_sequence<J...>) {
  constexpr size_t all = sizeof...(J);
  const auto low = __builtin_shufflevector(a, b, (J & step ? all + J - step : J)...);
  b = __builtin_shufflevector(a, b, (J & step ? all + J : J + step)...);
  a = low;
}
template <class T, int step = lanes<T> / 2>
void transpose(typename Vector<T>::type (&v)[lanes<T>]) {
  for (int i = 0; i < lanes<T>; ++i)
    if ((i & step) == 0) swap_blocks<T, step>(v[i], v[i + step], std::make_index_sequence<lanes<T>>());
  if constexpr (step > 1) transpose<T, step / 2>(v);
}

// Packs columns [first, first + columns) of rows [l, l + k) of B side by side into vectors, with 0 beyond the last
// column. B is given by rows (B.column = 1) or by columns (B.row = 1).
template <class T>
void pack(Entries<T> B, Index l, Index k, Index first, Index columns, Index width, T* packed) {
  const T* from = B.data + l * B.row + first * B.column;
  constexpr Index L = lanes<T>;
  if (B.column == 1 && columns == width && width % L == 0) {
    // Vector by vector: a call of memmove for each row takes longer than a product.
    for (Index i = 0; i < k; ++i)
      for (Index j = 0; j < width; j += L) {
        const auto v = load(from + i * B.row + j);
        std::memcpy(packed + i * width + j, &v, sizeof v);
      }
    return;
  }
  if (columns < width) std::fill(packed, packed + k * width, T(0));
  if (B.column == 1) {
    for (Index i = 0; i < k; ++i) std::copy_n(from + i * B.row, columns, packed + i * width);
    return;
  }
  const Index square_columns = columns / L * L, square_rows = k / L * L;
  for (Index j = 0; j < square_columns; j += L)
    for (Index i = 0; i < square_rows; i += L) {
      typename Vector<T>::type v[L];
      for (Index c = 0; c < L; ++c) v[c] = load(from + i + (j + c) * B.column);
      transpose<T>(v);
      for (Index r = 0; r < L; ++r) std::memcpy(packed + (i + r) * width + j, &v[r], sizeof v[r]);
    }
  for (Index j = 0; j < columns; ++j)
    for (Index i = j < square_columns ? square_rows : 0; i < k; ++i) packed[i * width + j] = from[i + j * B.column];
}

// C = A B or C += A B, for A and B given as Entries; one of B.row and B.column is 1.
template <class T>
void product(Index k, Entries<T> A, Entries<T> B, Out<T> C, bool add) {
  if (k == 0 && !add) C.setZero();
  thread_local std::vector<T, Eigen::aligned_allocator<T>> memory(static_cast<size_t>(depth * panel<T>));
  for (Index l = 0; l < k; l += depth) {
    const Index part = std::min(depth, k - l);
    const Entries<T> A_part{A.data + l * A.column, A.row, A.column};
    for (Index first = 0; first < C.cols(); first += panel<T>) {
      const Index columns = std::min(panel<T>, C.cols() - first);
      const Index width = in_whole_vectors<T>(columns);
      const T* source = B.data + l * B.row + first * B.column;
      Index stride = B.row;
      // A copy does not pay off for few rows, nor for columns of a matrix that is one panel wide.
      if (B.column != 1 || columns < width || (stride > std::max(width, panel<T>) && C.rows() > 2 * strip_rows)) {
        pack(B, l, part, first, columns, width, memory.data());
        source = memory.data();
        stride = width;
      }
      panel_of_tiles<T>(C.rows(), part, A_part, source, stride, C, first, columns, add || l > 0);
    }
  }
}

// One side of a product, as the caller gave it.
template <class T>
struct Side {
  const InArg<T>& X;
  bool transposed;
};

// Calls plain(A, B), which writes C = A B, or C += A B if `add`. Under Operands::bf16 both operands are rounded first.
// Products with one row or column then take the plain way on every processor, as those of float do.
template <class T, class Plain>
void with_operands(const Context& context, Side<T> A, Side<T> B, bool add, const Out<T>& C, const Plain& plain) {
  if constexpr (std::is_same_v<T, float>)
    if (context.operands() == Operands::bf16) {
      if (bfloat16_products_are_fast && C.rows() > 1 && C.cols() > 1)
        return multiply_bfloat16({A.X, A.transposed}, {B.X, B.transposed}, add, C);
      const Matrix<float> rounded_A = rounded_to_bfloat16(A.X), rounded_B = rounded_to_bfloat16(B.X);
      return plain(In<T>(rounded_A), In<T>(rounded_B));
    }
  plain(A.X, B.X);
}

template <class T>
void finish(Context& context, Index rows, Index k, Index columns, Out<T> C) {
  context.work.flops += 2.0 * static_cast<double>(rows * k * columns);
  round_to<T>(context.rounding(), C);
}

}  // namespace

template <class T>
void fetch_during_products(const std::vector<In<T>>& views) {
  upcoming = {};
  int place = 0;
  for (const In<T>& view : views) {
    // Skip views with gaps: the lines in between are not needed.
    if (view.outerStride() != view.cols() || place == Upcoming::most) continue;
    const auto* begin = reinterpret_cast<const char*>(view.data());
    upcoming.ranges[place++] = {begin, begin + static_cast<size_t>(view.size()) * sizeof(T)};
  }
}

template <class T>
Matrix<T> transposed(const InArg<T>& X, Index width) {
  Matrix<T> Xt(X.cols(), width);
  pack<T>({X.data(), 1, X.outerStride()}, 0, X.cols(), 0, X.rows(), width, Xt.data());
  return Xt;
}

template <class T>
void multiply(Context& context, const InArg<T>& A, const InArg<T>& B, OutArg<T> C) {
  assert(A.cols() == B.rows() && C.rows() == A.rows() && C.cols() == B.cols());
  with_operands<T>(context, {A, false}, {B, false}, false, C, [&](const In<T>& a, const In<T>& b) {
    if (C.rows() == 1 || C.cols() == 1)
      C.noalias() = a * b;
    else
      product<T>(a.cols(), {a.data(), a.outerStride(), 1}, {b.data(), b.outerStride(), 1}, C, false);
  });
  finish<T>(context, A.rows(), A.cols(), B.cols(), C);
}

template <class T>
void multiply_needed(Context& context, const InArg<T>& A, const InArg<T>& B, std::span<const ColumnRange> needed,
                     OutArg<T> C) {
  assert(A.cols() == B.rows() && C.rows() == A.rows() && C.cols() == B.cols());
  assert(std::ssize(needed) == (C.rows() + strip_rows - 1) / strip_rows);
  Index computed = 0;
  for (size_t s = 0; s < needed.size();) {
    const auto [begin, end] = needed[s];
    const Index row = static_cast<Index>(s) * strip_rows;
    for (++s; s < needed.size() && needed[s] == needed[s - 1];) ++s;
    const Index rows = std::min(static_cast<Index>(s) * strip_rows, C.rows()) - row;
    const In<T> left = row_block(In<T>(A), row, rows), right(B.data() + begin, B.rows(), end - begin, B.outerStride());
    Out<T> strips(C.data() + row * C.outerStride() + begin, rows, end - begin, C.outerStride());
    with_operands<T>(context, {left, false}, {right, false}, false, strips, [&](const In<T>& a, const In<T>& b) {
      for (Index first = 0; first < strips.cols(); first += panel<T>)
        panel_of_tiles<T>(rows, a.cols(), {a.data(), a.outerStride(), 1}, b.data() + first, b.outerStride(), strips,
                          first, std::min(panel<T>, strips.cols() - first), false);
    });
    round_to<T>(context.rounding(), strips);
    computed += strips.size();
  }
  context.work.flops += 2.0 * static_cast<double>(computed * A.cols());
}

template <class T>
void multiply_add(Context& context, const InArg<T>& A, const InArg<T>& B, OutArg<T> C) {
  assert(A.cols() == B.rows() && C.rows() == A.rows() && C.cols() == B.cols());
  with_operands<T>(context, {A, false}, {B, false}, true, C, [&](const In<T>& a, const In<T>& b) {
    if (C.rows() == 1 || C.cols() == 1)
      C.noalias() += a * b;
    else
      product<T>(a.cols(), {a.data(), a.outerStride(), 1}, {b.data(), b.outerStride(), 1}, C, true);
  });
  finish<T>(context, A.rows(), A.cols(), B.cols(), C);
}

template <class T>
void multiply_transposed(Context& context, const InArg<T>& A, const InArg<T>& B, OutArg<T> C) {
  assert(A.cols() == B.cols() && C.rows() == A.rows() && C.cols() == B.rows());
  with_operands<T>(context, {A, false}, {B, true}, false, C, [&](const In<T>& a, const In<T>& b) {
    if (C.rows() == 1 || C.cols() == 1)
      C.noalias() = a * b.transpose();
    else
      product<T>(a.cols(), {a.data(), a.outerStride(), 1}, {b.data(), 1, b.outerStride()}, C, false);
  });
  finish<T>(context, A.rows(), A.cols(), B.rows(), C);
}

template <class T>
void transposed_multiply(Context& context, const InArg<T>& A, const InArg<T>& B, OutArg<T> C) {
  assert(A.rows() == B.rows() && C.rows() == A.cols() && C.cols() == B.cols());
  with_operands<T>(context, {A, true}, {B, false}, false, C, [&](const In<T>& a, const In<T>& b) {
    if (C.rows() == 1 || C.cols() == 1)
      C.noalias() = a.transpose() * b;
    else
      product<T>(a.rows(), {a.data(), 1, a.outerStride()}, {b.data(), b.outerStride(), 1}, C, false);
  });
  finish<T>(context, A.cols(), A.rows(), B.cols(), C);
}

template <class T>
void transposed_multiply_add(Context& context, const InArg<T>& A, const InArg<T>& B, OutArg<T> C) {
  assert(A.rows() == B.rows() && C.rows() == A.cols() && C.cols() == B.cols());
  with_operands<T>(context, {A, true}, {B, false}, true, C, [&](const In<T>& a, const In<T>& b) {
    if (C.rows() == 1 || C.cols() == 1)
      C.noalias() += a.transpose() * b;
    else
      product<T>(a.rows(), {a.data(), 1, a.outerStride()}, {b.data(), b.outerStride(), 1}, C, true);
  });
  finish<T>(context, A.cols(), A.rows(), B.cols(), C);
}

template void fetch_during_products<float>(const std::vector<In<float>>&);
template void fetch_during_products<double>(const std::vector<In<double>>&);
#define ATTNBENCH_INSTANTIATE(T)                                                                             \
  template Matrix<T> transposed<T>(const InArg<T>&, Index);                                                  \
  template void multiply<T>(Context&, const InArg<T>&, const InArg<T>&, OutArg<T>);                          \
  template void multiply_needed<T>(Context&, const InArg<T>&, const InArg<T>&, std::span<const ColumnRange>, \
                                   OutArg<T>);                                                               \
  template void multiply_add<T>(Context&, const InArg<T>&, const InArg<T>&, OutArg<T>);                      \
  template void multiply_transposed<T>(Context&, const InArg<T>&, const InArg<T>&, OutArg<T>);               \
  template void transposed_multiply<T>(Context&, const InArg<T>&, const InArg<T>&, OutArg<T>);               \
  template void transposed_multiply_add<T>(Context&, const InArg<T>&, const InArg<T>&, OutArg<T>);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
#undef ATTNBENCH_INSTANTIATE

}  // namespace attnbench
