// How far the measured probability of a collision is from its law.
#include <fmt/format.h>

#include <cmath>

#include "harness/runner/numbers_function.hpp"

namespace attnbench {
namespace {

// The share of a cell's draws, over all replicates, in which two tokens share a bucket, less the law's probability. The
// interval is that of a share.
Estimate rate_less_law(const Cells& one, double error_rate) {
  const Samples rates = one.scalar("collision_rate"), laws = one.scalar("collision_rate_theory");
  if (rates.empty() || laws.empty()) return unmeasured();
  const Index draws = one.all().front().asked.experiment.integer("draws");
  double hits = 0;
  for (const auto& [replicate, rate] : rates) hits += rate * static_cast<double>(draws);
  Estimate share = share_of(std::llround(hits), draws * std::ssize(rates), error_rate);
  const double law = laws.begin()->second;
  share.value -= law;
  share.interval = {share.interval.low - law, share.interval.high - law};
  return share;
}

std::vector<Number> plan(const NumbersFunction::NamedCells& cells) {
  std::vector<Number> all;
  for (const Cells::Part& part : cells.at("").by({"method", "input"}))
    all.push_back({.what = part.name,
                   .estimate = [one = part.cells](double error_rate) { return rate_less_law(one, error_rate); }});
  return all;
}

const bool registered = add(NumbersFunction{
    .text = {.name = "collision-rate-less-law",
             .summary = "the share of all draws in which two tokens share a bucket, less the probability by the law"},
    .plan = plan});

}  // namespace
}  // namespace attnbench
