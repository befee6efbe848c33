// Products of bfloat16 numbers with sums in float, as matrix units compute them.
//   c = sum_l r(a_l) r(b_l),  r: to the nearest bfloat16 (8 significant bits, float's exponents), ties to even
// A product of two such numbers has 16 significant bits and is exact in float, so that sums alone round. Processors
// with AVX-512 BF16 multiply and add 32 pairs in one instruction, twice as many as pairs of float; elsewhere products
// of rounded floats are the same but for the order of sums, and faster (bfloat16_products_are_fast).
#pragma once

#include "harness/linalg/matrix.hpp"

namespace attnbench {

extern const bool bfloat16_products_are_fast;

// Each entry of X as the nearest bfloat16, held in float. A number beyond the largest bfloat16 becomes infinite.
Matrix<float> rounded_to_bfloat16(const In<float>& X);

// One side of a product: a matrix, or its transpose. Refers to the matrix.
struct Bfloat16Operand {
  In<float> X;
  bool transposed = false;
};

// C = A B, or C += A B if `add`, both rounded to bfloat16. A is a x k, B is k x b, C is a x b. Numbers and sums below
// 2^-126 may become 0, because the instruction has no subnormal numbers. Counts no work.
void multiply_bfloat16(const Bfloat16Operand& A, const Bfloat16Operand& B, bool add, Out<float> C);

}  // namespace attnbench
