#include "harness/linalg/sincos.hpp"

#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>

#include "harness/linalg/vector.hpp"

namespace attnbench {

namespace {

using Floats = Vector<float>::type;
typedef std::int32_t Integers __attribute__((vector_size(vector_bytes)));

constexpr float largest = 8192;  // of the angles whose reduction by three parts of pi/2 is exact enough

// x becomes its cosine, y the sine.
void cosine_and_sine(Floats& x, Floats& y, float factor) {
  constexpr float shifter = 12582912.0F;  // 1.5 2^23: leaves the nearest integer in the low bits of a sum
  const Floats shifted = x * 0.636619772F + shifter, n = shifted - shifter;
  const Integers quadrant = std::bit_cast<Integers>(shifted);
  const Floats r = x - n * 1.5703125F - n * 4.837512969970703125e-4F - n * 7.54978994e-8F, r2 = r * r;
  const Floats sine = r + r * r2 * (-1.6666654611e-1F + r2 * (8.3321608736e-3F + r2 * -1.9515295891e-4F));
  const Floats cosine =
      1 - 0.5F * r2 + r2 * r2 * (4.166664568298827e-2F + r2 * (-1.388731625493765e-3F + r2 * 2.443315711809948e-5F));
  const Integers odd = (quadrant & 1) != 0, of_cosine = ((quadrant + 1) & 2) << 30, of_sine = (quadrant & 2) << 30;
  x = factor * std::bit_cast<Floats>(std::bit_cast<Integers>(odd ? sine : cosine) ^ of_cosine);
  y = factor * std::bit_cast<Floats>(std::bit_cast<Integers>(odd ? cosine : sine) ^ of_sine);
}

template <class T>
void one_by_one(T* cosines, T* sines, Index count, T factor) {
  for (Index j = 0; j < count; ++j) {
    sines[j] = factor * std::sin(cosines[j]);
    cosines[j] = factor * std::cos(cosines[j]);
  }
}

void of_row(float* cosines, float* sines, Index count, float factor) {
  const Eigen::Map<const Eigen::ArrayXf> angles(cosines, count);
  if (count > 0 && angles.abs().maxCoeff() > largest) return one_by_one(cosines, sines, count, factor);
  constexpr Index L = lanes<float>;
  Index j = 0;
  for (; j + L <= count; j += L) {
    Floats x = load(cosines + j), y;
    cosine_and_sine(x, y, factor);
    store<float>(cosines + j, x);
    store<float>(sines + j, y);
  }
  if (j == count) return;
  const size_t rest = static_cast<size_t>(count - j) * sizeof(float);
  Floats x{}, y;
  std::memcpy(&x, cosines + j, rest);
  cosine_and_sine(x, y, factor);
  std::memcpy(cosines + j, &x, rest);
  std::memcpy(sines + j, &y, rest);
}

void of_row(double* cosines, double* sines, Index count, double factor) { one_by_one(cosines, sines, count, factor); }

}  // namespace

template <class T>
void cosines_and_sines(Context& context, OutArg<T> cosines, OutArg<T> sines, T factor) {
  assert(cosines.rows() == sines.rows() && cosines.cols() == sines.cols());
  for (Index i = 0; i < cosines.rows(); ++i)
    of_row(cosines.data() + i * cosines.outerStride(), sines.data() + i * sines.outerStride(), cosines.cols(), factor);
  context.work.exps += 2.0 * static_cast<double>(cosines.size());
}

template void cosines_and_sines<float>(Context&, OutArg<float>, OutArg<float>, float);
template void cosines_and_sines<double>(Context&, OutArg<double>, OutArg<double>, double);

}  // namespace attnbench
