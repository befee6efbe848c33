// Norms of standard normal vectors.
#pragma once

#include <vector>

#include "harness/linalg/matrix.hpp"
#include "harness/random/generator.hpp"

namespace attnbench {

// count independent chi variates with d degrees of freedom (the norm of a standard normal vector): those of Boost's
// distribution to rounding.
std::vector<double> chi(Generator& generator, Index count, Index d);

}  // namespace attnbench
