// Recipes are published figures and statements as configurations. A recipe says once what it runs; figures and
// statements select from those cells.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/runner/cells.hpp"
#include "harness/runner/figure.hpp"
#include "harness/runner/judgement.hpp"
#include "harness/runner/plan.hpp"

namespace attnbench {

using Specs = std::vector<std::string>;  // of methods or inputs, in any spelling

// smoke: shows that everything runs and claims nothing; quick: a few seconds per recipe; full: the published sizes.
enum class RecipeSize { smoke, quick, full };
std::string to_string(RecipeSize size);

// A parameter's value, wherever a method, input or experiment of a recipe has the parameter and the recipe leaves it at
// its default. Values and axes that the recipe sets are never changed.
struct Setting {
  std::string name, value;
};

class Recipe {
 public:
  // name: of the recipe. It changes the seed of its timings, so no two recipes share timed cells: a length that another
  // recipe has timed would not come from the same blocks as the lengths beside it.
  explicit Recipe(RecipeSize size, const std::string& name = {}, std::vector<Setting> settings = {},
                  std::uint64_t further_seed = 0);
  Recipe(const Recipe&) = delete;  // rules refer to it
  Recipe& operator=(const Recipe&) = delete;

  RecipeSize size() const { return size_; }
  bool smoke() const { return size_ == RecipeSize::smoke; }
  // One value for each size.
  template <class T>
  T sized(T of_smoke, T of_quick, T of_full) const {
    return size_ == RecipeSize::smoke ? of_smoke : size_ == RecipeSize::quick ? of_quick : of_full;
  }
  // One value for smoke, one for quick and full.
  template <class T>
  T sized(T of_smoke, T otherwise) const {
    return smoke() ? of_smoke : otherwise;
  }

  // Adds cells to what the recipe runs and returns their handle.
  Cells run(RunRequest request);
  // Adds a figure. Specs may have any spelling.
  void figure(std::string name, std::string title, std::string caption, const std::vector<Panel>& panels);
  // The report's first screen asks this question, and answers with the recipe's first figure and first statement. It
  // has room for the four questions with the lowest places.
  void headline(int place, std::string question);
  // Names of inputs, by their specs, for selections and comparisons. Before the first run.
  void name_inputs(std::map<std::string, std::string> names) { table_.name_inputs(std::move(names)); }
  // Adds a statement. Its definition ends with the sizes and replicates of its cells.
  void judge(Judgement judgement);
  // One request of the recipe with its cells.
  struct Run {
    RunRequest request;
    std::vector<RecipeCell> cells;
  };
  const std::vector<Run>& runs() const { return runs_; }
  Cells cells() const { return table_.all(); }
  // Draws only these cells, with the recipe's summary and question above them.
  std::vector<Figure> figures(const Description& section) const;
  std::vector<Statement> statements() const;
  std::vector<Judgement> judgements() const { return judgements_; }
  // From now on the numbers of judgements are those of these measurements, which must outlive their reading.
  void read(const Measurements& measurements) { table_.read(measurements); }
  // The error rate of one verdict. At smoke sizes it is 1, because nothing is claimed there.
  double error_rate() const { return smoke() ? 1 : verdict_error_rate; }
  // Judges every statement. Throws std::logic_error when a rule asks for an interval that cannot exist.
  std::vector<Verdict> verdicts(const Measurements& measurements);

 private:
  struct NamedFigure {
    std::string name, title, caption;
    std::vector<Panel> panels;
  };
  RecipeSize size_;
  std::vector<Setting> settings_;
  std::uint64_t further_seed_, seed_of_timings_;
  CellTable table_;
  std::vector<Run> runs_;
  std::vector<NamedFigure> figures_;
  HeadlineQuestion headline_;
  std::vector<Judgement> judgements_;
};

struct RecipeEntry {
  static constexpr const char* kind = "recipe";
  static constexpr const char* plural = "recipes";

  Description text;  // formula: the question that the recipe answers; reference: its main source
  std::vector<Parameter> parameters = {};
  std::function<void(Recipe&)> write;
  std::string file = {};  // the recipe file that states it; empty: C++
};

extern template class Registry<RecipeEntry>;

// The settings that change no cell.
std::vector<Setting> without_effect(const std::vector<Setting>& settings, const std::vector<RecipeCell>& cells);

}  // namespace attnbench
