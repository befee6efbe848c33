// The loss of a model that is trained with a method in place of attention, as scripts/train recorded it.
//   loss = mean of -log2 p(byte) over the bytes of held-out texts that the task counts
// The models are trained in PyTorch, and each attention was held to the C++ method of its name on its own trained q, k
// and v (engine_difference); a row that failed this, or whose loss became NaN, ends as failed. This experiment trains
// nothing: it reads the recorded rows, so that figures, verdicts and the page show them like any others.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>

#include "experiments/trained_rows.hpp"
#include "harness/experiment/experiment.hpp"

namespace attnbench::training {
namespace {

std::string task_of(const Cell& cell) {
  if (cell.input.name() != "trained")
    throw Misuse(fmt::format("training: {} is no task that models were trained on; give --input trained:task=copying",
                             cell.input.spec()));
  return cell.input.text("task");
}

void check(const Cell& cell) {
  const std::string task = task_of(cell);
  for (const TrainedRow& row : trained_rows()) {
    if (row.task != task) continue;
    if (row.causal != cell.problem.shape.mask.causal)
      throw Misuse(fmt::format("training: models were trained on {} {}; give {}", task,
                               row.causal ? "causally" : "bidirectionally",
                               row.causal ? "--causal" : "--bidirectional"));
    if (row.n != cell.problem.shape.nk)
      throw Misuse(
          fmt::format("training: models were trained on {} with {} tokens, and n={} was asked for; leave out n", task,
                      row.n, cell.problem.shape.nk));
    return;
  }
}

void measure(const Task& task, Recorder& record) {
  const Cell& cell = task.cell;
  const std::string name = task_of(cell);
  const Index redraw = cell.experiment.integer("redraw"), seed = task.replicate + 1;
  const auto& rows = trained_rows();
  const auto row = std::ranges::find_if(rows, [&](const TrainedRow& one) {
    return one.task == name && one.method == cell.method.spec() && one.redraw == redraw && one.seed == seed;
  });
  if (row == rows.end())
    throw Skip(fmt::format(
        "no model is recorded that was trained on {} with {} and seed {}; train one: scripts/train/train.py --task {} "
        "--attention {} --seeds {}{}",
        name, cell.method.spec(), seed, name, cell.method.spec(), seed,
        redraw > 0 ? fmt::format(" --redraw {}", redraw) : ""));
  if (!row->done) throw std::runtime_error(row->reason);
  for (const Metric& metric : find<ExperimentEntry>("training").metrics)
    if (const auto number = row->numbers.find(metric.name); number != row->numbers.end())
      record.scalar(metric.name, metric.unit, number->second);
    else if (const auto array = row->arrays.find(metric.name); array != row->arrays.end())
      record.array(metric.name, metric.unit, {std::ssize(array->second)}, array->second);
}

// The seeds that every one of these cells has a row for.
Index recorded(const std::vector<Cell>& cells) {
  std::map<std::string, std::vector<std::pair<std::string, Index>>> by_task;
  for (const Cell& cell : cells)
    by_task[task_of(cell)].emplace_back(cell.method.spec(), cell.experiment.integer("redraw"));
  Index seeds = std::numeric_limits<Index>::max();
  for (const auto& [task, attentions] : by_task) seeds = std::min(seeds, trained_seeds(task, attentions));
  return seeds;
}

// How many seeds the cells have, when and where the rows of their tasks were recorded, and how to train one.
std::string as_recorded(const std::vector<Cell>& cells, Index seeds) {
  std::set<std::string> tasks, days, processors, versions;
  for (const Cell& cell : cells) tasks.insert(task_of(cell));
  size_t rows = 0;
  for (const TrainedRow& row : trained_rows()) {
    if (!tasks.contains(row.task)) continue;
    ++rows;
    days.insert(row.finished.substr(0, 10));
    processors.insert(row.processor);
    versions.insert(row.torch);
  }
  const std::string command =
      fmt::format("scripts/train/train.py --task {} --attention softmax trains one", *tasks.begin());
  if (rows == 0) return fmt::format("no row is recorded yet: not decided ({})", command);
  return fmt::format("{} seed{}, {} recorded rows, trained {} on {} with PyTorch {} ({})", seeds, seeds == 1 ? "" : "s",
                     rows,
                     days.size() == 1 ? *days.begin() : fmt::format("from {} to {}", *days.begin(), *days.rbegin()),
                     fmt::join(processors, ", "), fmt::join(versions, ", "), command);
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "training",
             .summary = "the loss of a model that was trained with a method as its attention, as recorded",
             .formula = "mean of -log2 p over the held-out bytes that the task counts",
             .reference = "scripts/train/train.py, experiments/trained/README.md",
             .cost = "a row is read from a file"},
    .parameters = {Parameter::integer("redraw", 0, "training steps between draws of random features; 0: one draw", 0)},
    .metrics =
        {{"held_out_bits", "bit", "bits of each held-out byte that counts, after the last step, mean over texts"},
         {"accuracy", "1", "share of these bytes that the model finds most probable"},
         {"bits_by_text", "bit", "held_out_bits of each text"},
         {"first_bits_by_text", "bit", "the same before the first step"},
         {"curve", "bit", "held_out_bits during training, at the steps of curve_steps", {}, "bits of a held-out byte"},
         {"curve_steps", "1", "steps done at the points of the curve"},
         {"engine_difference", "1",
          "largest relative difference of a layer's outputs to those of the C++ method, on the trained q, k and "
          "v of a held-out text, in double"},
         {"training_seconds", "s", "seconds of the training steps, beside other work"}},
    .headline = {.metric = "held_out_bits", .label = "bits of a held-out byte"},
    .check = check,
    .work = [](const Cell&) { return Work{}; },
    .run = measure,
    .usual_precision = Precision::f32,
    .recorded = recorded,
    .remark = as_recorded,
    .whole_model = true,
});

}  // namespace
}  // namespace attnbench::training
