// Shared by the recipes about trained models: their cells, and comparisons of two attentions seed by seed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/runner/recipe.hpp"

namespace attnbench {

// An attention that models were trained with; redraw: steps between draws of its random features, 0 for one draw.
struct TrainedWith {
  std::string method;
  Index redraw = 0;
};

// The recorded models of one task. Every attention has the same seeds: those that all of them were trained with, or
// the first if some were not, whose cells then end without numbers.
class TrainedModels {
 public:
  TrainedModels(Recipe& recipe, std::string task, bool causal, size_t texts,
                const std::vector<TrainedWith>& attentions);

  const Cells& cells() const { return cells_; }
  Cells with(const TrainedWith& attention) const;
  Index seeds() const { return seeds_; }

  // bits(a) - bits(b) of every held-out text after training, text by text: one comparison a seed, the median over texts
  // with its interval. rate: the error rate of each.
  std::vector<Comparison> lost(const TrainedWith& a, const TrainedWith& b, double rate) const;
  // The same of several attentions against one: a comparison for each, with its name, and seed.
  std::vector<Comparison> each_lost(const std::vector<std::pair<std::string, TrainedWith>>& attentions,
                                    const TrainedWith& than, double rate) const;
  // Bits of one attention, before and after training: metric is bits_by_text or first_bits_by_text.
  std::vector<Comparison> bits(const TrainedWith& a, const std::string& metric, double rate) const;
  // An array of each held-out text's numbers, by seed.
  std::vector<std::vector<double>> by_text(const TrainedWith& attention, const std::string& metric) const;

  // A panel with the curve of every attention. series: the columns that tell them apart.
  Panel curves(const std::string& title, const std::vector<std::string>& series = {"method"}) const;

 private:
  std::string task_;
  size_t texts_;
  Index seeds_;
  Cells cells_;
};

// A median over texts, text by text: of first - second. Unmeasured where one of them has no numbers.
Comparison median_difference(const std::string& what, const std::vector<double>& first,
                             const std::vector<double>& second, double rate);

// Adds to a finding how many of the three seeds it rests on, when and where the rows of these tasks were recorded, and
// how to train one of them.
Finding as_recorded(Finding finding, Index seeds, const std::vector<std::string>& tasks);

}  // namespace attnbench
