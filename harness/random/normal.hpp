// Standard normal numbers.
#pragma once

#include "harness/linalg/matrix.hpp"
#include "harness/random/generator.hpp"

namespace attnbench {

// rows x columns independent standard normal numbers, drawn row by row: those of Boost's distribution to the last bit,
// which is the same on every platform, unlike std::normal_distribution.
Matrix<double> standard_normal(Generator& generator, Index rows, Index columns);

}  // namespace attnbench
