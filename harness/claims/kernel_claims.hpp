// Claims on the kernel estimate K(q, k) of one pair, over draws:
//   exact-pairs  where the closed form of the variance is 0, every draw gives the mean
//   unbiased     E K = mean, for one pair at a time, in units of sqrt(mean(q, q) mean(k, k)), the kernel's own scale
//   variance     E (K - mean)^2 / variance = 1, averaged over the directions of a kind of pair
#pragma once

#include "harness/claims/drawing.hpp"
#include "harness/claims/over_draws.hpp"
#include "harness/claims/pairs.hpp"

namespace attnbench {

constexpr double least_bias = 0.02, least_far_bias = 0.1, least_variance_error = 0.1;
// A number of each draw, and the pairs that it averages over.
struct KernelTest {
  DrawnNumber number;
  Index first, count;
};

// The tests in one dimension.
struct KernelPlan {
  Drawing drawing;
  Pairs pairs;
  Extras extras;                    // what the method needs beside the pairs, of each
  std::vector<double> mean, scale;  // of each pair: closed form and natural scale
  std::vector<double> variance;     // empty: no closed form
  std::vector<KernelTest> tests;    // statistical
  std::vector<Index> exact;         // pairs of variance 0
};

// Closed forms and pairs in each dimension, at m = 2 d + d / 2 projection vectors (full blocks and a partial one) or at
// the spec's m if that is smaller; with asked_budget also at the spec's own m in 16 dimensions. Otherwise the reason
// why the kernel's claims cannot be tested.
struct KernelPlans {
  std::vector<KernelPlan> plans;
  std::string reason;
  bool failed = false;    // the reason is an error, not a refusal
  std::string unclaimed;  // why its mean is not claimed: its bias is then measured and not judged
  double tests() const;   // number of statistical tests that are judged, for the family's threshold
};
KernelPlans plan_kernel_claims(const Subject& subject, std::uint64_t seed, bool asked_budget = false);

// threshold: on |z|, for the whole family. work: the limit, like default_work.
ClaimResults test_kernel_claims(const KernelPlans& plans, double threshold, double work, Context& context);

}  // namespace attnbench
