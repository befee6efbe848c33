// A method that returns NaN, and an experiment that records NaN at one place of an array.
#include <limits>

#include "harness/experiment/experiment.hpp"
#include "tests/faults/fault.hpp"

namespace attnbench {
namespace {

const bool registered = add(faulty(
    "nan", [](Out<float> out) { out(0, 0) = std::numeric_limits<float>::quiet_NaN(); },
    [](Out<double> out) { out(0, 0) = std::numeric_limits<double>::quiet_NaN(); }));

const bool in_an_array = add(ExperimentEntry{
    .text = {.name = "nan-in-an-array",
             .summary = "an array of numbers, of which one is none",
             .formula = "none",
             .reference = "none",
             .cost = "none"},
    .parameters = {Parameter::integer("place", 0, "of what is not a number; beyond the array: there is none", 0)},
    .metrics = {{"before", "1", "1"}, {"numbers", "1", "8 of them"}},
    .headline = {.metric = "numbers", .label = "numbers"},
    .run =
        [](const Task& task, Recorder& record) {
          std::vector<double> numbers(8, 1.0);
          const auto place = static_cast<size_t>(task.cell.experiment.integer("place"));
          if (place < numbers.size()) numbers[place] = std::numeric_limits<double>::quiet_NaN();
          record.scalar("before", "1", 1);
          record.array("numbers", "1", {8}, std::move(numbers));
        },
});

}  // namespace
}  // namespace attnbench
