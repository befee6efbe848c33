// How concentrated one row of an attention matrix is. methods.md I. p is a row with non-negative entries that sum to
// one, unless stated otherwise.
#pragma once

#include <span>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// -sum p log p, nats; 0 log 0 = 0.
double entropy(std::span<const double> p);
// exp(entropy): the number of keys that a row attends to. n for the uniform row, 1 for a one-hot one.
double effective_support(std::span<const double> p);
// 1 / sum p^2 <= effective support.
double inverse_participation(std::span<const double> p);
// The share of entries with |p| < threshold; any sign.
double fraction_below(std::span<const double> p, double threshold);
// The sum of the k largest entries.
double top_mass(std::span<const double> p, Index k);
// 2 sum_i i p_(i) / (n sum p) - (n + 1) / n over ascending p: 0 for the uniform row, 1 - 1/n for a one-hot one.
double gini(std::span<const double> p);
// (sqrt n - |p|_1 / |p|_2) / (sqrt n - 1): 0 uniform, 1 one-hot; 0 for n = 1. Any sign.
double hoyer(std::span<const double> p);
// S = E|p| / sqrt(E p^2), the mean magnitude over the root mean square: 1 uniform, n^-1/2 one-hot; 0 for a row of
// zeros. Any sign. Su 2023, kexue.fm/archives/9889.
double mean_over_rms(std::span<const double> p);
// sum_j p_j |position - j|, tokens, for a row whose query is at that position. Its mean over rows is the required
// attention span of Tay et al. 2021, arXiv:2011.04006, section 2.3.
double attention_distance(std::span<const double> p, Index position);

// All these measures of one row, of its weights over their sum. A row with negative entries has no entropy, and a row
// of zeros is not a distribution. For such rows only the members that allow any sign have a meaning.
struct RowSparsity {
  enum class Kind { weights, negative, zero } kind = Kind::zero;
  double entropy = 0, effective_support = 0, inverse_participation = 0;
  double relative_entropy = 0, relative_support = 0;  // over the uniform row's: log seen and seen
  double top_mass = 0, sink_mass = 0, gini = 0, attention_distance = 0;
  double fraction_below = 0, hoyer = 0, mean_over_rms = 0;  // any sign
};
// p: a row of finite numbers for the query at `position`, which sees `seen` keys.
RowSparsity row_sparsity(std::span<const double> p, Index position, Index seen, Index top, double threshold);

}  // namespace attnbench
