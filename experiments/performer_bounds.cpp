// Both sides of Performer's Theorems 1 and 2 for positive features, from closed forms only (methods.md B).
//   Theorem 1:  SMREG / SM >= 1 - 2 / d^(1/3) + o(d^(-1/3)),  SMREG the kernel of directions whose norms are sqrt(d)
//   Theorem 2:  MSE_iid - MSE_ort >= 2 (m - 1) / (m (d + 2)) (SM - exp(-(|q|^2 + |k|^2) / 2))^2,  m <= d
// In units of SM = exp(q.k), where the last factor is 1 - exp(-|q + k|^2 / 2).
#include <cmath>

#include "harness/errors/error.hpp"
#include "harness/experiment/experiment.hpp"

namespace attnbench::performer_bounds_experiment {
namespace {

void refuse_other_methods(const Cell& cell) {
  if (cell.method.name() != "performer" || cell.method.text("features") != "positive")
    throw Misuse("performer-bounds with --method " + cell.method.spec() +
                 ": expected a performer with features=positive");
  if (cell.method.integer("m") > cell.problem.shape.d)
    throw Misuse("performer-bounds: the theorem is of m <= d projection vectors; give a smaller m or a larger d");
}

KernelTheory theory_with(const Task& task, const std::string& projection) {
  const Params method("methods", "performer:m=" + task.cell.method.text("m") + ",projection=" + projection);
  return *find<MethodEntry>("performer").theory(method, task.cell.problem.shape, nullptr);
}

void measure(const Task& task, Recorder& record) {
  const auto head = draw_cell_head(task.cell, task.replicate, 0, Purpose::measured);
  const auto width = static_cast<size_t>(head.Q.cols());
  const Pair pair = pair_of({head.Q.data(), width}, {head.K.data(), width});
  const auto m = static_cast<double>(task.cell.method.integer("m")), d = static_cast<double>(width);
  const double unit = pair.softmax() * pair.softmax();
  const double independent = theory_with(task, "iid").variance(pair) / unit;
  const double orthogonal = theory_with(task, "orthogonal").variance(pair) / unit;
  const double share = -std::expm1(-pair.plus2() / 2);
  record.scalar("orthogonal_gain", "1", independent - orthogonal);
  record.scalar("orthogonal_gain_bound", "1", 2 * (m - 1) / (m * (d + 2)) * share * share);
  record.scalar("regularised_ratio", "1", theory_with(task, "orthogonal-fixed-norm").mean(pair) / pair.softmax());
  record.scalar("regularised_ratio_bound", "1", 1 - 2 / std::cbrt(d));
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "performer-bounds",
             .summary = "both sides of Performer's Theorems 1 and 2, for the first query and key",
             .formula = "(MSE_iid - MSE_ort) / SM^2 and SMREG / SM beside the bounds that the theorems give",
             .reference = "Choromanski et al. 2020, arXiv:2009.14794, Theorems 1 and 2",
             .cost = "closed forms: nothing is drawn but the input"},
    .parameters = {},
    .metrics = {{"orthogonal_gain",
                 "1",
                 "(MSE_iid - MSE_ort) / exp(q.k)^2, for the method's m",
                 {},
                 "(MSE_iid - MSE_ort) / exp(q.k)^2",
                 "log10"},
                {"orthogonal_gain_bound", "1", "what Theorem 2 says that it is at least"},
                {"regularised_ratio",
                 "1",
                 "SMREG / SM: what features with norms sqrt(d) estimate, over exp(q.k)",
                 {},
                 "SMREG / SM"},
                {"regularised_ratio_bound", "1", "1 - 2 / d^(1/3): Theorem 1 without its o(d^(-1/3))"}},
    .headline = {.metric = "orthogonal_gain",
                 .label = "(MSE_iid - MSE_ort) / exp(q.k)^2",
                 .theory = "orthogonal_gain_bound"},
    .check = refuse_other_methods,
    .run = measure,
});

}  // namespace
}  // namespace attnbench::performer_bounds_experiment
