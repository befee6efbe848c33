// How far two methods differ on one input: whether an identity between them holds, or how well a limit is reached.
//   |out - out'|_F / |out'|_F,  |A - A'|_F / |A'|_F,  max |K_ij / K'_ij - 1|      primes: the method given by `with`
// Both are drawn with the random streams of the cell's replicate: methods that draw the same kind of vectors draw the
// same vectors, and differ only in how they use them. Kernels are compared before normalisation: a factor that the
// normalisation of a row would cancel counts as a difference.
#include <cmath>
#include <limits>

#include "harness/errors/error.hpp"
#include "harness/experiment/experiment.hpp"

namespace attnbench::agreement_experiment {
namespace {

Params other_method(const Params& experiment) { return experiment.all_nested("with").front(); }

void refuse_several(const Cell& cell) {
  const size_t given = cell.experiment.all_nested("with").size();
  if (given != 1)
    throw Misuse("agreement: with names " + std::to_string(given) +
                 " methods; expected one, such as agreement:[performer:m=64]");
}

std::string no_matrix(const Cell& cell) {
  return find<MethodEntry>(cell.method.name()).claims(cell.method, cell.problem.shape).no_attention_matrix;
}

double relative_difference(const Matrix<double>& X, const Matrix<double>& of, const std::string& method) {
  const double norm = of.norm();
  if (norm == 0) throw Skip(method + " gives 0: there is no difference relative to it");
  return (X - of).norm() / norm;
}

// log |K_ij| and its sign, without overflow.
struct LogKernel {
  Matrix<double> sign, log;  // nq x nk
};
LogKernel log_kernel(const Task& task, const Kernel<double>& kernel) {
  const auto exact = task.exact.get(task.cell, task.replicate);
  const Index nq = exact->head.Q.rows(), nk = exact->head.K.rows();
  Matrix<double> block(nq, nk);
  std::vector<double> log_rows(static_cast<size_t>(nq)), log_columns(static_cast<size_t>(nk));
  kernel.kernel(exact->head.view(), task.context, block, log_rows, log_columns);
  LogKernel all{block.array().sign(), block.array().abs().log()};
  for (Index i = 0; i < nq; ++i)
    for (Index j = 0; j < nk; ++j)
      all.log(i, j) += log_rows[static_cast<size_t>(i)] + log_columns[static_cast<size_t>(j)];
  return all;
}

// The maximum over the pairs that the mask allows; infinite if the other kernel is 0 at one of them.
double largest_kernel_difference(const LogKernel& kernel, const LogKernel& of, const Shape& shape) {
  double largest = 0;
  for (Index i = 0; i < shape.nq; ++i)
    for (Index j = 0; j < shape.mask.visible(i, shape.nk); ++j) {
      const double sign = kernel.sign(i, j) * of.sign(i, j);
      if (of.sign(i, j) == 0) return std::numeric_limits<double>::infinity();
      largest = std::max(largest, std::abs(sign * std::exp(kernel.log(i, j) - of.log(i, j)) - 1));
    }
  return largest;
}

void measure(const Task& task, Recorder& record) {
  Cell cell = task.cell;
  cell.method = other_method(task.cell.experiment);
  const Task other{cell, task.replicate, task.context, task.exact, task.doing};
  const std::string name = cell.method.spec();
  const bool matrices = no_matrix(task.cell).empty() && no_matrix(cell).empty();
  const auto output_difference = [&](const Matrix<double>& out, const Matrix<double>& of) {
    record.scalar("relative_output_difference", "1", relative_difference(out, of, name));
  };
  if (matrices) {
    const auto ours = task.applied(), theirs = other.applied();
    output_difference(ours.output, theirs.output);
    record.scalar("relative_difference", "1", relative_difference(ours.attention, theirs.attention, name));
    record.scalar("largest_difference", "1", (ours.attention - theirs.attention).cwiseAbs().maxCoeff());
  } else {
    record.note(task.cell.method.spec() + " or " + name + " has no attention matrix: their outputs alone are compared");
    output_difference(task.output(), other.output());
  }
  const auto method = task.method<double>(0, task.replicate), with = other.method<double>(0, task.replicate);
  if (!method->kernel() || !with->kernel()) return;
  const double largest = largest_kernel_difference(log_kernel(task, *method->kernel()),
                                                   log_kernel(other, *with->kernel()), task.cell.problem.shape);
  if (std::isfinite(largest)) record.scalar("largest_kernel_difference", "1", largest);
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "agreement",
             .summary = "how far a method differs from another one on the same input, with the same random vectors",
             .formula = "|A - A'|_F / |A'|_F, |out - out'|_F / |out'|_F, max |K_ij / K'_ij - 1|",
             .reference = "none: for identities between methods",
             .cost = "O(n^2) memory; both methods once"},
    .parameters = {Parameter::specs("with", "[softmax]", "the method that it is compared with", "methods")},
    .metrics =
        {{"relative_difference", "1", "|A - A'|_F / |A'|_F", {}, "|A' - A| / |A|", "log10"},
         {"relative_output_difference",
          "1",
          "|out - out'|_F / |out'|_F",
          {},
          "distance to the mean of V, over its norm",
          "log10"},
         {"largest_difference", "1", "max |A_ij - A'_ij|", {}, "max |A' - A|, A of hard VQ", "log10"},
         {"largest_kernel_difference",
          "1",
          "max |K_ij / K'_ij - 1| over visible pairs, before normalisation and in double; of kernels without zeros",
          {},
          "1 - (1 + elu(x)) / exp(x)",
          "log10"}},
    .headline = {.metric = "relative_difference", .label = "|A - A'| / |A'|  (Frobenius)"},
    .check = refuse_several,
    .bytes = [](const Cell& cell) { return 6 * matrix_bytes(cell); },
    .run = measure,
});

}  // namespace
}  // namespace attnbench::agreement_experiment
