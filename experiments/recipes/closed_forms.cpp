#include "experiments/recipes/closed_forms.hpp"

#include <fmt/format.h>

namespace attnbench {

std::string name_of(const Cells& one) {
  const Cell cell = one.all().front().run;
  return fmt::format("{} on {}, d = {}", cell.method.spec(), cell.input.spec(), cell.problem.shape.d);
}

std::string draws_of_a_pair(Index draws) {
  return fmt::format("kernel-error:draws={},pairs=1,precision=0,by_pair=false", draws);
}

Finding on_closed_forms(const Recipe& recipe, const Cells& cells, double resolution) {
  std::vector<Comparison> comparisons;
  for (const Cells& one : cells.one_by_one()) {
    const Samples measured = one.scalar("relative_mse");
    if (measured.empty()) continue;
    comparisons.push_back(
        {name_of(one), mean(quotients(measured, one.scalar("relative_mse_theory")), recipe.error_rate(cells.size()))});
  }
  Finding finding = all_contain(1, resolution, comparisons);
  finding.numbers = fmt::format("measured over closed form, at the {} of {} settings where it can be estimated: {}",
                                comparisons.size(), cells.size(), finding.numbers);
  return finding;
}

}  // namespace attnbench
