// Products of integers of 8 bits, as quantised queries and keys have them.
//   x_il = scale_i code_il, -127 <= code <= 127;  q.k = scale_q scale_k (code_q . code_k), whose sum is exact
// Processors with AVX-512 VNNI multiply and add 64 pairs in one instruction, four times as many as pairs of float; the
// sums are the same integers elsewhere, slower than products of float (integer_products_are_fast).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/linalg/context.hpp"

namespace attnbench {

extern const bool integer_products_are_fast;

// Rows of codes, each with a scale. All are 0 at first.
class Codes {
 public:
  Codes(Index rows, Index cols);
  Index rows() const { return std::ssize(scales_); }
  Index cols() const { return cols_; }
  Index stride() const { return stride_; }  // a multiple of 4; codes beyond the columns are 0

  // integers: `cols` whole numbers from -127 to 127.
  void set(Index row, std::span<const double> integers, double scale);
  const std::int8_t* row(Index i) const { return numbers_.data() + i * stride_; }
  float scale(Index i) const { return scales_[static_cast<size_t>(i)]; }
  std::int32_t sum(Index i) const { return sums_[static_cast<size_t>(i)]; }  // of the codes of a row

 private:
  Index cols_, stride_;
  std::vector<std::int8_t> numbers_;
  std::vector<float> scales_;
  std::vector<std::int32_t> sums_;
};

// Up to 64 rows of codes as the right side of products: four codes of each row, then the next four.
class CodePanel {
 public:
  static constexpr Index width = 64;
  // Rows [first, first + count) of the codes; other columns of products are 0.
  CodePanel(const Codes& codes, Index first, Index count);

 private:
  friend void multiply_codes(Context&, const Codes&, Index, const CodePanel&, Out<float>);
  Index cols_;
  std::vector<std::uint8_t> numbers_;  // stride / 4 x width x 4, each code raised by 128
  std::vector<float> scales_;
};

// Row t of the products (count x width): q.k of row first + t of K with each row of the panel, rounded to float once
// for the sum and once for each scale.
void multiply_codes(Context& context, const Codes& K, Index first, const CodePanel& Q, Out<float> products);

}  // namespace attnbench
