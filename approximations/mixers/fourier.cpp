#include "approximations/mixers/fourier.hpp"

#include <fftw3.h>

#include <cmath>
#include <mutex>

#include "harness/linalg/rounding.hpp"

namespace attnbench {

namespace {

// FFTW's planner has global state, so only one thread may plan at a time. Executing a plan is thread-safe.
std::mutex& planner() {
  static std::mutex mutex;
  return mutex;
}

// FFTW has a separate library for each scalar type.
template <class T>
struct Fftw;
template <>
struct Fftw<double> {
  using Plan = fftw_plan;
  using Complex = fftw_complex;
  static constexpr auto plan_real = fftw_plan_dft_r2c_1d;
  static constexpr auto plan_complex = fftw_plan_dft_1d;
  static constexpr auto execute_real = fftw_execute_dft_r2c;
  static constexpr auto execute_complex = fftw_execute_dft;
  static constexpr auto destroy = fftw_destroy_plan;
};
template <>
struct Fftw<float> {
  using Plan = fftwf_plan;
  using Complex = fftwf_complex;
  static constexpr auto plan_real = fftwf_plan_dft_r2c_1d;
  static constexpr auto plan_complex = fftwf_plan_dft_1d;
  static constexpr auto execute_real = fftwf_execute_dft_r2c;
  static constexpr auto execute_complex = fftwf_execute_dft;
  static constexpr auto destroy = fftwf_destroy_plan;
};

template <class T>
typename Fftw<T>::Complex* complex(T* interleaved) {
  return reinterpret_cast<typename Fftw<T>::Complex*>(interleaved);
}

constexpr Index block_rows = 64;

}  // namespace

template <class T>
struct Fourier2d<T>::Plans {
  using Library = Fftw<T>;

  Plans(Index rows, Index columns) : n(rows), d(columns) {
    Matrix<T> row(1, d), of_row(1, 2 * half), column(1, 2 * n);  // FFTW_ESTIMATE does not touch these arrays
    const std::scoped_lock lock(planner());
    along_row = Library::plan_real(static_cast<int>(d), row.data(), complex(of_row.data()), FFTW_ESTIMATE);
    along_column = Library::plan_complex(static_cast<int>(n), complex(column.data()), complex(column.data()),
                                         FFTW_FORWARD, FFTW_ESTIMATE);
  }
  ~Plans() {
    const std::scoped_lock lock(planner());
    Library::destroy(along_row);
    Library::destroy(along_column);
  }
  Plans(const Plans&) = delete;
  Plans& operator=(const Plans&) = delete;

  Index n, d;
  Index half = d / 2 + 1;               // columns computed: column d - v is column v, conjugated and reversed
  Index stride = (n + 7) / 8 * 8;       // between complex columns: each has the alignment that the plan assumes
  typename Library::Plan along_row;     // real, length d
  typename Library::Plan along_column;  // complex, length n, in place
};

template <class T>
Fourier2d<T>::Fourier2d(Index n, Index d) : plans_(std::make_unique<Plans>(n, d)) {}
template <class T>
Fourier2d<T>::~Fourier2d() = default;
template <class T>
Fourier2d<T>::Fourier2d(Fourier2d&&) noexcept = default;
template <class T>
Index Fourier2d<T>::rows() const {
  return plans_->n;
}
template <class T>
Index Fourier2d<T>::columns() const {
  return plans_->d;
}

template <class T>
void Fourier2d<T>::real_part(Context& context, const In<T>& X, Out<T> Y) const {
  const Index n = plans_->n, d = plans_->d, half = plans_->half;
  Matrix<T> spectrum(half, 2 * plans_->stride);  // transposed, interleaved: a row of it is a column of the transform
  context.for_blocks(n, block_rows, [&](Context& single, Index first, Index count) {
    Matrix<T> row(1, d), of_row(1, 2 * half);
    for (Index i = first; i < first + count; ++i) {
      row = X.row(i);
      Fftw<T>::execute_real(plans_->along_row, row.data(), complex(of_row.data()));
      round_to<T>(single.rounding(), of_row);
      for (Index v = 0; v < half; ++v) {
        spectrum(v, 2 * i) = of_row(0, 2 * v);
        spectrum(v, 2 * i + 1) = of_row(0, 2 * v + 1);
      }
    }
  });
  context.for_blocks(half, 1, [&](Context& single, Index v, Index) {
    auto* column = complex(spectrum.row(v).data());
    Fftw<T>::execute_complex(plans_->along_column, column, column);
    round_to<T>(single.rounding(), Out<T>(spectrum.row(v).data(), 1, 2 * n, 2 * n));
  });
  context.for_blocks(n, block_rows, [&](Context&, Index first, Index count) {
    for (Index u = first; u < first + count; ++u) {
      for (Index v = 0; v < half; ++v) Y(u, v) = spectrum(v, 2 * u);
      for (Index v = half; v < d; ++v) Y(u, v) = spectrum(d - v, 2 * ((n - u) % n));
    }
  });
  context.work.flops += flops_of_fourier(n, d);
}

double flops_of_fourier(Index n, Index d) {
  const Index kept = d / 2 + 1;  // the others are conjugates of these
  const auto rows = static_cast<double>(n), columns = static_cast<double>(d);
  return 2.5 * rows * columns * std::log2(columns) + 5 * rows * static_cast<double>(kept) * std::log2(rows);
}

template class Fourier2d<float>;
template class Fourier2d<double>;

}  // namespace attnbench
