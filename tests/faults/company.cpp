// An experiment that calls its method once, says in what company its cell is done, and claims as much memory as it is
// told to.
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

#include "harness/experiment/experiment.hpp"
#include "harness/machine/resources.hpp"

namespace attnbench {
namespace {

double workers_of_the_runner() {
  const pid_t runner = getppid();
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", runner));
  double count = 0;
  for (pid_t child = 0; children >> child;) ++count;
  return count;
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "company",
             .summary = "the threads that a cell has, and the workers there are while it is done",
             .formula = "none",
             .reference = "none",
             .cost = "none"},
    .parameters = {Parameter::real("share", 0, "of the machine's memory that it claims to take", 0, 0.8)},
    .metrics = {{"cell_threads", "1", "threads"}, {"workers", "1", "the runner's children"}},
    .headline = {.metric = "workers", .label = "workers"},
    .bytes = [](const Cell& cell) { return cell.experiment.real("share") * total_memory(); },
    .run =
        [](const Task& task, Recorder& record) {
          task.output();
          record.scalar("cell_threads", "1", task.context.threads());
          record.scalar("workers", "1", workers_of_the_runner());
        },
});

}  // namespace
}  // namespace attnbench
