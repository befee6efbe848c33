#include "experiments/commands/recommend_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <map>

#include "experiments/commands/measured_candidates.hpp"

namespace attnbench {

namespace {

const char* word(Saved saved) { return saved == Saved::time ? "time" : "memory"; }

// "softmax in 5 heads, local:window=64 in 7", the most frequent first.
std::string in_words(const Assignment& assignment) {
  std::map<std::string, size_t> counts;
  for (const HeadOption& head : assignment.heads) ++counts[head.method];
  std::vector<std::pair<std::string, size_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> parts;
  for (const auto& [method, count] : sorted)
    parts.push_back(fmt::format("{} in {} head{}", method, count, count == 1 ? "" : "s"));
  return fmt::format("{}", fmt::join(parts, ", "));
}

// How far the losses of single heads are from adding up.
std::string sum_in_words(double of_single_heads, const Estimate& whole) {
  return fmt::format(
      "replaced one at a time, these heads lose {:.3g} bits per byte in all; replaced together they lose "
      "{}{}",
      of_single_heads, whole.text(),
      of_single_heads > 0 ? fmt::format(", {:.2g} times as much", whole.value / of_single_heads) : "");
}

void print(const MeasuredAssignment& found, const ModelNeeds& needs, const SearchSpace& space,
           const std::string& input) {
  const bool replaced = spec_of(found.chosen) != "softmax";
  if (!replaced)
    std::cout << fmt::format(
        "exact softmax in every head is the best answer: no method costs significantly less and loses, with its whole "
        "interval, at most {:g} bits per byte\n",
        needs.loss);
  else
    std::cout << fmt::format(
        "{}: {} of exact softmax's {} in all heads, for {} bits per byte above exact softmax\n{}\n",
        in_words(found.chosen), found.cost.text(), word(needs.saved), found.loss.text(),
        sum_in_words(found.chosen.loss(), found.loss));
  if (found.refused && found.refused_loss.measured())
    std::cout << fmt::format("the next step may lose more than {:g}: {}; {}\n", needs.loss, in_words(*found.refused),
                             sum_in_words(found.refused->loss(), found.refused_loss));
  if (replaced) {
    std::cout << fmt::format("\n{:<8}{:<34}{:>14}{:>20}\n", "head", "method", "bits alone",
                             fmt::format("{} / softmax's", word(needs.saved)));
    for (size_t place = 0; place < found.chosen.heads.size(); ++place) {
      const HeadOption& head = found.chosen.heads[place];
      const auto heads = static_cast<size_t>(found.heads);
      std::cout << fmt::format("{:<8}{:<34}{:>14.4f}{:>20.2f}\n", fmt::format("{}.{}", place / heads, place % heads),
                               head.method, head.loss, head.cost);
    }
  }
  std::cout << fmt::format("\n{} candidates with budgets: {} cost significantly less than softmax", found.candidates,
                           found.cheaper);
  if (!space.without_form.empty())
    std::cout << fmt::format("; {} methods have no form for this model", space.without_form.size());
  if (found.unmeasured > 0)
    std::cout << fmt::format("; {} could not be measured, the first: {}", found.unmeasured, found.first_reason);
  std::cout << fmt::format(
      "\nthe first {} texts chose, all others judged; intervals: {} for all losses and costs together; {} of calls in "
      "float on one thread\n",
      choosing_texts, 1 - recommendation_error_rate, word(needs.saved));
  if (!replaced) return;
  std::cout << fmt::format("\nattnbench run model-loss --method '{}' --input {}\n", spec_of(found.chosen), input);
  for (Index layer = 0; layer < found.layers; ++layer) {
    const std::string spec = spec_of_layer(found.chosen, static_cast<size_t>(layer), static_cast<size_t>(found.heads));
    if (spec == "softmax") continue;
    Spec heads = parse_spec(input);
    heads.arguments.insert(heads.arguments.end(), {{"layer", std::to_string(layer)}, {"head", "all"}});
    std::cout << fmt::format("attnbench attend '{}' --input {} --causal --output layer{}.safetensors\n", spec,
                             to_string(heads), layer);
  }
}

}  // namespace

int recommend_for_model(const RunRequest& model, const SearchSpace& space, const ModelNeeds& needs, Store& store,
                        std::int64_t run_id) {
  const auto found = measure_assignment(model, space.candidates, needs, store, run_id);
  if (!found) {
    std::cout << "interrupted; the same command goes on\n";
    return 130;
  }
  print(*found, needs, space, model.inputs.at(0));
  return 0;
}

}  // namespace attnbench
