// Numbers of a statement that need code: compares = {code = "name", of = {...}} in a recipe file names such a function.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/runner/judgement.hpp"

namespace attnbench {

struct NumbersFunction {
  static constexpr const char* kind = "function that computes a statement's numbers";
  static constexpr const char* plural = "numbers";

  // The statement's selections by name; "" is `of`.
  using NamedCells = std::map<std::string, Cells>;

  Description text;
  std::vector<Parameter> parameters = {};
  // Called before anything runs: the numbers read their cells later. Throws std::logic_error for cells that it cannot
  // use.
  std::function<std::vector<Number>(const NamedCells&)> plan;
};

extern template class Registry<NumbersFunction>;

}  // namespace attnbench
