// Numbers that take medians of several methods together: the best of some methods, one that is both fast and near, and
// a method for each head in place of one for all.
#include <algorithm>
#include <map>
#include <optional>

#include "harness/runner/numbers_function.hpp"

namespace attnbench {
namespace {

using NamedCells = NumbersFunction::NamedCells;

const std::string error = "relative_output_error";

// The least, over the methods, of the median ratio of a method's error to that of the only cell of `other`.
Estimate best_ratio(const Cells& methods, const Cells& other, double rate) {
  std::vector<Estimate> ratios;
  for (const Cells& one : methods.one_by_one())
    ratios.push_back(median_ratio(one.scalar(error), other.scalar(error), shared_rate(rate, methods.size())));
  return least_of(ratios);
}

std::vector<Number> best_of_each_head(const NamedCells& cells) {
  std::vector<Number> all;
  for (const Cells::Part& head : cells.at("").by({"input_name"}))
    all.push_back({.what = head.name,
                   .estimate = [methods = head.cells, other = cells.at("over").where(head.shared)](double rate) {
                     return best_ratio(methods, other, rate);
                   }});
  return all;
}

std::vector<Number> best_of_the_worst_head(const NamedCells& cells) {
  std::vector<Number> all;
  for (const Cells::Part& factor : cells.at("").by({"logit_scale"})) {
    std::vector<std::pair<Cells, Cells>> heads;  // with the cell of `over`
    for (const Cells::Part& head : factor.cells.by({"input_name"}))
      heads.emplace_back(head.cells, cells.at("over").where(factor.shared).where(head.shared));
    const auto greatest = [heads](double rate) {
      std::vector<Estimate> best;
      for (const auto& [methods, other] : heads)
        best.push_back(best_ratio(methods, other, shared_rate(rate, heads.size())));
      return greatest_of(best);
    };
    all.push_back({.what = "", .region = factor.name, .coordinate = factor.coordinate, .estimate = greatest});
  }
  return all;
}

// The greater of a method's seconds over softmax's, the median over blocks of turns, and its error over that of
// `other`.
Estimate slower_or_worse(const Cells& one, const Cells& timed, const Cells& other, double rate) {
  std::vector<double> slower = timed.turns("speedup");
  for (double& speedup : slower) speedup = 1 / speedup;
  return greatest_of({median_ratio(one.scalar(error), other.scalar(error), shared_rate(rate, 2)),
                      median_of(slower, shared_rate(rate, 2))});
}

std::vector<Number> slower_or_worse_methods(const NamedCells& cells) {
  std::vector<Number> all;
  for (const Cells::Part& setting : cells.at("").by({"input_name", "n"}))
    for (const Cells::Part& one : setting.cells.by({"method"}))
      all.push_back({.what = one.name,
                     .region = setting.name,
                     .estimate = [of = one.cells, timed = cells.at("speed").where(setting.shared).where(one.shared),
                                  other = cells.at("over").where(setting.shared)](double rate) {
                       return slower_or_worse(of, timed, other, rate);
                     }});
  return all;
}

// Errors, summed over inputs. Methods are chosen on replicates with even numbers and judged on the others, which avoids
// a selection bias.
struct Choice {
  double chosen_on = 0;
  Samples judged_on;

  void add(const Samples& errors) {
    for (const auto& [replicate, value] : errors)
      replicate % 2 == 0 ? chosen_on += value : judged_on[replicate] += value;
  }
};

// The error with the method that is best for each input, over that with the one method that is best for all.
Samples own_method_over_common_one(const Cells& cells) {
  Samples own;
  std::map<std::string, Choice> common;  // by method
  for (const Cells::Part& input : cells.by({"input"})) {
    std::optional<Choice> best;
    for (const Cells::Part& method : input.cells.by({"method"})) {
      const Samples errors = method.cells.scalar(error);
      if (errors.empty()) return {};
      Choice here;
      here.add(errors);
      common[method.name].add(errors);
      if (!best || here.chosen_on < best->chosen_on) best = here;
    }
    for (const auto& [replicate, value] : best->judged_on) own[replicate] += value;
  }
  const auto best = std::min_element(common.begin(), common.end(), [](const auto& x, const auto& y) {
    return x.second.chosen_on < y.second.chosen_on;
  });
  return quotients(own, best->second.judged_on);
}

std::vector<Number> own_methods_of_layers(const NamedCells& cells) {
  std::vector<Number> all;
  for (const Cells::Part& layer : cells.at("").by({"layer"}))
    all.push_back({.what = layer.name, .samples = [of = layer.cells] { return own_method_over_common_one(of); }});
  return all;
}

bool function(const char* name, const char* summary, std::vector<Number> (*plan)(const NamedCells&)) {
  return add(NumbersFunction{.text = {.name = name, .summary = summary}, .plan = plan});
}

const bool registered[]{
    function("best-of-each-head",
             "on each head, the least over methods of the median ratio of their error to that of 'over'",
             best_of_each_head),
    function("best-of-the-worst-head",
             "for each factor of the logits, the greatest over heads of the least over methods of the median ratio of "
             "their error to that of 'over'",
             best_of_the_worst_head),
    function("slower-or-worse",
             "of each method the greater of two medians: its seconds over softmax's, from the cells 'speed', and its "
             "error over that of 'over'; a region for each input and length",
             slower_or_worse_methods),
    function("own-method-of-each-head",
             "for each layer, the error, summed over heads, with the method that is best for each head over that with "
             "the one method that is best for all: chosen on replicates with even numbers, judged on the others",
             own_methods_of_layers)};

}  // namespace
}  // namespace attnbench
