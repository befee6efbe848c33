// A tile of C, 4 rows by 4 vectors of 16 numbers, stays in registers while a panel of B streams by, as in
// products.cpp. Both operands are packed in pairs (2p, 2p + 1) of the k numbers that a sum runs over, because one
// instruction adds the products of 16 columns with one pair each.
#include "harness/linalg/bfloat16_products.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <vector>

#if defined(__AVX512BF16__) && defined(__AVX512F__)
#define ATTNBENCH_BF16
#include <immintrin.h>
#endif

namespace attnbench {

namespace {

constexpr Index width = 64;          // columns of a panel
constexpr Index most_pairs = 256;    // of a panel: 64 KB, a part of the second-level cache
constexpr Index lanes_of_step = 16;  // columns of one instruction

// By integers alone, so that compilers turn a loop of it into vectors.
std::uint16_t bits_of_bfloat16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;  // its bits may not carry over into the sign
  return static_cast<std::uint16_t>(is_nan ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

std::uint32_t pair_of(float even, float odd) {
  return bits_of_bfloat16(even) | static_cast<std::uint32_t>(bits_of_bfloat16(odd)) << 16;
}

// The step adds to each of 16 sums the products of two pairs, the odd ones first. Two functions pack 16 pairs: of
// numbers that lie side by side, and of two rows. Elsewhere than on these processors all do what the instructions'
// descriptions say, so that tests see the tiles and the packing.
#ifdef ATTNBENCH_BF16

using Sums = __m512;
using Pairs = __m512i;
Pairs load_pairs(const std::uint32_t* pairs) { return _mm512_loadu_si512(pairs); }
Pairs everywhere(std::uint32_t pair) { return _mm512_set1_epi32(static_cast<int>(pair)); }
Sums dot_pairs(const Sums& sums, const Pairs& a, const Pairs& b) {
  return _mm512_dpbf16_ps(sums, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}
void write_sums(const Sums& sums, bool add, float* to) {
  _mm512_storeu_ps(to, add ? _mm512_add_ps(_mm512_loadu_ps(to), sums) : sums);
}

// The first 16 numbers in the low half, the second 16 in the high half. Subnormal ones become 0.
Pairs rounded(const float* first, const float* second) {
  return reinterpret_cast<Pairs>(_mm512_cvtne2ps_pbh(_mm512_loadu_ps(second), _mm512_loadu_ps(first)));
}
void pack_neighbours(const float* numbers, std::uint32_t* pairs) {
  _mm512_storeu_si512(pairs, rounded(numbers, numbers + lanes_of_step));
}
void pack_rows(const float* even, const float* odd, std::uint32_t* pairs) {
  const Pairs halves_side_by_side = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23,
                                                     7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  _mm512_storeu_si512(pairs, _mm512_permutexvar_epi16(halves_side_by_side, rounded(even, odd)));
}

#else

struct Sums {
  float at[lanes_of_step];
};
struct Pairs {
  std::uint32_t at[lanes_of_step];
};
float even_of(std::uint32_t pair) { return std::bit_cast<float>(pair << 16); }
float odd_of(std::uint32_t pair) { return std::bit_cast<float>(pair & 0xffff0000); }
Pairs load_pairs(const std::uint32_t* pairs) {
  Pairs loaded;
  std::copy_n(pairs, lanes_of_step, loaded.at);
  return loaded;
}
Pairs everywhere(std::uint32_t pair) {
  Pairs same;
  std::fill_n(same.at, lanes_of_step, pair);
  return same;
}
Sums dot_pairs(const Sums& sums, const Pairs& a, const Pairs& b) {
  Sums next;
  for (Index i = 0; i < lanes_of_step; ++i)
    next.at[i] = sums.at[i] + odd_of(a.at[i]) * odd_of(b.at[i]) + even_of(a.at[i]) * even_of(b.at[i]);
  return next;
}
void write_sums(const Sums& sums, bool add, float* to) {
  for (Index i = 0; i < lanes_of_step; ++i) to[i] = add ? to[i] + sums.at[i] : sums.at[i];
}

void pack_neighbours(const float* numbers, std::uint32_t* pairs) {
  for (Index p = 0; p < lanes_of_step; ++p) pairs[p] = pair_of(numbers[2 * p], numbers[2 * p + 1]);
}
void pack_rows(const float* even, const float* odd, std::uint32_t* pairs) {
  for (Index i = 0; i < lanes_of_step; ++i) pairs[i] = pair_of(even[i], odd[i]);
}

#endif

// Where pair p of row i of packed numbers lies: at pairs[i * row + p * pair].
struct Packed {
  std::uint32_t* pairs;
  Index row, pair;
};

// `rows` rows of C = or += packed rows of A, from row `begin` on, times a panel of B: pairs x width. Loops over vectors
// are written out, because gcc 12 would keep sums in memory otherwise (integer_products.cpp).
template <int rows>
void tile(const Packed& A, Index begin, const std::uint32_t* B, Index pairs, float* C, Index C_stride, Index columns,
          bool add) {
  static_assert(width == 4 * lanes_of_step);
  Sums sum[rows][4] = {};
  for (Index p = 0; p < pairs; ++p) {
    const std::uint32_t* b = B + p * width;
    const Pairs b0 = load_pairs(b), b1 = load_pairs(b + 16), b2 = load_pairs(b + 32), b3 = load_pairs(b + 48);
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      const Pairs a = everywhere(A.pairs[(begin + r) * A.row + p * A.pair]);
      sum[r][0] = dot_pairs(sum[r][0], a, b0);
      sum[r][1] = dot_pairs(sum[r][1], a, b1);
      sum[r][2] = dot_pairs(sum[r][2], a, b2);
      sum[r][3] = dot_pairs(sum[r][3], a, b3);
    }
  }
  for (int r = 0; r < rows; ++r) {
    float* c = C + r * C_stride;
    if (columns == width) {
      for (int v = 0; v < 4; ++v) write_sums(sum[r][v], add, c + v * lanes_of_step);
    } else {
      float found[width];
      for (int v = 0; v < 4; ++v) write_sums(sum[r][v], false, found + v * lanes_of_step);
      for (Index j = 0; j < columns; ++j) c[j] = add ? c[j] + found[j] : found[j];
    }
  }
}

// Locates number l of row i: i steps of `row`, l steps of `number`. One of the steps is 1.
struct Numbers {
  const float* data;
  Index row, number;
};
Numbers rows_of(const Bfloat16Operand& A) {
  const Index stride = A.X.outerStride();
  return A.transposed ? Numbers{A.X.data(), 1, stride} : Numbers{A.X.data(), stride, 1};
}
Numbers columns_of(const Bfloat16Operand& B) { return rows_of({B.X, !B.transposed}); }

// Packs numbers [l, l + k) of rows [first, first + rows), 16 pairs at a time along the numbers that lie side by side.
// The last pair of an odd k has a 0.
void pack(const Numbers& from, Index first, Index rows, Index l, Index k, const Packed& to) {
  const float* data = from.data + first * from.row + l * from.number;
  const Index whole = k / 2;
  const auto pack_one = [&](Index i, Index p) {
    const float* even = data + i * from.row + 2 * p * from.number;
    to.pairs[i * to.row + p * to.pair] = pair_of(even[0], even[from.number]);
  };
  if (from.number == 1)
    for (Index i = 0; i < rows; ++i) {
      Index p = 0;
      for (; p + lanes_of_step <= whole; p += lanes_of_step) {
        const float* numbers = data + i * from.row + 2 * p;
        std::uint32_t* pairs = to.pairs + i * to.row + p * to.pair;
        if (to.pair == 1) {
          pack_neighbours(numbers, pairs);
        } else {
          std::uint32_t found[lanes_of_step];
          pack_neighbours(numbers, found);
          for (Index q = 0; q < lanes_of_step; ++q) pairs[q * to.pair] = found[q];
        }
      }
      for (; p < whole; ++p) pack_one(i, p);
    }
  else
    for (Index p = 0; p < whole; ++p) {
      const float *even = data + 2 * p * from.number, *odd = even + from.number;
      Index i = 0;
      for (; i + lanes_of_step <= rows; i += lanes_of_step) pack_rows(even + i, odd + i, to.pairs + p * to.pair + i);
      for (; i < rows; ++i) pack_one(i, p);
    }
  if (k % 2 == 1)
    for (Index i = 0; i < rows; ++i)
      to.pairs[i * to.row + whole * to.pair] = pair_of(data[i * from.row + (k - 1) * from.number], 0);
}

}  // namespace

#ifdef ATTNBENCH_BF16
const bool bfloat16_products_are_fast = true;
#else
const bool bfloat16_products_are_fast = false;
#endif

Matrix<float> rounded_to_bfloat16(const In<float>& X) {
  return X.unaryExpr(
      [](float x) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits_of_bfloat16(x)) << 16); });
}

