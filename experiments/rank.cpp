// The spectrum of a method's attention matrix: numerical, stable and effective rank. methods.md I.
// Ranks are of the matrix in double, with the tolerance stated: a float matrix has another numerical rank.
#include "harness/linalg/spectrum.hpp"
#include "harness/measures/spectrum.hpp"
#include "harness/runner/experiment.hpp"

namespace attnbench {
namespace {

constexpr Index largest_dense = 4096;

void measure(const Task& task, Recorder& record) {
  const auto& shape = task.cell.problem.shape;
  if (std::max(shape.nq, shape.nk) > largest_dense)
    throw Skip("the dense spectrum is computed up to n = " + std::to_string(largest_dense));
  if (shape.precision == Precision::f32)
    throw Skip("ranks are of the matrix in double: rounding to float raises or lowers them; use --precision f64");
  const auto applied = task.applied();
  auto sigma = singular_values(applied.attention);
  const double tolerance = rank_tolerance(sigma, shape.nq, shape.nk);
  const auto n = static_cast<Index>(sigma.size());
  record.scalar("numerical_rank", "1", static_cast<double>(numerical_rank(sigma, tolerance)));
  record.scalar("rank_tolerance", "1", tolerance);
  record.scalar("stable_rank", "1", stable_rank(sigma));
  record.scalar("participation_ratio", "1", participation_ratio(sigma));
  record.scalar("effective_rank", "1", effective_rank(sigma));
  record.scalar("effective_rank_squared", "1", effective_rank(sigma, 2));
  record.scalar("spectral_norm", "1", sigma.front());
  record.array("cumulative_spectrum", "1", {n}, cumulative_spectrum(sigma));
  record.array("singular_values", "1", {n}, std::move(sigma));
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "rank",
             .summary = "singular values and ranks of the attention matrix",
             .formula = "sigma(A); rank = #{sigma_i > sigma_1 n eps}, effective rank = exp H(sigma / sum sigma)",
             .reference = "Roy and Vetterli 2007; Wang et al. 2020, arXiv:2006.04768, Fig. 1",
             .cost = "O(n^3), n up to 4096"},
    .parameters = {},
    .metrics = {{"singular_values", "1", "all of them, largest first"},
                {"cumulative_spectrum", "1", "sum of the first k over the sum of all, k = 1..n"},
                {"numerical_rank", "1", "singular values above rank_tolerance"},
                {"rank_tolerance", "1", "sigma_1 max(nq, nk) 2.2e-16"},
                {"stable_rank", "1", "|A|_F^2 / |A|_2^2"},
                {"participation_ratio", "1", "(sum sigma^2)^2 / sum sigma^4"},
                {"effective_rank", "1", "exp of the entropy of sigma / sum sigma"},
                {"effective_rank_squared", "1", "exp of the entropy of sigma^2 / sum sigma^2"},
                {"spectral_norm", "1", "sigma_1"}},
    .headline = {.metric = "effective_rank", .label = "effective rank"},
    .matrices = [](const Params&) { return 4; },
    .run = measure,
});

}  // namespace
}  // namespace attnbench
