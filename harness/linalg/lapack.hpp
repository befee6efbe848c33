// Singular values by LAPACK, in double.
#pragma once

#include <string>
#include <vector>

#include "harness/linalg/context.hpp"

namespace attnbench {

// All min(rows, columns) singular values of A, largest first, with an error of a few epsilon sigma_1. Overwrites A.
// Throws std::runtime_error when LAPACK does not converge.
std::vector<double> singular_values(Matrix<double> A, Context& context);
// The same on one thread.
std::vector<double> singular_values(Matrix<double> A);

// The environment variables that OpenBLAS must find when a process starts, and that this process lacks, as NAME=VALUE.
// They switch LAPACK's own threads off, so that results do not depend on them and cells can run in parallel. OpenBLAS
// before 0.3.22 does not recognise recent CPUs and falls back to a fifth of their speed: they name its kernels.
std::vector<std::string> missing_lapack_variables();

// Restarts the process with these variables if it lacks any. Call it first in main.
void prepare_lapack(char** argv);

}  // namespace attnbench
