// A recipe as data, as a recipe file states it (harness/cli/recipe_file.hpp reads them). Cells, figures and rules are
// those of recipes in C++; a statement names its numbers by metrics, columns and rule instead of computing them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/runner/expression.hpp"
#include "harness/runner/growth.hpp"
#include "harness/runner/recipe.hpp"

namespace attnbench {

// Which cells: those of some runs, or of all runs without a name, that agree with every condition.
struct Selection {
  std::vector<std::string> runs = {};
  std::vector<Condition> conditions = {};
};

struct DeclaredRun {
  std::string place;  // "mine.recipe.toml, line 12", for messages; likewise below
  std::string name;   // empty: no selection names it
  RunRequest request;
  std::string heads = {};        // a set of heads in place of inputs (HeadsEntry)
  bool every_replicate = false;  // as many replicates as the experiment has of all these cells
};

struct DeclaredPanel {
  std::string place;
  Panel panel;  // without its cells. {part} in the title: the values of `each`
  Selection cells = {};
  std::vector<std::string> each = {};  // one panel for each combination of values in these columns
  std::set<std::string> given = {};    // the fields that the file sets; the others follow from metrics and columns
};

struct DeclaredFigure {
  std::string place;
  std::string name, title, caption;
  std::vector<DeclaredPanel> panels;
};

// In place of columns: every cell is a comparison of its own.
inline const std::vector<std::string> each_cell{"cell"};

// Numbers of a statement that are computed alike.
struct DeclaredNumbers {
  std::string name = {};            // of this part of the statement; empty if it is the only one
  std::string metric = {};          // of a curve; elsewhere `value` is this metric, or it over that of `over`
  std::optional<Expression> value;  // of the cells of a comparison
  std::string code = {};            // a NumbersFunction that computes them, in place of metric, value, each and where
  std::optional<Take> take = {};    // in place of the statement's
  bool of_elements = false;         // of an array, one comparison per replicate, in place of replicates
  Index elements = 0;               // how many the array has; 0: any number
  Selection of = {};
  // Further cells that `value` names. They agree with `of` in every column of `each` and `where`, and in the sizes and
  // the input that `of` sets, unless they set it themselves or do not have it.
  std::map<std::string, Selection> with = {};
  std::vector<std::string> each = {};  // one comparison for each combination of values in these columns, or each_cell
  std::vector<std::string> against = {};  // and for each combination of values that `over` has in these columns
  // The regions of a rule; columns need not be among `each`. "part": the parts of the statement are regions.
  std::vector<std::string> where = {};
  std::vector<std::pair<std::string, Expression>> beside = {};  // reported with each comparison, judged by nothing
  std::optional<Expression> bound = {};                         // at_most: of each comparison, in place of the rule's
};

struct DeclaredStatement {
  std::string place;
  Statement statement;
  std::vector<DeclaredNumbers> parts;
  Take take = Take::median;
  Rule rule = {};
  std::optional<GrowthLaw> growth = {};  // in place of a rule: each comparison is a curve over n
};

struct DeclaredRecipe {
  std::map<std::string, std::string> input_names = {};  // for selections and comparisons, by spec
  HeadlineQuestion headline = {};
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

// A named set of heads that recipes run on, such as a few telling ones of each model.
struct HeadsEntry {
  static constexpr const char* kind = "set of heads";
  static constexpr const char* plural = "heads";

  Description text;
  std::vector<Parameter> parameters = {};
  std::function<Cells(Recipe&, const RunRequest&)> run;  // the request has no inputs
};

extern template class Registry<HeadsEntry>;

}  // namespace attnbench
