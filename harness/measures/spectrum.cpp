#include "harness/measures/spectrum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace attnbench {

namespace {
// sum (sigma_i / sigma_1)^power. Nothing overflows or underflows at any scale of the matrix. 0 for the zero matrix.
double power_sum(std::span<const double> sigma, double power) {
  if (sigma.empty() || sigma.front() == 0) return 0;
  double sum = 0;
  for (const double s : sigma) sum += std::pow(s / sigma.front(), power);
  return sum;
}
}  // namespace

double rank_tolerance(std::span<const double> sigma, Index rows, Index columns) {
  if (sigma.empty()) return 0;
  return sigma.front() * static_cast<double>(std::max(rows, columns)) * std::numeric_limits<double>::epsilon();
}

Index numerical_rank(std::span<const double> sigma, double tolerance) {
  return std::count_if(sigma.begin(), sigma.end(), [&](double s) { return s > tolerance; });
}

double stable_rank(std::span<const double> sigma) { return power_sum(sigma, 2); }

double participation_ratio(std::span<const double> sigma) {
  const double fourth = power_sum(sigma, 4), second = power_sum(sigma, 2);
  return fourth > 0 ? second * second / fourth : 0;
}

double effective_rank(std::span<const double> sigma, double power) {
  const double total = power_sum(sigma, power);
  if (total == 0) return 0;
  double entropy = 0;
  for (const double s : sigma)
    if (const double p = std::pow(s / sigma.front(), power) / total; p > 0) entropy -= p * std::log(p);
  return std::exp(entropy);
}

Index principal_dimensions(std::span<const double> sigma, double share) {
  const double all = power_sum(sigma, 2);
  Index count = 0;
  for (double sum = 0; sum < share * all; ++count) sum += std::pow(sigma[static_cast<size_t>(count)] / sigma[0], 2);
  return count;
}

std::vector<double> cumulative_spectrum(std::span<const double> sigma) {
  std::vector<double> cumulative(sigma.size());
  std::partial_sum(sigma.begin(), sigma.end(), cumulative.begin());
  if (!cumulative.empty() && cumulative.back() > 0)
    for (const double total = cumulative.back(); double& c : cumulative) c /= total;
  return cumulative;
}

}  // namespace attnbench
