// The law by which Reformer's hashing finds pairs. methods.md F6: with b buckets and one round
//   P(h(x) = h(y)) = 1 - theta/pi  (b = 2),  (1 - theta/pi)^2  (b = 4);   c rounds: 1 - (1 - P)^c
// The angle alone counts: lengths, and with them the weights of attention, do not.
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const Specs with_law{"reformer:buckets=2,rounds=1", "reformer:buckets=4,rounds=1", "reformer:buckets=4,rounds=4"};
const std::string many_buckets = "reformer:buckets=32,rounds=1";
const std::string short_pair = "pair:direction=axis,angle=1,length=0.1",
                  long_pair = "pair:direction=axis,angle=1,length=3";
constexpr Index d = 8;  // the law does not depend on it

const Description text{.name = "lsh-collisions",
                       .summary = "How often Reformer's hashing finds a pair, by the angle between its tokens",
                       .formula =
                           "Two tokens at an angle theta share a bucket with probability 1 - theta/pi for 2 buckets "
                           "and (1 - theta/pi)^2 for 4, whatever their lengths.",
                       .reference = "Kitaev et al. 2020, arXiv:2001.04451, section 2"};

std::string experiment(RecipeSize size) {
  return fmt::format("collisions:draws={}", size == RecipeSize::smoke ? 64 : size == RecipeSize::quick ? 2048 : 32768);
}

Specs angles(RecipeSize size) {
  const Index count = size == RecipeSize::smoke ? 2 : size == RecipeSize::quick ? 6 : 12;
  Specs all;
  for (Index i = 0; i < count; ++i)
    all.push_back(
        fmt::format("{:.4f}", std::numbers::pi * (static_cast<double>(i) + 0.5) / static_cast<double>(count)));
  return all;
}

std::vector<RunRequest> runs(RecipeSize size) {
  RunRequest by_angle{.experiment = experiment(size),
                      .methods = with_law,
                      .inputs = {"pair"},
                      .n = {2},
                      .d = {d},
                      .causal = false,
                      .sweep = {{"angle", angles(size)}},
                      .replicates = size == RecipeSize::smoke ? 2 : 12};
  by_angle.methods.push_back(many_buckets);
  RunRequest by_length = by_angle;
  by_length.methods = {with_law[1]};
  by_length.inputs = {short_pair, long_pair};
  by_length.sweep = {};
  return {by_angle, by_length};
}

std::vector<Figure> figures(RecipeSize size) {
  Specs methods = with_law;
  methods.push_back(many_buckets);
  return {figure("lsh-collisions", text, "How often hashing finds a pair",
                 "Two tokens alone, d = 8, a draw of the hash each time; 95 % intervals over replicates, lines are the "
                 "closed forms. More buckets look at fewer pairs and miss more of the near ones; more rounds win those "
                 "back, and far ones with them.",
                 {{.title = "one pair of tokens",
                   .where = {{"experiment", experiment(size)}, {"input", "pair"}, {"d", d}, {"method", methods}},
                   .x = {"angle"},
                   .x_label = "angle between the tokens (radians)",
                   .y = "collision_rate",
                   .y_label = "P(they find each other)",
                   .theory = "collision_rate_theory"}})};
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  std::vector<Comparison> off;
  for (const auto& method : with_law)
    for (const auto& angle : angles(size)) {
      const nlohmann::json where{{"method", method}, {"input", "pair:angle=" + angle}};
      const Samples theory = results.scalar(where, "collision_rate_theory");
      Samples difference = results.scalar(where, "collision_rate");
      for (auto& [replicate, rate] : difference) rate -= theory.at(replicate);
      off.push_back({fmt::format("{} at angle {}", method, angle),
                     mean(difference, share_of_error_rate(with_law.size() * angles(size).size()))});
    }
  std::vector<Bounded> by_length;
  const auto rate = [&](const std::string& input) {
    return results.scalar({{"method", with_law[1]}, {"input", input}}, "collision_rate");
  };
  const Samples of_long = rate(long_pair);
  for (const auto& [replicate, of_short] : rate(short_pair))
    by_length.push_back({fmt::format("replicate {}", replicate), std::abs(of_short - of_long.at(replicate)), 0});
  return {all_contain(0, 0.05,
                      "Hashing finds a pair as often as the law says, 1 - theta/pi with 2 buckets and its square with "
                      "4, and with 4 rounds 1 - (1 - P)^4 (measured share less the law's)",
                      off),
          all_at_most("Tokens 30 times as long share buckets in the same draws: hashing sees the angle alone "
                      "(difference of the shares)",
                      by_length)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
