// Every call of LAPACK takes sizes of its own integer type and gives a status, which must be 0.
#pragma once

#include <lapacke.h>

#include <stdexcept>
#include <string>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

inline lapack_int lapack_size(Index n) { return static_cast<lapack_int>(n); }

inline void require(lapack_int status, const char* routine) {
  if (status != 0)
    throw std::runtime_error(std::string("LAPACK's ") + routine + " ended with status " + std::to_string(status));
}

}  // namespace attnbench
