// A recipe as data, as a recipe file states it (harness/cli/recipe_file.hpp reads them). Cells, figures and rules are
// those of recipes in C++; a statement names its numbers by metric, columns and rule instead of computing them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/runner/recipe.hpp"

namespace attnbench {

// Which cells: those of one run, or of all runs if it has no name, that agree with every condition.
struct Selection {
  std::string run = {};
  std::vector<Condition> conditions = {};
};

struct DeclaredRun {
  std::string place;  // "mine.recipe.json, line 12", for messages; likewise below
  std::string name;   // empty: no selection names it
  RunRequest request;
};

struct DeclaredPanel {
  std::string place;
  Panel panel;  // without its cells
  Selection cells = {};
};

struct DeclaredFigure {
  std::string place;
  std::string name, title, caption;
  std::vector<DeclaredPanel> panels;
};

// The rules of judge.hpp.
struct DeclaredRule {
  enum class Kind { below, above, between, contains, some_below, at_most, report };

  Kind kind = Kind::report;
  double bound = 0;            // between: the lower one
  double high = 0;             // between: the upper bound
  double resolution = 0;       // contains: no interval may be wider than +- this
  std::string bound_metric;    // at_most: a metric of the same cell and replicate instead of `bound`
  std::vector<double> report;  // thresholds that the reader may choose
};

// How the numbers of a comparison are taken.
enum class Taken {
  median,           // of the replicates; of ratios replicate by replicate
  median_of_turns,  // of the blocks of turns of an experiment that measures time; of ratios block by block
  mean,             // of the replicates, each an average of many draws; of their quotients
  exact             // the only number: nothing is drawn
};

// In place of columns: every cell is a comparison of its own. Its divisor is another metric of that cell.
inline const std::vector<std::string> each_cell{"cell"};

struct DeclaredStatement {
  std::string place;
  Statement statement;
  std::string metric;
  Taken taken = Taken::median;
  Selection of = {};
  std::optional<Selection> over = {};  // what the numbers are divided by; it agrees with `of` in every column of `each`
  std::string over_metric = {};        // empty: the same metric
  std::vector<std::string> each = {};  // one comparison for each combination of values in these columns, or each_cell
  // below and above: the statement may hold for some values of these columns only, which makes it DEPENDS. They
  // need not be among `each`.
  std::vector<std::string> where = {};
  bool any = false;         // where: one comparison of a region below the bound is enough
  double equal_within = 1;  // where: see below_where
  DeclaredRule rule = {};
};

struct DeclaredRecipe {
  std::vector<DeclaredRun> runs;
  std::vector<DeclaredFigure> figures;
  std::vector<DeclaredStatement> statements;
};

// Adds its runs, figures and statements to the recipe. Throws Misuse with the place for a method, input or parameter
// that does not exist, a selection without cells, a metric that the experiment does not have, and a comparison that
// would use several cells.
void declare(const DeclaredRecipe& declared, Recipe& recipe);

// Throws Misuse if a size plans less than the size below it, or if a statement asks for an interval that so few
// replicates cannot give: both would otherwise show after the recipe has run. entry: of a recipe file.
void require_sound(const RecipeEntry& entry, RecipeSize size);

}  // namespace attnbench
