// Claims on what random rows are made of (harness/core/estimates.hpp), over draws:
//   mean-weights  E D^ = sum_j exp(q.k_j) and E N^ = sum_j exp(q.k_j) v_j: sampled weights are unbiased
//   mean-rows     E N^/D^ = o, where D^ does not vary, and E attend = o of methods that claim unbiased rows
//   sampling-law  E |D^ - D|^2, E |N^ - N|^2, and E |o^ - o|^2 where D^ does not vary, are those of the declared law
//   mean-logits   estimated logits have the mean q.k. Their exponentials then have a larger one: this claim is not that
//                 of the weights
#pragma once

#include "harness/claims/drawing.hpp"
#include "harness/claims/over_draws.hpp"

namespace attnbench {

// In units of D, of D times the largest value, of the largest value, and of |q| |k|; and of the law's own errors.
constexpr double least_mean_error = 0.02, least_law_error = 0.05;

// The numbers of a draw for the queries of a head: sums in units of the exact D, and logits or rows if it
// estimates them.
struct DrawnEstimates {
  Matrix<double> numerators;         // nq x dv
  std::vector<double> denominators;  // nq
  Matrix<double> logits;             // nq x nk, or empty
  Matrix<double> rows;               // nq x dv, the output of attend, or empty
};

struct EstimateTest {
  DrawnNumber number;
  std::function<double(const DrawnEstimates&)> of_draw;
};

struct EstimatePlan {
  Drawing drawing;
  Probe probe;
  std::vector<double> log_sums;  // log D of each query
  std::vector<EstimateTest> tests;
};

// A head without a causal mask and with padding, and one with a causal mask whose rows see few keys.
struct EstimatePlans {
  std::vector<EstimatePlan> plans;
  std::string reason;   // why nothing is tested
  bool failed = false;  // the reason is an error of its law, not a refusal
  double tests() const;
};
// The method draws 8 keys or its own budget, if that is smaller or its draws are dependent. The heads are made longer
// for a method that adds all keys of the short ones exactly.
EstimatePlans plan_estimate_claims(const Subject& subject, std::uint64_t seed);

// threshold: on |z|, for the whole family. work: the limit, like default_work.
ClaimResults test_estimate_claims(const EstimatePlans& plans, double threshold, double work, Context& context);

// The names of these claims, with one-line meanings.
const std::vector<std::pair<std::string, std::string>>& estimate_claims();

}  // namespace attnbench
