// Records the attention matrix of a method, and its difference to the exact one, as arrays for figures.
#include <fmt/format.h>

#include "harness/errors/error.hpp"
#include "harness/experiment/experiment.hpp"

namespace attnbench::attention_map_experiment {
namespace {

// A page cannot show an image of more tokens, and every replicate would store megabytes.
constexpr Index most_tokens = 256;

void refuse_more_than_a_page_shows(const Cell& cell) {
  const auto& shape = cell.problem.shape;
  if (std::max(shape.nq, shape.nk) > most_tokens)
    throw Misuse(
        fmt::format("attention-map: n={} is finer than a page can show and is stored entry by entry; expected "
                    "at most {}; give a smaller n, or measure rows with sparsity and errors with "
                    "attention-error",
                    std::max(shape.nq, shape.nk), most_tokens));
}

void measure(const Task& task, Recorder& record) {
  const Matrix<double> A = task.applied().attention;
  const Matrix<double> difference = A - task.exact.get(task.cell, task.replicate)->attention();
  const auto store = [&](const char* name, const Matrix<double>& X) {
    record.array(name, "1", {X.rows(), X.cols()}, {X.data(), X.data() + X.size()});
  };
  store("attention", A);
  store("difference", difference);
  record.scalar("largest_difference", "1", difference.cwiseAbs().maxCoeff());
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "attention-map",
             .summary = "the attention matrix itself, and its difference to the exact one, as images",
             .formula = "A', A' - A",
             .reference = "none: for the eye",
             .cost = "16 n^2 bytes stored; n up to 256"},
    .parameters = {},
    .metrics = {{"attention", "1", "A', nq x nk: row i is query i"},
                {"difference", "1", "A' - A, where A is softmax's"},
                {"largest_difference", "1", "max |A'_ij - A_ij|", {}, "max |A' - A|, A of hard VQ", "log10"}},
    .headline = {.metric = "largest_difference", .label = "max |A' - A|"},
    .check = refuse_more_than_a_page_shows,
    .bytes = [](const Cell& cell) { return 4 * matrix_bytes(cell); },
    .run = measure,
});

}  // namespace
}  // namespace attnbench::attention_map_experiment
