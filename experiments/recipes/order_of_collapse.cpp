// How fast the tokens of a network become the same from layer to layer.
#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/measures/collapse.hpp"
#include "harness/runner/cells_function.hpp"
#include "harness/runner/numbers_function.hpp"

namespace attnbench {
namespace {

double order(const CellsFunction::Columns& of) {
  if (of[0].empty()) return std::nan("");  // the cell failed
  return order_of_convergence(of[0], of[1].at(0)).value_or(of[2].at(0));
}

// By draw, down to double rounding; 0 where the residual does not fall.
Samples orders(const Cells& one) {
  const double floor = 16 * one.number("n").value() * std::numeric_limits<double>::epsilon();
  Samples samples;
  for (const auto& residuals : one.arrays("residual_composite", 0))
    samples[std::ssize(samples)] = order_of_convergence(residuals, floor).value_or(0);
  return samples;
}

// The share of the draws for which the event is true.
Number share(std::string what, const std::function<Samples()>& draws, bool (*event)(double)) {
  return {.what = std::move(what), .estimate = [=](double error_rate) {
            const Samples all = draws();
            const auto hits = std::count_if(all.begin(), all.end(), [&](const auto& one) { return event(one.second); });
            return share_of(hits, std::ssize(all), error_rate);
          }};
}

// Two shares of the draws of a single cell, which the experiment `depth` measured.
std::vector<Number> shares_of_collapse(const NumbersFunction::NamedCells& cells) {
  const Cells one = cells.at("");
  const auto left = [one] { return quotients(one.scalar("final_residual"), one.element("residual_composite", 0)); };
  const auto of_order = [one] { return orders(one); };
  return {share("share of order above 2", of_order, [](double p) { return p > 2; }),
          share("share below half", left, [](double part) { return part < 0.5; })};
}

const bool registered[]{
    add(CellsFunction{.text = {.name = "order_of_convergence",
                               .summary = "the order at which numbers fall, down to a floor, or another number where "
                                          "they do not fall: (elements(numbers), the floor, the other number)"},
                      .arguments = 3,
                      .value = order}),
    add(NumbersFunction{.text = {.name = "shares-of-collapse",
                                 .summary = "the share of draws in which the residual falls with an order above 2, and "
                                            "of those in which less than half of it is left"},
                        .plan = shares_of_collapse})};

}  // namespace
}  // namespace attnbench
