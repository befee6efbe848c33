#include "harness/linalg/integer_products.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#if defined(__AVX512VNNI__) && defined(__AVX512F__)
#define ATTNBENCH_VNNI
#include <immintrin.h>
#endif

namespace attnbench {

namespace {

constexpr Index width = CodePanel::width;
constexpr int raised = 128;

// The instruction multiplies unsigned by signed numbers. The codes of a panel are therefore raised by 128, and 128
// times the sum of a key's codes is taken off again. Writes `rows` rows of products.
#ifdef ATTNBENCH_VNNI

// Four rows at most: with more, gcc 12 keeps sums in memory. Loops over vectors are written out for the same reason.
template <int rows>
void tile(const Codes& K, Index first, const std::uint8_t* panel, const float* scales, float* products, Index stride) {
  static_assert(width == 4 * 16);
  const std::int8_t* keys = K.row(first);
  const Index key_stride = K.stride();
  __m512i sum[rows][4] = {};
  for (Index l = 0; l < key_stride; l += 4) {
    const std::uint8_t* codes = panel + l * width;
    const __m512i q0 = _mm512_loadu_si512(codes), q1 = _mm512_loadu_si512(codes + 64),
                  q2 = _mm512_loadu_si512(codes + 128), q3 = _mm512_loadu_si512(codes + 192);
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      int four = 0;
      std::memcpy(&four, keys + r * key_stride + l, sizeof four);
      const __m512i k = _mm512_set1_epi32(four);
      sum[r][0] = _mm512_dpbusd_epi32(sum[r][0], q0, k);
      sum[r][1] = _mm512_dpbusd_epi32(sum[r][1], q1, k);
      sum[r][2] = _mm512_dpbusd_epi32(sum[r][2], q2, k);
      sum[r][3] = _mm512_dpbusd_epi32(sum[r][3], q3, k);
    }
  }
  for (int r = 0; r < rows; ++r) {
    const __m512i above = _mm512_set1_epi32(raised * K.sum(first + r));
    const __m512 of_key = _mm512_set1_ps(K.scale(first + r));
    for (int v = 0; v < 4; ++v) {
      const __m512 found = _mm512_cvtepi32_ps(_mm512_sub_epi32(sum[r][v], above));
      const __m512 scaled = _mm512_mul_ps(found, _mm512_loadu_ps(scales + 16 * v));
      _mm512_storeu_ps(products + r * stride + 16 * v, _mm512_mul_ps(scaled, of_key));
    }
  }
}

#else

template <int rows>
void tile(const Codes& K, Index first, const std::uint8_t* panel, const float* scales, float* products, Index stride) {
  for (int r = 0; r < rows; ++r)
    for (Index column = 0; column < width; ++column) {
      std::int32_t sum = -raised * K.sum(first + r);
      for (Index l = 0; l < K.stride(); ++l) sum += K.row(first + r)[l] * panel[(l / 4 * width + column) * 4 + l % 4];
      products[r * stride + column] = static_cast<float>(sum) * scales[column] * K.scale(first + r);
    }
}

#endif

}  // namespace

#ifdef ATTNBENCH_VNNI
const bool integer_products_are_fast = true;
#else
const bool integer_products_are_fast = false;
#endif

Codes::Codes(Index rows, Index cols)
    : cols_(cols),
      stride_((cols + 3) / 4 * 4),
      numbers_(static_cast<size_t>(rows * stride_), 0),
      scales_(static_cast<size_t>(rows), 0),
      sums_(static_cast<size_t>(rows), 0) {}

void Codes::set(Index row, std::span<const double> integers, double scale) {
  std::transform(integers.begin(), integers.end(), numbers_.begin() + row * stride_,
                 [](double x) { return static_cast<std::int8_t>(x); });
  const auto i = static_cast<size_t>(row);
  scales_[i] = static_cast<float>(scale);
  sums_[i] = static_cast<std::int32_t>(std::accumulate(integers.begin(), integers.end(), 0.0));
}

CodePanel::CodePanel(const Codes& codes, Index first, Index count)
    : cols_(codes.cols()),
      numbers_(static_cast<size_t>(codes.stride() * width), raised),
      scales_(static_cast<size_t>(width), 0) {
  for (Index i = 0; i < count; ++i) {
    const std::int8_t* row = codes.row(first + i);
    for (Index l = 0; l < codes.stride(); ++l)
      numbers_[static_cast<size_t>((l / 4 * width + i) * 4 + l % 4)] = static_cast<std::uint8_t>(row[l] + raised);
    scales_[static_cast<size_t>(i)] = codes.scale(first + i);
  }
}

void multiply_codes(Context& context, const Codes& K, Index first, const CodePanel& Q, Out<float> products) {
  const auto in_tiles = [&]<int rows>(Index begin) {
    for (; begin + rows <= products.rows(); begin += rows)
      tile<rows>(K, first + begin, Q.numbers_.data(), Q.scales_.data(),
                 products.data() + begin * products.outerStride(), products.outerStride());
    return begin;
  };
  in_tiles.operator()<1>(in_tiles.operator()<4>(0));
  context.work.flops += 2 * static_cast<double>(products.rows() * width * Q.cols_);
}

}  // namespace attnbench
