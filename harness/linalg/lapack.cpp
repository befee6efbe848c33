#include "harness/linalg/lapack.hpp"

#include <lapacke.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <stdexcept>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace attnbench {

namespace {
// Treats subnormal numbers as 0 while it lives. Reducing a matrix of rank one leaves ever smaller remainders below
// 1e-308, where an operation takes a hundred times as long: the singular values of the uniform matrix of 2048 tokens
// took 26 s without this and take 2 s with it.
class WithoutSubnormals {
 public:
#if defined(__SSE2__)
  WithoutSubnormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | flush_to_zero | subnormals_are_zero); }
  ~WithoutSubnormals() { _mm_setcsr(before_); }

 private:
  static constexpr unsigned flush_to_zero = 0x8000, subnormals_are_zero = 0x0040;
  unsigned before_;
#endif
};
}  // namespace

std::vector<double> singular_values(Matrix<double> A) {
  const auto rows = static_cast<lapack_int>(A.rows()), columns = static_cast<lapack_int>(A.cols());
  std::vector<double> sigma(static_cast<size_t>(std::min(rows, columns)));
  if (sigma.empty()) return sigma;
  // Scale by a power of two, which causes no rounding, so that numbers treated as 0 are small compared with the
  // largest.
  const double largest = A.cwiseAbs().maxCoeff();
  const int exponent = largest > 0 && std::isfinite(largest) ? std::ilogb(largest) : 0;
  if (exponent != 0) A = A.unaryExpr([&](double a) { return std::ldexp(a, -exponent); });
  [[maybe_unused]] const WithoutSubnormals guard;
  // The transpose has the same singular values, so we pass the row-major matrix as a column-major one without a copy.
  const lapack_int status =
      LAPACKE_dgesdd(LAPACK_COL_MAJOR, 'N', columns, rows, A.data(), columns, sigma.data(), nullptr, 1, nullptr, 1);
  if (status != 0) throw std::runtime_error("LAPACK's dgesdd ended with status " + std::to_string(status));
  for (double& s : sigma) s = std::ldexp(s, exponent);
  return sigma;
}

std::vector<std::string> missing_lapack_variables() {
  std::vector<std::string> missing;
  if (!std::getenv("OPENBLAS_NUM_THREADS")) missing.emplace_back("OPENBLAS_NUM_THREADS=1");
#if defined(__x86_64__)
  if (!std::getenv("OPENBLAS_CORETYPE") && __builtin_cpu_supports("avx512f"))
    missing.emplace_back("OPENBLAS_CORETYPE=SkylakeX");
#endif
  return missing;
}

void prepare_lapack(char** argv) {
  const std::vector<std::string> missing = missing_lapack_variables();
  if (missing.empty()) return;
  for (const std::string& variable : missing) {
    const size_t end = variable.find('=');
    setenv(variable.substr(0, end).c_str(), variable.substr(end + 1).c_str(), 1);
  }
  execv("/proc/self/exe", argv);
  // If execv fails, the results are the same to rounding, only slower.
}

}  // namespace attnbench
