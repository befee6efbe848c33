#include "harness/linalg/spectrum.hpp"

#include <lapacke.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

namespace attnbench {

std::vector<double> singular_values(Matrix<double> A) {
  const auto rows = static_cast<lapack_int>(A.rows()), columns = static_cast<lapack_int>(A.cols());
  std::vector<double> sigma(static_cast<size_t>(std::min(rows, columns)));
  if (sigma.empty()) return sigma;
  // The transpose has the same singular values, so the row-major matrix is passed as a column-major one, uncopied.
  const lapack_int status =
      LAPACKE_dgesdd(LAPACK_COL_MAJOR, 'N', columns, rows, A.data(), columns, sigma.data(), nullptr, 1, nullptr, 1);
  if (status != 0) throw std::runtime_error("LAPACK's dgesdd ended with status " + std::to_string(status));
  return sigma;
}

void prepare_lapack(char** argv) {
  const bool known = std::getenv("OPENBLAS_CORETYPE") != nullptr || !__builtin_cpu_supports("avx512f");
  if (known && std::getenv("OPENBLAS_NUM_THREADS") != nullptr) return;
  if (!known) setenv("OPENBLAS_CORETYPE", "SkylakeX", 1);
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  execv("/proc/self/exe", argv);
  // Where that is not possible, the results are the same to rounding and only slower.
}

}  // namespace attnbench
