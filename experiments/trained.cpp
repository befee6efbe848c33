// The training tasks of scripts/train as an input of the experiment `training`, which reads what models reached there.
// A task draws no heads: its models are trained outside of this program.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "experiments/trained_rows.hpp"
#include "harness/errors/error.hpp"
#include "harness/inputs/captured_heads.hpp"

namespace attnbench::trained_experiment {

namespace {

HeadData<double> draw(const Params& params, const InputRequest&) {
  throw Misuse(
      fmt::format("{} is a task that models were trained on, and draws no heads; give it to the experiment training, "
                  "or another input, such as --input model",
                  params.spec()));
}

// A task without rows has no limits, so that recipes can ask for it before it was trained.
InputLimits limits(const Params& params) {
  InputLimits all;
  std::set<std::string> tasks;
  for (const TrainedRow& row : trained_rows()) {
    tasks.insert(row.task);
    if (row.task != params.text("task")) continue;
    all.queries = all.keys = row.n;
    all.d = all.dv = row.d;
    all.replicates = std::max(all.replicates, row.seed);
  }
  return all;
}

const bool registered = add(InputEntry{
    .text = {.name = "trained",
             .summary = "a task that models were trained on: for the experiment training",
             .formula = "replicate r is the model that was trained with seed r + 1",
             .reference = "scripts/train/train.py, experiments/trained/README.md",
             .cost = "rows are read from a file; nothing is trained",
             .family = "file"},
    .parameters = {Parameter::text("task", "bytes",
                                   "a task of scripts/train: copying, bytes, masked, recall or recovery")},
    .draw = draw,
    .limits = limits,
    .content = [](const Params&) { return content_hash(trained_rows_file()); },
    .place =
        [](const Params& params) {
          return InputPlace{params.spec(), "", "seed"};
        },
    .has_calibration = false,
});

}  // namespace

}  // namespace attnbench::trained_experiment
