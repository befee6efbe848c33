#include "experiments/commands/search_space.hpp"

#include <algorithm>

namespace attnbench {

namespace {

// A share of softmax's FLOPs: methods above it are hardly faster, and at 1 many methods are exact attention.
constexpr double most_flops = 0.5;
constexpr size_t most_budgets = 6;  // down to 1/64 of softmax's where the cost grows with the budget

double flops_of(const Params& method, const Shape& shape) {
  return find<MethodEntry>(method.name()).cost(method, shape).flops;
}

std::string why_no_form(const Params& method, const Shape& shape) {
  return find<MethodEntry>(method.name()).claims(method, shape).no_form;
}

// The budget parameter that the spec does not set; null if the method has no budget or the spec sets it.
const Parameter* open_budget(const Params& method, const Spec& spec) {
  for (const Parameter& parameter : method.declared()) {
    const auto stated = [&](const auto& argument) { return argument.first == parameter.name; };
    if (parameter.budget && std::none_of(spec.arguments.begin(), spec.arguments.end(), stated)) return &parameter;
  }
  return nullptr;
}

// Whether the method has a form at this shape and its parameter values are compatible.
bool possible(const Params& method, const Shape& shape) try {
  find<MethodEntry>(method.name()).check(method);
  return why_no_form(method, shape).empty();
} catch (const Misuse&) {
  return false;
}

std::vector<Params> with_budgets(const Params& method, const Parameter& budget, const Shape& shape) {
  struct Costed {
    Params method;
    Index value;
    double flops;
  };
  const double most = most_flops * flops_of(Params("methods", "softmax"), shape);
  std::vector<Costed> all;
  for (Index value = 1; value <= shape.nk && static_cast<double>(value) <= budget.maximum; value *= 2) {
    if (static_cast<double>(value) < budget.minimum) continue;
    const Params candidate = method.with(budget.name, std::to_string(value));
    if (!possible(candidate, shape)) continue;
    if (const double flops = flops_of(candidate, shape); flops <= most) all.push_back({candidate, value, flops});
  }
  std::stable_sort(all.begin(), all.end(), [](const Costed& x, const Costed& y) { return x.flops > y.flops; });
  if (all.size() > most_budgets) all.erase(all.begin() + most_budgets, all.end());
  std::sort(all.begin(), all.end(), [](const Costed& x, const Costed& y) { return x.value < y.value; });
  std::vector<Params> candidates;
  for (const Costed& one : all) candidates.push_back(one.method);
  if (candidates.empty()) candidates.push_back(method);
  return candidates;
}

// Skips softmax (the baseline) and per-head (on one head it uses one of its methods, which is a candidate already).
std::vector<std::string> methods_of_one_head() {
  std::vector<std::string> names = catalogue("methods").names();
  std::erase_if(names, [](const std::string& name) { return name == "softmax" || name == "per-head"; });
  return names;
}

}  // namespace

SearchSpace search_space(const std::vector<std::string>& methods, const Shape& shape) {
  SearchSpace space;
  for (const std::string& text : methods.empty() ? methods_of_one_head() : methods) {
    const Spec spec = parse_spec(text);
    const Params method("methods", spec);
    if (method.name() == "softmax") continue;
    find<MethodEntry>(method.name()).check(method);
    if (const std::string reason = why_no_form(method, shape); !reason.empty()) {
      space.without_form.push_back(method.spec() + ": " + reason);
      continue;
    }
    const Parameter* budget = open_budget(method, spec);
    const auto some = budget ? with_budgets(method, *budget, shape) : std::vector<Params>{method};
    space.candidates.insert(space.candidates.end(), some.begin(), some.end());
  }
  return space;
}

}  // namespace attnbench
