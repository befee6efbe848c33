// Bias, variance and mean squared error of a method's estimate of the kernel it targets, over many draws, with the
// closed form beside it. methods.md A, B. Everything is relative to the target, pair by pair, in double.
#include <algorithm>
#include <cmath>

#include "harness/runner/experiment.hpp"
#include "harness/statistics/moments.hpp"

namespace attnbench {
namespace {

constexpr Index batches =
    64;  // draws are kept as moments of 64 batches: intervals and tails can be had from them later

// Evenly spaced tokens of the head: pair p is (q_i, k_i) for i = p n / pairs.
HeadData<double> chosen_pairs(const HeadData<double>& head, Index pairs) {
  HeadData<double> chosen{Matrix<double>(pairs, head.Q.cols()), Matrix<double>(pairs, head.K.cols()),
                          Matrix<double>::Zero(pairs, 1)};
  for (Index p = 0; p < pairs; ++p) {
    chosen.Q.row(p) = head.Q.row(p * head.Q.rows() / pairs);
    chosen.K.row(p) = head.K.row(p * head.K.rows() / pairs);
  }
  return chosen;
}

std::vector<Pair> geometry(const HeadData<double>& head) {
  std::vector<Pair> pairs;
  for (Index p = 0; p < head.Q.rows(); ++p)
    pairs.push_back(
        {head.Q.cols(), head.Q.row(p).squaredNorm(), head.K.row(p).squaredNorm(), head.Q.row(p).dot(head.K.row(p))});
  return pairs;
}

// estimate / target of each pair for each draw, as moments of batches: [pairs][batch].
std::vector<std::vector<Moments>> sample(const Task& task, const HeadData<double>& head,
                                         const std::vector<double>& log_targets, Index draws) {
  const auto pairs = static_cast<size_t>(head.Q.rows());
  std::vector<std::vector<Moments>> ratios(pairs, std::vector<Moments>(batches));
  Matrix<double> block(head.Q.rows(), head.K.rows());
  std::vector<double> log_rows(pairs), log_columns(pairs);
  for (Index t = 0; t < draws; ++t) {
    const auto method = task.method<double>(0, task.replicate * draws + t);
    method->kernel()->kernel(head.view(), task.context, block, log_rows, log_columns);
    for (size_t p = 0; p < pairs; ++p) {
      const auto i = static_cast<Index>(p);
      ratios[p][static_cast<size_t>(t * batches / draws)].add(block(i, i) *
                                                              std::exp(log_rows[p] + log_columns[p] - log_targets[p]));
    }
  }
  return ratios;
}

void measure(const Task& task, Recorder& record) {
  const auto theory_of = find<MethodEntry>(task.cell.method.name()).theory(task.cell.method, task.cell.problem.shape, nullptr);
  if (!theory_of) throw Skip(task.cell.method.spec() + " declares no kernel that it estimates");
  const Index draws = task.cell.experiment.integer("draws");
  const auto whole = draw_cell_head(task.cell, task.replicate, 0, Purpose::measured);
  const Index count = std::min({task.cell.experiment.integer("pairs"), whole.Q.rows(), whole.K.rows()});
  const auto head = chosen_pairs(whole, count);
  const auto pairs = geometry(head);
  std::vector<double> log_targets;
  for (const auto& pair : pairs) log_targets.push_back(std::log(theory_of->mean(pair)));

  const auto ratios = sample(task, head, log_targets, draws);
  std::vector<double> norms, bias, bias_error, mse, mse_error, theory, kept;
  Moments biases, variances, errors, theories, shares;
  for (size_t p = 0; p < pairs.size(); ++p) {
    Moments all;
    for (const auto& batch : ratios[p]) {
      all.merge(batch);
      kept.insert(kept.end(), {batch.count, batch.mean, batch.m2, batch.m3, batch.m4, batch.share_of_largest()});
    }
    norms.push_back(pairs[p].plus2());
    bias.push_back(all.mean - 1);
    bias_error.push_back(all.standard_error());
    mse.push_back(all.m2 / all.count + (all.mean - 1) * (all.mean - 1));
    mse_error.push_back(all.variance_standard_error());
    biases.add(bias.back());
    variances.add(all.variance());
    errors.add(mse.back());
    shares.add(all.share_of_largest());
    if (theory_of->variance) {
      const double mean = theory_of->mean(pairs[p]);
      theory.push_back(theory_of->variance(pairs[p]) / (mean * mean));
      theories.add(theory.back());
    }
  }
  record.scalar("relative_bias", "1", biases.mean);
  record.scalar("relative_variance", "1", variances.mean);
  record.scalar("relative_mse", "1", errors.mean);
  if (!theory.empty()) record.scalar("relative_mse_theory", "1", theories.mean);
  record.scalar("share_of_largest", "1", shares.mean);
  record.array("pair_plus_norm2", "1", {count}, std::move(norms));
  record.array("pair_bias", "1", {count}, std::move(bias));
  record.array("pair_bias_standard_error", "1", {count}, std::move(bias_error));
  record.array("pair_mse", "1", {count}, std::move(mse));
  record.array("pair_mse_standard_error", "1", {count}, std::move(mse_error));
  if (!theory.empty()) record.array("pair_mse_theory", "1", {count}, std::move(theory));
  record.array("batches", "1", {count, batches, 6}, std::move(kept));
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "kernel-error",
             .summary = "bias, variance and MSE of the kernel estimate over draws, with the closed form",
             .formula = "E (K'_ii / K_ii - 1)^2 over draws, pairs (q_i, k_i) evenly spaced over the head",
             .reference = "Choromanski et al. 2020, arXiv:2009.14794, Lemma 2 and Theorem 2",
             .cost = "draws x (one construction + pairs x features)"},
    .parameters = {Parameter::integer("draws", 4096, "draws of the method in each replicate", 64),
                   Parameter::integer("pairs", 16, "pairs (q_i, k_i)", 1, 4096)},
    .metrics = {{"relative_bias", "1", "mean over pairs of E K' / K - 1"},
                {"relative_variance", "1", "mean over pairs of Var K' / K^2"},
                {"relative_mse", "1", "mean over pairs of E (K' / K - 1)^2"},
                {"relative_mse_theory", "1", "its closed form, where one is known"},
                {"share_of_largest", "1",
                 "share of the largest draw in the sum of draws: near 1, nothing is estimable"},
                {"pair_plus_norm2", "1", "|q + k|^2 of each pair"},
                {"pair_bias", "1", "E K' / K - 1 of each pair"},
                {"pair_bias_standard_error", "1", "its standard error"},
                {"pair_mse", "1", "E (K' / K - 1)^2 of each pair"},
                {"pair_mse_standard_error", "1", "its standard error, from the fourth moment"},
                {"pair_mse_theory", "1", "its closed form"},
                {"batches", "1",
                 "[pairs, 64, 6]: count, mean, sums of squared, cubed and fourth deviations, and share of "
                 "the largest, of K' / K in 64 batches of draws"}},
    .headline = {.metric = "relative_mse", .label = "relative MSE  E (K'/K - 1)^2", .theory = "relative_mse_theory"},
    .run = measure,
});

}  // namespace
}  // namespace attnbench
