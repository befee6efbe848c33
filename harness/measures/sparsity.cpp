#include "harness/measures/sparsity.hpp"

#include <algorithm>
#include <boost/sort/spreadsort/float_sort.hpp>
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
  boost::sort::spreadsort::float_sort(sorted.begin(), sorted.end());  // half the cost of a row of 65,536 keys
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

double mean_over_rms(std::span<const double> p) {
  double l1 = 0, l2 = 0;
  for (const double x : p) {
    l1 += std::abs(x);
    l2 += x * x;
  }
  return l2 == 0 ? 0 : l1 / std::sqrt(l2 * static_cast<double>(p.size()));
}

double attention_distance(std::span<const double> p, Index position) {
  double sum = 0;
  for (size_t j = 0; j < p.size(); ++j) sum += p[j] * std::abs(static_cast<double>(position - static_cast<Index>(j)));
  return sum;
}

RowSparsity row_sparsity(std::span<const double> p, Index position, Index seen, Index top, double threshold) {
  RowSparsity row;
  row.fraction_below = fraction_below(p, threshold);
  row.hoyer = hoyer(p);
  row.mean_over_rms = mean_over_rms(p);
  using Kind = RowSparsity::Kind;
  const auto [least, most] = std::minmax_element(p.begin(), p.end());
  row.kind = *least < 0 ? Kind::negative : *most == 0 ? Kind::zero : Kind::weights;
  if (row.kind != Kind::weights) return row;
  // Rows of some methods do not sum to 1; the entropy of such a row as it is exceeds that of any distribution.
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  std::vector<double> shares(p.begin(), p.end());
  for (double& share : shares) share /= sum;
  row.entropy = entropy(shares);
  row.effective_support = std::exp(row.entropy);
  row.relative_entropy = seen > 1 ? row.entropy / std::log(static_cast<double>(seen)) : 1;
  row.relative_support = row.effective_support / static_cast<double>(seen);
  row.inverse_participation = inverse_participation(shares);
  row.top_mass = top_mass(shares, top);
  row.sink_mass = shares.front();
  row.gini = gini(p);
  row.attention_distance = attention_distance(shares, position);
  return row;
}

}  // namespace attnbench
