#include "experiments/commands/assignment.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

namespace attnbench {

namespace {

// Cost saved for each bit added.
double return_of(const HeadOption& from, const HeadOption& to) {
  if (to.cost >= from.cost) return -1;
  if (to.loss <= from.loss) return std::numeric_limits<double>::infinity();
  return (from.cost - to.cost) / (to.loss - from.loss);
}

// Whether a step is better than the best so far. Of steps that add no loss the one that saves more is.
struct Step {
  double returns = -1, saved = 0;
  size_t head = 0;
  const HeadOption* to = nullptr;

  bool better_than(const Step& other) const {
    return returns > other.returns || (returns == other.returns && saved > other.saved);
  }
};

std::string spec_of_heads(const std::vector<HeadOption>& heads) {
  size_t period = 1;
  const auto repeats = [&] {
    for (size_t i = period; i < heads.size(); ++i)
      if (heads[i].method != heads[i - period].method) return false;
    return heads.size() % period == 0;
  };
  while (!repeats()) ++period;
  if (period == 1) return heads.front().method;
  std::vector<std::string> specs;
  for (size_t i = 0; i < period; ++i) specs.push_back("[" + heads[i].method + "]");
  return fmt::format("per-head:{}", fmt::join(specs, ","));
}

}  // namespace

double Assignment::loss() const {
  double sum = 0;
  for (const HeadOption& head : heads) sum += head.loss;
  return sum;
}

double Assignment::cost() const {
  double sum = 0;
  for (const HeadOption& head : heads) sum += head.cost;
  return sum / static_cast<double>(heads.size());
}

std::vector<Assignment> greedy_path(const std::vector<std::vector<HeadOption>>& options) {
  std::vector<Assignment> path{{{options.size(), HeadOption{"softmax", 0, 1}}}};
  for (;;) {
    Step best;
    for (size_t h = 0; h < options.size(); ++h)
      for (const HeadOption& option : options[h]) {
        const HeadOption& now = path.back().heads[h];
        const Step step{return_of(now, option), now.cost - option.cost, h, &option};
        if (step.better_than(best)) best = step;
      }
    if (!best.to) return path;
    path.push_back(path.back());
    path.back().heads[best.head] = *best.to;
  }
}

std::string spec_of(const Assignment& assignment) { return spec_of_heads(assignment.heads); }

std::string spec_of_layer(const Assignment& assignment, size_t layer, size_t heads) {
  const auto first = assignment.heads.begin() + static_cast<std::ptrdiff_t>(layer * heads);
  return spec_of_heads(std::vector<HeadOption>(first, first + static_cast<std::ptrdiff_t>(heads)));
}

}  // namespace attnbench
