// Worlds: measurements of a recipe's cells that are made up, so that what the recipe must conclude is known. A recipe's
// world is a file beside this one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/runner/recipe.hpp"

namespace attnbench::worlds {

// One number that a recipe reads.
struct Asked {
  const Cell& cell;
  const std::string& metric;
  Index replicate;
  size_t place;  // in an array: the layer, the row, or the block of turns

  // Specs in any spelling.
  bool method(const std::string& spec) const { return Params("methods", spec).spec() == cell.method.spec(); }
  bool input(const std::string& spec) const { return Params("inputs", spec).spec() == cell.input.spec(); }
  std::string name() const { return cell.method.name(); }
  // An option of the method, the input or the experiment: empty where none has it.
  std::string option(const std::string& name) const;
  double number(const std::string& name) const { return std::stod(option(name)); }
  double n() const { return static_cast<double>(cell.problem.shape.nk); }
  double d() const { return static_cast<double>(cell.problem.shape.d); }
  bool causal() const { return cell.problem.shape.mask.causal; }
};

// Nothing: the world says nothing of that number, and it is an arbitrary one.
using Answer = std::optional<double>;
using Numbers = std::function<Answer(const Asked&)>;

// The ruling that a recipe must give on one statement.
struct Known {
  std::string statement;  // the words that it begins with
  Ruling ruling;
  // The compared numbers in the recipe's order: one for each comparison, or one that all have. Empty: not tested.
  std::vector<double> values = {};
};

struct World {
  std::string recipe;
  Numbers numbers;
  std::vector<Known> known;
};

std::vector<World>& all();
bool add(World world);

// Answers for one metric alone.
Numbers of(std::string metric, Numbers numbers);

}  // namespace attnbench::worlds
