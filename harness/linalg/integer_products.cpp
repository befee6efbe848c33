#include "harness/linalg/integer_products.hpp"

#include <algorithm>
#include <cstring>

#if defined(__AVX512VNNI__) && defined(__AVX512F__)
#define ATTNBENCH_VNNI
#include <immintrin.h>
#endif

namespace attnbench {

namespace {

constexpr Index width = CodePanel::width;

#ifdef ATTNBENCH_VNNI

// The instruction multiplies unsigned by signed numbers. Codes of keys are therefore raised by 128, and 128 times the
// sum of a query's codes is taken off again.
template <int rows>
void tile(const Codes& K, Index first, const std::int8_t* panel, const std::int32_t* sums, const float* scales,
          float* products, Index stride) {
  constexpr int vectors = width / 16;
  const __m512i raise = _mm512_set1_epi32(static_cast<int>(0x80808080U));
  __m512i sum[rows][vectors];
  for (int v = 0; v < vectors; ++v) {
    const __m512i raised = _mm512_slli_epi32(_mm512_loadu_si512(sums + 16 * v), 7);
    for (int r = 0; r < rows; ++r) sum[r][v] = _mm512_sub_epi32(_mm512_setzero_si512(), raised);
  }
  for (Index l = 0; l < K.stride(); l += 4) {
    __m512i q[vectors];
    for (int v = 0; v < vectors; ++v) q[v] = _mm512_loadu_si512(panel + (l * width + 64 * v));
    for (int r = 0; r < rows; ++r) {
      int four = 0;
      std::memcpy(&four, K.row(first + r) + l, sizeof four);
      const __m512i k = _mm512_xor_si512(_mm512_set1_epi32(four), raise);
      for (int v = 0; v < vectors; ++v) sum[r][v] = _mm512_dpbusd_epi32(sum[r][v], k, q[v]);
    }
  }
  for (int r = 0; r < rows; ++r) {
    const __m512 of_key = _mm512_set1_ps(K.scales[static_cast<size_t>(first + r)]);
    for (int v = 0; v < vectors; ++v) {
      const __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(sum[r][v]), _mm512_loadu_ps(scales + 16 * v));
      _mm512_storeu_ps(products + r * stride + 16 * v, _mm512_mul_ps(scaled, of_key));
    }
  }
}

#else

template <int rows>
void tile(const Codes& K, Index first, const std::int8_t* panel, const std::int32_t*, const float* scales,
          float* products, Index stride) {
  for (int r = 0; r < rows; ++r)
    for (Index column = 0; column < width; ++column) {
      std::int32_t sum = 0;
      for (Index l = 0; l < K.stride(); ++l) sum += K.row(first + r)[l] * panel[(l / 4 * width + column) * 4 + l % 4];
      products[r * stride + column] =
          static_cast<float>(sum) * scales[column] * K.scales[static_cast<size_t>(first + r)];
    }
}

#endif

}  // namespace

#ifdef ATTNBENCH_VNNI
const bool integer_products_are_fast = true;
#else
const bool integer_products_are_fast = false;
#endif

CodePanel::CodePanel(const Codes& codes, Index first, Index count)
    : cols_(codes.cols()),
      stride_(codes.stride()),
      numbers_(static_cast<size_t>(codes.stride() * width), 0),
      sums_(static_cast<size_t>(width), 0),
      scales_(static_cast<size_t>(width), 0) {
  for (Index i = 0; i < count; ++i) {
    const std::int8_t* row = codes.row(first + i);
    for (Index l = 0; l < stride_; ++l) {
      numbers_[static_cast<size_t>((l / 4 * width + i) * 4 + l % 4)] = row[l];
      sums_[static_cast<size_t>(i)] += row[l];
    }
    scales_[static_cast<size_t>(i)] = codes.scales[static_cast<size_t>(first + i)];
  }
}

void multiply_codes(Context& context, const Codes& K, Index first, const CodePanel& Q, Out<float> products) {
  const auto in_tiles = [&]<int rows>(Index begin) {
    for (; begin + rows <= products.rows(); begin += rows)
      tile<rows>(K, first + begin, Q.numbers_.data(), Q.sums_.data(), Q.scales_.data(),
                 products.data() + begin * products.outerStride(), products.outerStride());
    return begin;
  };
  Index done = in_tiles.operator()<6>(0);
  done = in_tiles.operator()<2>(done);
  in_tiles.operator()<1>(done);
  context.work.flops += 2 * static_cast<double>(products.rows() * width * Q.cols_);
}

}  // namespace attnbench
