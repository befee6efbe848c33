// The capabilities of this machine, measured in this process: the ceilings that timings are compared with. Each rate is
// the best of several short repetitions, because a disturbance can only slow one down. On a shared machine a median
// would measure the neighbours. The median of a method's own times, compared with the best rates, never flatters the
// method.
#pragma once

#include "harness/core/problem.hpp"

namespace attnbench {

// Sum over all threads, each doing the same on its own memory. Those of bf16 are float's: times at both then compare
// with one ceiling, which products of bfloat16 may pass.
struct Rates {
  double fma_peak = 0;  // FLOP/s of multiply-adds on registers, in the widest instructions of the build; two FLOPs each
  double exp_rate = 0;  // 1/s of the engines' exponential (harness/linalg/exponentials.hpp), in cache
  double bandwidth = 0;  // B/s read and written, two arrays beyond the last-level cache (but at most 512 MB)
};

// Measured on the first call, in about a third of a second, and kept for the process.
const Rates& rates(Precision precision, int threads);
// The rates of arithmetic at this moment, in about half a millisecond. The clock of a processor depends on what it has
// just done and on its neighbours: on a busy host the multiply-adds of one minute were 1.7 times those of another.
// bandwidth: 0.
Rates arithmetic_now(Precision precision, int threads);

// C = A B (or A B^T, C += A B, C += A^T B, named as in linalg/products.hpp): A B multiplies rows x inner by inner x
// columns.
enum class Product { multiply, multiply_add, multiply_transposed, transposed_multiply_add };

// FLOP/s of such products by linalg/products.hpp, one after the other in each thread.
double product_rate(Precision precision, int threads, Product product, Index rows, Index inner, Index columns);

}  // namespace attnbench
