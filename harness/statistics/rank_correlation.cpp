#include "harness/statistics/rank_correlation.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cassert>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace attnbench {

namespace {

std::vector<size_t> ascending(std::span<const double> x) {
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] < x[b]; });
  return order;
}

// Ranks from 0, minus their mean, of the points that `order` names; 0 for the others.
std::vector<double> centred_ranks(std::span<const double> x, const std::vector<size_t>& order) {
  std::vector<double> ranks(x.size(), 0.0);
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && x[order[end]] == x[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i)
      ranks[order[i]] = static_cast<double>(begin + end - 1) / 2 - static_cast<double>(order.size() - 1) / 2;
    begin = end;
  }
  return ranks;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double scale = std::sqrt(dot(a, a) * dot(b, b));
  return scale > 0 ? dot(a, b) / scale : std::numeric_limits<double>::quiet_NaN();
}

double fisher_z(double correlation) { return std::atanh(std::clamp(correlation, -1 + 1e-15, 1 - 1e-15)); }

// The correlation of x and y without one cluster, in Fisher's z. Sorts the points only once.
class LeavingOut {
 public:
  LeavingOut(std::span<const double> x, std::span<const double> y)
      : x_(x), y_(y), by_x_(ascending(x)), by_y_(ascending(y)) {}

  // The jackknife's variance of Fisher's z: (G - 1) / G times the squared deviations of the G values.
  double variance(const std::vector<size_t>& cluster, size_t clusters) const {
    Moments without;
    for (size_t left_out = 0; left_out < clusters; ++left_out) without.add(z_without(cluster, left_out));
    return without.m2 * (without.count - 1) / without.count;
  }

 private:
  double z_without(const std::vector<size_t>& cluster, size_t left_out) const {
    const auto ranks = [&](std::span<const double> values, std::vector<size_t> order) {
      std::erase_if(order, [&](size_t i) { return cluster[i] == left_out; });
      return centred_ranks(values, order);
    };
    return fisher_z(correlation(ranks(x_, by_x_), ranks(y_, by_y_)));
  }

  std::span<const double> x_, y_;
  std::vector<size_t> by_x_, by_y_;
};

// Cluster numbers without gaps, from 0 to count - 1.
struct Clustering {
  std::vector<size_t> of;
  size_t count = 0;
};

template <class Label>
Clustering numbered(const std::vector<Label>& labels) {
  std::map<Label, size_t> numbers;
  Clustering clustering;
  for (const Label& label : labels) clustering.of.push_back(numbers.try_emplace(label, numbers.size()).first->second);
  clustering.count = numbers.size();
  return clustering;
}

Clustering common_cells(const Clustering& a, const Clustering& b) {
  std::vector<std::pair<size_t, size_t>> cells;
  for (size_t i = 0; i < a.of.size(); ++i) cells.emplace_back(a.of[i], b.of[i]);
  return numbered(cells);
}

}  // namespace

double rank_correlation(std::span<const double> x, std::span<const double> y) {
  assert(x.size() == y.size());
  return correlation(centred_ranks(x, ascending(x)), centred_ranks(y, ascending(y)));
}

Interval rank_correlation_interval(double correlation, size_t count, double error_rate) {
  if (count < 4 || std::isnan(correlation)) return {-1, 1};
  const double z = z_threshold(error_rate, 1), half = z * std::sqrt(1.06 / static_cast<double>(count - 3));
  const double centre = fisher_z(correlation);
  return {std::tanh(centre - half), std::tanh(centre + half)};
}

Interval clustered_rank_correlation_interval(std::span<const double> x, std::span<const double> y,
                                             std::span<const std::vector<size_t>> clusterings, double error_rate) {
  assert(clusterings.size() == 1 || clusterings.size() == 2);
  const LeavingOut leaving_out(x, y);
  std::vector<Clustering> ways;
  std::vector<double> variances;
  size_t fewest = x.size();
  for (const auto& labels : clusterings) {
    assert(labels.size() == x.size());
    ways.push_back(numbered(labels));
    fewest = std::min(fewest, ways.back().count);
    variances.push_back(leaving_out.variance(ways.back().of, ways.back().count));
  }
  double variance = std::accumulate(variances.begin(), variances.end(), 0.0);
  if (ways.size() == 2) {
    const Clustering cells = common_cells(ways[0], ways[1]);
    variance -= leaving_out.variance(cells.of, cells.count);
  }
  const double centre = fisher_z(rank_correlation(x, y));
  if (fewest < 3 || x.size() < 4 || !std::isfinite(centre + variance)) return {-1, 1};
  variance = std::max(
      {variance, *std::max_element(variances.begin(), variances.end()), 1.06 / static_cast<double>(x.size() - 3)});
  const boost::math::students_t t(static_cast<double>(fewest - 1));
  const double half = boost::math::quantile(boost::math::complement(t, error_rate / 2)) * std::sqrt(variance);
  return {std::tanh(centre - half), std::tanh(centre + half)};
}

}  // namespace attnbench
