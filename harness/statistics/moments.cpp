#include "harness/statistics/moments.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attnbench {

void Moments::add(double x) {
  const double before = count;
  count += 1;
  const double delta = x - mean, d_n = delta / count, d2 = d_n * d_n, square = delta * d_n * before;
  m4 += square * d2 * (count * count - 3 * count + 3) + 6 * d2 * m2 - 4 * d_n * m3;
  m3 += square * d_n * (count - 2) - 3 * d_n * m2;
  m2 += square;
  mean += d_n;
  sum_of_magnitudes += std::abs(x);
  largest_magnitude = std::max(largest_magnitude, std::abs(x));
}

void Moments::merge(const Moments& b) {
  if (b.count == 0) return;
  if (count == 0) {
    *this = b;
    return;
  }
  const double n = count + b.count, delta = b.mean - mean;
  const double d_n = delta / n, d2 = d_n * d_n;
  m4 += b.m4 + delta * d_n * d2 * count * b.count * (count * count - count * b.count + b.count * b.count) +
        6 * d2 * (count * count * b.m2 + b.count * b.count * m2) + 4 * d_n * (count * b.m3 - b.count * m3);
  m3 += b.m3 + delta * d2 * count * b.count * (count - b.count) + 3 * d_n * (count * b.m2 - b.count * m2);
  m2 += b.m2 + delta * d_n * count * b.count;
  mean += d_n * b.count;
  count = n;
  sum_of_magnitudes += b.sum_of_magnitudes;
  largest_magnitude = std::max(largest_magnitude, b.largest_magnitude);
}

double Moments::variance() const { return count < 2 ? 0 : m2 / (count - 1); }

double Moments::standard_error() const { return count < 2 ? 0 : std::sqrt(variance() / count); }

double Moments::variance_standard_error() const {
  if (count < 2) return 0;
  const double s4 = variance() * variance();
  return std::sqrt(std::max(0.0, m4 / count - (count - 3) / (count - 1) * s4) / count);
}

double Moments::share_of_largest() const { return sum_of_magnitudes > 0 ? largest_magnitude / sum_of_magnitudes : 0; }

double score(const Moments& sample, double expected) {
  const double deviation = sample.mean - expected, variance = sample.variance();
  if (variance == 0) return deviation == 0 ? 0 : std::copysign(std::numeric_limits<double>::infinity(), deviation);
  const double third = sample.m3 / sample.count;
  const double a = third / (3 * variance * variance);
  const double corrected = deviation + a * deviation * deviation + a * a / 3 * deviation * deviation * deviation +
                           third / (6 * variance * sample.count);
  return corrected / std::sqrt(variance / sample.count);
}

Moments moments(std::span<const double> values) {
  Moments all;
  for (const double x : values) all.add(x);
  return all;
}

}  // namespace attnbench