void multiply_bfloat16(const Bfloat16Operand& A, const Bfloat16Operand& B, bool add, Out<float> C) {
  const Index k = A.transposed ? A.X.rows() : A.X.cols();
  assert(k == (B.transposed ? B.X.cols() : B.X.rows()));
  if (k == 0 && !add) C.setZero();
  // Columns of a panel that C does not have hold numbers of an earlier panel; their sums are left out.
  thread_local std::vector<std::uint32_t> panel(static_cast<size_t>(most_pairs * width)), packed_rows;
  for (Index l = 0; l < k; l += 2 * most_pairs) {
    const Index part = std::min(2 * most_pairs, k - l), pairs = (part + 1) / 2;
    packed_rows.resize(static_cast<size_t>(C.rows() * pairs));
    // As the numbers lie in A.
    const Packed rows_of_A =
        A.transposed ? Packed{packed_rows.data(), 1, C.rows()} : Packed{packed_rows.data(), pairs, 1};
    pack(rows_of(A), 0, C.rows(), l, part, rows_of_A);
    for (Index first = 0; first < C.cols(); first += width) {
      const Index columns = std::min(width, C.cols() - first);
      pack(columns_of(B), first, columns, l, part, {panel.data(), 1, width});
      const auto in_tiles = [&]<int rows>(Index begin) {
        for (; begin + rows <= C.rows(); begin += rows)
          tile<rows>(rows_of_A, begin, panel.data(), pairs, C.data() + begin * C.outerStride() + first, C.outerStride(),
                     columns, add || l > 0);
        return begin;
      };
      in_tiles.operator()<1>(in_tiles.operator()<2>(in_tiles.operator()<4>(0)));
    }
  }
}

}  // namespace attnbench
