// A function over cells that sums a curve over all sizes when only some of them are measured.
#include "harness/runner/cells_function.hpp"
#include "harness/statistics/power_law_between.hpp"

namespace attnbench {
namespace {

// Arguments: a number, its size, and the last size.
double sum_over_sizes(const CellsFunction::Columns& of) {
  const PowerLawBetween number(of[0], of[1]);
  double sum = 0;
  for (double size = 1; size <= of[2].at(0); ++size) sum += number.at(size);
  return sum;
}

const bool registered = add(CellsFunction{
    .text = {.name = "sum_over_sizes",
             .summary = "the sum of a number over the sizes 1 to a last one, by power laws between its sizes: (number, "
                        "size, the last size)"},
    .arguments = 3,
    .value = sum_over_sizes});

}  // namespace
}  // namespace attnbench
