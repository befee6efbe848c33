// How concentrated the rows of a method's attention matrix are. methods.md I.
// A row with negative entries has no entropy: it is counted and left out of the means that need one.
#include "harness/measures/sparsity.hpp"

#include <cmath>

#include "harness/runner/experiment.hpp"
#include "harness/statistics/moments.hpp"

namespace attnbench {
namespace {

void measure(const Task& task, Recorder& record) {
  const auto applied = task.applied();
  const Matrix<double>& A = applied.attention;
  const Index n = A.cols(), top = task.cell.experiment.integer("top");
  const double threshold = 1 / (10 * static_cast<double>(n));
  Moments entropies, supports, participations, relative_supports, below, masses, ginis, hoyers;
  std::vector<double> entropy_rows;
  double negative = 0;
  for (Index i = 0; i < A.rows(); ++i) {
    const std::span<const double> p(A.data() + i * n, static_cast<size_t>(n));
    below.add(fraction_below(p, threshold));
    hoyers.add(hoyer(p));
    if (A.row(i).minCoeff() < 0) {
      ++negative;
      continue;
    }
    const double h = entropy(p);
    entropy_rows.push_back(h);
    entropies.add(h);
    supports.add(std::exp(h));
    participations.add(inverse_participation(p));
    const Index seen = task.cell.problem.shape.mask.visible(i, n);
    if (seen > 0) relative_supports.add(std::exp(h) / static_cast<double>(seen));
    masses.add(top_mass(p, top));
    ginis.add(gini(p));
  }
  record.scalar("fraction_below", "1", below.mean);
  record.scalar("hoyer", "1", hoyers.mean);
  record.scalar("rows_with_negative_entries", "1", negative / static_cast<double>(A.rows()));
  if (entropies.count == 0) return;
  record.scalar("entropy", "nat", entropies.mean);
  record.scalar("effective_support", "1", supports.mean);
  record.scalar("inverse_participation", "1", participations.mean);
  if (relative_supports.count > 0) record.scalar("relative_support", "1", relative_supports.mean);
  record.scalar("top_mass", "1", masses.mean);
  record.scalar("gini", "1", ginis.mean);
  const auto rows = static_cast<Index>(entropy_rows.size());
  record.array("entropy_rows", "nat", {rows}, std::move(entropy_rows));
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "sparsity",
             .summary = "entropy, effective support and other concentration of the attention rows",
             .formula = "exp(-sum_j A_ij log A_ij), share of A_ij < 1/(10 n), Gini, Hoyer, mass of the top k",
             .reference = "Hurley and Rickard 2009, arXiv:0811.4706, for Gini and Hoyer",
             .cost = "O(n^2) memory"},
    .parameters = {Parameter::integer("top", 32, "k of the top-k mass", 1)},
    .metrics = {{"entropy", "nat", "mean entropy of a row"},
                {"entropy_rows", "nat", "entropy of each row without negative entries"},
                {"effective_support", "1", "mean of exp(entropy): keys that a row attends to"},
                {"inverse_participation", "1", "mean of 1 / sum_j A_ij^2; at most the effective support"},
                {"relative_support", "1", "mean of exp(entropy) over the keys that the row sees; 1 is average pooling"},
                {"fraction_below", "1", "mean share of entries with |A_ij| < 1/(10 n)"},
                {"top_mass", "1", "mean mass of a row's k largest entries"},
                {"gini", "1", "mean Gini coefficient of a row: 0 uniform, 1 - 1/n one-hot"},
                {"hoyer", "1", "mean Hoyer sparsity of a row: 0 uniform, 1 one-hot"},
                {"rows_with_negative_entries", "1", "share of rows left out of entropy, support, top mass and Gini"}},
    .headline = {.metric = "effective_support", .label = "effective support exp(H)"},
    .matrices = [](const Params&) { return 3; },
    .run = measure,
});

}  // namespace
}  // namespace attnbench
