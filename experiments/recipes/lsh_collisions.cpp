// The probability that Reformer's hashing finds a pair. methods.md F6: with b buckets and one round
//   P(h(x) = h(y)) = 1 - theta/pi  (b = 2),  (1 - theta/pi)^2  (b = 4);   c rounds: 1 - (1 - P)^c
// Only the angle counts: lengths, and with them the weights of attention, have no effect.
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "harness/runner/recipe.hpp"

namespace attnbench::lsh_collisions_recipe {
namespace {

const Specs with_law{"reformer:buckets=2,rounds=1", "reformer:buckets=4,rounds=1", "reformer:buckets=4,rounds=4"};
const std::string many_buckets = "reformer:buckets=32,rounds=1";
const std::string short_pair = "pair:direction=axis,angle=1,length=0.1",
                  long_pair = "pair:direction=axis,angle=1,length=3";

void write(Recipe& recipe) {
  const Index count = recipe.sized<Index>(2, 6, 12);
  Specs angles;
  for (Index i = 0; i < count; ++i)
    angles.push_back(
        fmt::format("{:.4f}", std::numbers::pi * (static_cast<double>(i) + 0.5) / static_cast<double>(count)));
  const Index draws = recipe.sized<Index>(64, 512, 8192);
  RunRequest request{.experiment = fmt::format("collisions:draws={}", draws),
                     .methods = with_law,
                     .inputs = {"pair"},
                     .n = {2},
                     .d = {8},
                     .causal = false,
                     .sweep = {{"angle", angles}},
                     .replicates = recipe.sized<Index>(2, replicates_for_means)};
  request.methods.push_back(many_buckets);
  const Cells all = recipe.run(request);
  RunRequest by_length = request;
  by_length.methods = {with_law[1]};
  by_length.inputs = {short_pair, long_pair};
  by_length.sweep = {};
  const Cells lengths = recipe.run(by_length);
  recipe.figure("lsh-collisions", "How often hashing finds a pair",
                "Two tokens alone, d = 8, a draw of the hash each time; 95 % intervals over replicates, lines are the "
                "closed forms. More buckets look at fewer pairs and miss more of the near ones; more rounds win those "
                "back, and far ones with them.",
                {{.title = "one pair of tokens",
                  .cells = all,
                  .x = {"angle"},
                  .x_label = "angle between the tokens (radians)",
                  .y = "collision_rate",
                  .y_label = "P(they find each other)",
                  .theory = "collision_rate_theory"}});

  recipe.judge(
      {.text = "Reformer's hash puts two vectors at an angle theta into one bucket with probability 1 - theta/pi for 2 "
               "buckets, P = (1 - theta/pi)^2 for 4, and 1 - (1 - P)^4 for 4 in one of 4 rounds",
       .source = "Charikar 2002, Similarity estimation techniques from rounding algorithms, abstract (the law); "
                 "Kitaev et al. 2020, arXiv:2001.04451, section 2 (the hash); the law is of 2 buckets, those of 4 and "
                 "of rounds are derived from it",
       .quotation = "We then define h(x) = arg max([xR; -xR]) where [u; v] denotes the concatenation of two "
                    "vectors.",
       .definition = fmt::format("the share of draws of the hash in which two vectors share a bucket, in at least one "
                                 "of the rounds, less the probability by the law; {} angles from 0 to pi, d = 8, {} "
                                 "draws in each of {} replicates; 2 and 4 buckets in one round, 4 buckets in 4 rounds",
                                 count, draws, recipe.sized<Index>(2, replicates_for_means)),
       .threshold = "0, which every interval must hold, with intervals narrower than +-0.05",
       .because = "the law of random hyperplanes, and independent rounds"},
      [=, &recipe] {
        std::vector<Comparison> off;
        for (const auto& method : with_law)
          for (const auto& angle : angles) {
            const Cells here = all.method(method).input("pair:angle=" + angle);
            const Samples rates = here.scalar("collision_rate");
            double hits = 0;
            for (const auto& [replicate, rate] : rates) hits += rate * static_cast<double>(draws);
            Estimate less_law = share_of(std::llround(hits), draws * std::ssize(rates),
                                         recipe.error_rate(with_law.size() * angles.size()));
            if (rates.empty()) return Finding{Ruling::open, "a cell has no number"};
            const double law = here.scalar("collision_rate_theory").begin()->second;
            less_law.value -= law;
            less_law.interval = {less_law.interval.low - law, less_law.interval.high - law};
            off.push_back({fmt::format("{} at angle {}", method, angle), less_law});
          }
        return all_contain(0, 0.05, off);
      });
  recipe.judge(
      {.text = "Reformer's hash does not depend on the length of vectors: two vectors 30 times as long share a bucket "
               "in as many of the same draws",
       .source = "Kitaev et al. 2020, arXiv:2001.04451, caption of Fig. 1",
       .quotation = "An angular locality sensitive hash uses random rotations of spherically projected points "
                    "to establish buckets by an argmax over signed axes projections.",
       .definition = fmt::format("the difference between the shares of draws in which two vectors share one of 4 "
                                 "buckets, of lengths 0.1 and of lengths 3, both at an angle of 1 radian, with the "
                                 "same {} draws of the hash, in each replicate; d = 8, one round",
                                 draws),
       .threshold = "0: the same hashes",
       .because = "an argmax does not change when its arguments are multiplied"},
      [=] {
        std::vector<Bounded> differences;
        const Samples of_long = lengths.input(long_pair).scalar("collision_rate");
        for (const auto& [replicate, of_short] : lengths.input(short_pair).scalar("collision_rate"))
          differences.push_back(
              {fmt::format("replicate {}", replicate), std::abs(of_short - of_long.at(replicate)), 0});
        return all_at_most(differences);
      });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "lsh-collisions",
                             .summary = "How often Reformer's hashing finds a pair, by the angle between its tokens",
                             .formula = "With which probability does Reformer's hashing find a pair of tokens?",
                             .reference = "Kitaev et al. 2020, arXiv:2001.04451, section 2"},
                    .write = write});

}  // namespace
}  // namespace attnbench::lsh_collisions_recipe
