#include "harness/linalg/lapack.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "harness/linalg/lapack_status.hpp"

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

// LAPACK reduces a matrix to bidiagonal form one column at a time, and half of that reads the whole matrix twice a
// column. We reduce it to an upper triangular band first, `band` columns at a time and so by matrix products, and then
// the band. All steps are orthogonal, and the error is the same few epsilon sigma_1. At n = 2048 LAPACK's way takes
// 4.7 s and this one 1.4; a band of 16 or 64 takes 1.6 or 2.0.
constexpr Index band = 32;
constexpr Index strip = 256;             // columns or rows that one thread reflects at a time
constexpr Index smallest_by_band = 512;  // below, the band takes longer than it saves

// A column-major matrix, or part of one.
struct Part {
  double* data;
  Index rows, columns, stride;
  Part from(Index row, Index column, Index height, Index width) const {
    return {data + column * stride + row, height, width, stride};
  }
};

// Reflections whose product I - V T V^T makes a panel upper triangular. V lies below the panel's diagonal.
struct Reflections {
  Part V;
  std::vector<double> T;

  explicit Reflections(const Part& panel) : V(panel), T(static_cast<size_t>(band * band)) {
    std::vector<double> factors(static_cast<size_t>(band)), work(static_cast<size_t>(band * band));
    require(LAPACKE_dgeqrf_work(LAPACK_COL_MAJOR, lapack_size(V.rows), lapack_size(V.columns), V.data,
                                lapack_size(V.stride), factors.data(), work.data(), lapack_size(band * band)),
            "dgeqrf");
    require(LAPACKE_dlarft_work(LAPACK_COL_MAJOR, 'F', 'C', lapack_size(V.rows), lapack_size(count()), V.data,
                                lapack_size(V.stride), factors.data(), T.data(), lapack_size(band)),
            "dlarft");
  }
  Index count() const { return std::min(V.rows, V.columns); }
  // C = (I - V T V^T)^T C, or C (I - V T V^T).
  void from_left(Context& context, const Part& C) const {
    context.for_blocks(C.columns, strip, [&](Context&, Index first, Index width) {
      apply('L', 'T', C.from(0, first, C.rows, width), width);
    });
  }
  void from_right(Context& context, const Part& C) const {
    context.for_blocks(C.rows, strip, [&](Context&, Index first, Index height) {
      apply('R', 'N', C.from(first, 0, height, C.columns), height);
    });
  }

 private:
  void apply(char side, char transposed, const Part& C, Index width) const {
    [[maybe_unused]] const WithoutSubnormals guard;
    std::vector<double> work(static_cast<size_t>(width * band));
    require(LAPACKE_dlarfb_work(LAPACK_COL_MAJOR, side, transposed, 'F', 'C', lapack_size(C.rows),
                                lapack_size(C.columns), lapack_size(count()), V.data, lapack_size(V.stride), T.data(),
                                lapack_size(band), C.data, lapack_size(C.stride), work.data(), lapack_size(width)),
            "dlarfb");
  }
};

// A (rows >= columns) becomes an upper triangle of `band` diagonals beside the main one. Below them V is left.
void reduce_to_band(Context& context, const Part& A) {
  std::vector<double> transposed(static_cast<size_t>(A.columns * band));
  for (Index k = 0; k < A.columns; k += band) {
    const Index width = std::min(band, A.columns - k), right = k + width, rest = A.columns - right;
    const Reflections left(A.from(k, k, A.rows - k, width));
    if (rest == 0) return;
    left.from_left(context, A.from(k, right, A.rows - k, rest));
    // The rows of the panel, as columns of a matrix of their own: LAPACK's factorisation by rows takes six times as
    // long.
    const Part panel = A.from(k, right, width, rest), columns{transposed.data(), rest, width, A.columns};
    const auto row = [&](Index j, Index i) -> double& { return columns.data[i * columns.stride + j]; };
    for (Index j = 0; j < rest; ++j)
      for (Index i = 0; i < width; ++i) row(j, i) = panel.data[j * panel.stride + i];
    const Reflections from_rows(columns);
    for (Index j = 0; j < std::min(rest, width); ++j)
      for (Index i = j; i < width; ++i) panel.data[j * panel.stride + i] = row(j, i);
    from_rows.from_right(context, A.from(right, right, A.rows - right, rest));
  }
}

std::vector<double> by_band(Context& context, const Part& A) {
  reduce_to_band(context, A);
  const Index n = A.columns, stride = band + 1;
  std::vector<double> diagonals(static_cast<size_t>(stride * n)), diagonal(static_cast<size_t>(n)),
      superdiagonal(static_cast<size_t>(n));
  for (Index j = 0; j < n; ++j)
    for (Index i = std::max<Index>(0, j - band); i <= j; ++i)
      diagonals[static_cast<size_t>(j * stride + band + i - j)] = A.data[j * A.stride + i];
  require(
      LAPACKE_dgbbrd(LAPACK_COL_MAJOR, 'N', lapack_size(n), lapack_size(n), 0, 0, lapack_size(band), diagonals.data(),
                     lapack_size(stride), diagonal.data(), superdiagonal.data(), nullptr, 1, nullptr, 1, nullptr, 1),
      "dgbbrd");
  require(LAPACKE_dbdsdc(LAPACK_COL_MAJOR, 'U', 'N', lapack_size(n), diagonal.data(), superdiagonal.data(), nullptr, 1,
                         nullptr, 1, nullptr, nullptr),
          "dbdsdc");
  return diagonal;
}

std::vector<double> column_by_column(const Part& A) {
  std::vector<double> sigma(static_cast<size_t>(std::min(A.rows, A.columns)));
  require(LAPACKE_dgesdd(LAPACK_COL_MAJOR, 'N', lapack_size(A.rows), lapack_size(A.columns), A.data,
                         lapack_size(A.stride), sigma.data(), nullptr, 1, nullptr, 1),
          "dgesdd");
  return sigma;
}

}  // namespace

std::vector<double> singular_values(Matrix<double> A, Context& context) {
  if (A.size() == 0) return {};
  if (!A.allFinite()) throw std::runtime_error("a matrix that is not finite has no singular values");
  // Scale by a power of two, which causes no rounding, so that numbers treated as 0 are small compared with the
  // largest.
  const double largest = A.cwiseAbs().maxCoeff();
  const int exponent = largest > 0 ? std::ilogb(largest) : 0;
  if (exponent != 0) A = A.unaryExpr([&](double a) { return std::ldexp(a, -exponent); });
  const bool banded = std::min(A.rows(), A.cols()) >= smallest_by_band;
  if (banded && A.rows() > A.cols()) A.transposeInPlace();
  [[maybe_unused]] const WithoutSubnormals guard;
  // The transpose has the same singular values, so we pass the row-major matrix as a column-major one without a copy.
  const Part transposed{A.data(), A.cols(), A.rows(), A.cols()};
  std::vector<double> sigma = banded ? by_band(context, transposed) : column_by_column(transposed);
  for (double& s : sigma) s = std::ldexp(s, exponent);
  return sigma;
}

std::vector<double> singular_values(Matrix<double> A) {
  Context single;
  return singular_values(std::move(A), single);
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
