#include "harness/measures/sparsity.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

namespace attnbench {

double entropy(std::span<const double> p) {
  double sum = 0;
  for (const double x : p)
    if (x > 0) sum -= x * std::log(x);
  return sum;
}

double effective_support(std::span<const double> p) { return std::exp(entropy(p)); }

double inverse_participation(std::span<const double> p) {
  double squares = 0;
  for (const double x : p) squares += x * x;
  return squares > 0 ? 1 / squares : 0;
}

double fraction_below(std::span<const double> p, double threshold) {
  const auto below = std::count_if(p.begin(), p.end(), [&](double x) { return std::abs(x) < threshold; });
  return static_cast<double>(below) / static_cast<double>(p.size());
}

double top_mass(std::span<const double> p, Index k) {
  std::vector<double> sorted(p.begin(), p.end());
  const auto end = sorted.begin() + std::min<Index>(k, static_cast<Index>(sorted.size()));
  std::partial_sort(sorted.begin(), end, sorted.end(), std::greater<>());
  return std::accumulate(sorted.begin(), end, 0.0);
}

double gini(std::span<const double> p) {
  std::vector<double> sorted(p.begin(), p.end());
  std::sort(sorted.begin(), sorted.end());
  const auto n = static_cast<double>(sorted.size());
  double weighted = 0, sum = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    weighted += static_cast<double>(i + 1) * sorted[i];
    sum += sorted[i];
  }
  return sum == 0 ? 0 : 2 * weighted / (n * sum) - (n + 1) / n;
}

double hoyer(std::span<const double> p) {
  if (p.size() <= 1) return 0;
  double l1 = 0, l2 = 0;
  for (const double x : p) {
    l1 += std::abs(x);
    l2 += x * x;
  }
  if (l2 == 0) return 0;
  const double root = std::sqrt(static_cast<double>(p.size()));
  return (root - l1 / std::sqrt(l2)) / (root - 1);
}

}  // namespace attnbench
