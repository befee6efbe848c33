#include "harness/experiment/work.hpp"

#include <algorithm>

#include "harness/experiment/experiment.hpp"

namespace attnbench {

namespace {

Work operator*(double times, const Work& work) { return {times * work.flops, times * work.exps}; }

Work work_at(const Cell& cell, const Shape& shape) {
  return find<MethodEntry>(cell.method.name()).cost(cell.method, shape);
}

// Decomposing nk x k numbers takes nk k min(nk, k) multiply-adds. A matrix with as many columns as A is A itself, and
// reading it off takes a call with V = I.
Work work_of_matrices(const Cell& cell) {
  Shape shape = cell.problem.shape;
  const auto n = static_cast<double>(shape.nk);
  const double columns = find<ExperimentEntry>(cell.experiment.name()).bytes(cell) / (sizeof(double) * n);
  Work work{n * columns * std::min(n, columns), n * columns};
  if (columns >= n) {
    shape.dv = shape.nk;
    work += work_at(cell, shape);
  }
  return work;
}

}  // namespace

Work work_of_call(const Cell& cell) { return work_at(cell, cell.problem.shape); }

Work work_of_layers(const Cell& cell, Index layers) {
  const auto& shape = cell.problem.shape;
  const auto nq = static_cast<double>(shape.nq), nk = static_cast<double>(shape.nk),
             width = static_cast<double>(shape.d + shape.dv);
  Work layer = work_of_call(cell);
  layer += Work{2 * nq * nk * width, nq * nk};  // the exact counterpart
  layer += work_of_matrices(cell);
  return static_cast<double>(layers) * layer;
}

// A draw generates random vectors, orthogonalises them, and computes the features of its pairs.
Work work_of_draws(const Cell& cell, Index draws, Index pairs) {
  Shape shape = cell.problem.shape;
  const auto claims = find<MethodEntry>(cell.method.name()).claims(cell.method, shape);
  const auto features = static_cast<double>(claims.rank_at_most.value_or(shape.d)), d = static_cast<double>(shape.d);
  shape.nq = shape.nk = pairs;
  Work draw = work_at(cell, shape);
  draw += {4 * features * d * d, exponentials_of_a_normal * features * d};
  return static_cast<double>(draws) * draw;
}

}  // namespace attnbench
