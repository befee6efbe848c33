// How errors grow through layers with the method for which they grow least.
#include "harness/runner/numbers_function.hpp"

namespace attnbench {
namespace {

// The error after the first layer over that after the last, of the method whose median ratio is greatest.
Estimate least_growth(const Cells& methods, double rate) {
  std::vector<Estimate> ratios;
  const double shared = shared_rate(rate, methods.size());
  for (const Cells& one : methods.one_by_one()) {
    const auto layers = static_cast<size_t>(one.all().front().asked.experiment.integer("layers"));
    ratios.push_back(
        median_ratio(one.element("output_error", layers, 0), one.element("output_error", layers, layers - 1), shared));
  }
  return greatest_of(ratios);
}

std::vector<Number> plan(const NumbersFunction::NamedCells& cells) {
  std::vector<Number> all;
  for (const Cells::Part& region : cells.at("").by({"input_name", "logit_scale"}))
    for (const Cells::Part& mask : region.cells.by({"causal"}))
      all.push_back({.what = mask.name, .region = region.name, .estimate = [methods = mask.cells](double rate) {
                       return least_growth(methods, rate);
                     }});
  return all;
}

const bool registered = add(NumbersFunction{
    .text = {.name = "least-growth-of-error",
             .summary = "the error of hidden states after the first layer over that after the last, of the method "
                        "where this ratio is greatest; a region for each input and factor of the logits"},
    .plan = plan});

}  // namespace
}  // namespace attnbench
