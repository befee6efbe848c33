// Discrete Fourier transforms of real matrices in two dimensions, by FFTW (fftw.org): O(n d log(n d)).
#pragma once

#include <memory>

#include "harness/linalg/context.hpp"

namespace attnbench {

// The transform of one size. The constructor plans once, with FFTW_ESTIMATE, which does not time candidates: every run
// gives the same numbers. Executing is const and thread-safe.
template <class T>
class Fourier2d {
 public:
  Fourier2d(Index n, Index d);
  ~Fourier2d();
  Fourier2d(Fourier2d&&) noexcept;

  Index rows() const;
  Index columns() const;
  // Y = Re(F_n X F_d), F_jk = exp(-2 pi i jk / n), unnormalised; X and Y are n x d. Allocates n (d + 2) more numbers.
  void real_part(Context&, const In<T>& X, Out<T> Y) const;

 private:
  struct Plans;
  std::unique_ptr<Plans> plans_;
};

// The customary count for a real transform of N = n d numbers, 2.5 N log2 N, applied to the two passes.
double flops_of_fourier(Index n, Index d);

}  // namespace attnbench
