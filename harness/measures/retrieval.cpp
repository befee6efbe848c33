#include "harness/measures/retrieval.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <numeric>

namespace attnbench {

Index top_key(std::span<const double> p) {
  const auto largest = std::max_element(p.begin(), p.end());  // the first of equal ones
  return largest == p.end() || *largest <= 0 ? -1 : largest - p.begin();
}

std::vector<Index> top_keys(std::span<const double> p, Index k) {
  std::vector<Index> keys;
  for (Index j = 0; j < std::ssize(p); ++j)
    if (p[static_cast<size_t>(j)] > 0) keys.push_back(j);
  if (k < std::ssize(keys)) {
    std::nth_element(keys.begin(), keys.begin() + k, keys.end(), [&](Index a, Index b) {
      const double at_a = p[static_cast<size_t>(a)], at_b = p[static_cast<size_t>(b)];
      return at_a != at_b ? at_a > at_b : a < b;
    });
    keys.resize(static_cast<size_t>(k));
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

double top_recall(std::span<const double> p, std::span<const double> exact, Index k) {
  assert(p.size() == exact.size());
  const auto wanted = top_keys(exact, k), given = top_keys(p, k);
  std::vector<Index> found;
  std::set_intersection(wanted.begin(), wanted.end(), given.begin(), given.end(), std::back_inserter(found));
  return static_cast<double>(found.size()) / static_cast<double>(wanted.size());
}

}  // namespace attnbench
