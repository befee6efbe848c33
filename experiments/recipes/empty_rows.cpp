// Non-negative similarities are not enough: a row needs at least one above zero. methods.md C: with ReLU a row is empty
// if no channel is positive both in the query and in some key. For independent normal queries and n keys, a channel is
// positive in both with probability (1 - 2^-n) / 2, so a row of d channels is empty with probability
// (1/2 + 2^-(n+1))^d. ReLU is homogeneous: raw and scaled q and k give the same rows.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "harness/runner/recipe.hpp"

namespace attnbench::empty_rows_recipe {
namespace {

const std::string relu = "linear:features=relu", share_of_empty = "fraction_nonpositive_normalisers";
const std::string normal = "gaussian", half_normal = "signs:positive=1";

double expected(Index d, Index n) {
  return std::pow(0.5 + std::exp2(-static_cast<double>(n + 1)), static_cast<double>(d));
}

void judge_sufficient(Recipe& recipe, const Cells& all, const std::vector<Index>& narrow, Index n) {
  const double rate = recipe.error_rate(2 * narrow.size());
  recipe.judge(
      {.text = fmt::format("With {} channels, linear attention with ReLU features, whose similarity is non-negative, "
                           "is defined in every row: no row is left without weight",
                           fmt::join(narrow, ", ")),
       .source = "Katharopoulos et al. 2020, arXiv:2006.16236, section 3.2",
       .quotation = "Note that the only constraint we need to impose to sim(.), in order for equation 3 to define an "
                    "attention function, is to be non-negative.",
       .definition =
           fmt::format("the share of rows whose n similarities phi(q).phi(k), phi(x) = max(x, 0), sum to 0 and so "
                       "cannot be normalised; d = {}, n = {}, bidirectional, medians over {} inputs. Once normal "
                       "queries and keys, once their absolute values (half-normal); each must hold at every d",
                       fmt::join(narrow, ", "), n,
                       all.method(relu).input(normal).where({{"d", narrow.front()}}).all().front().replicates),
       .threshold = "half of one row of the n: a smaller share means that no row is empty",
       .expected = Ruling::depends,
       .because = "a query without a positive channel has the similarity 0 to every key: at d channels 2^-d of the "
                  "normal ones, few at the widths of models"},
      [=] {
        std::vector<Region> regions;
        for (const auto& [name, input] :
             {std::pair{"normal queries and keys", normal}, {"half-normal queries and keys", half_normal}}) {
          regions.push_back({name, {}});
          for (const Index d : narrow)
            regions.back().comparisons.push_back(
                {fmt::format("d = {}", d),
                 median_of(all.method(relu).input(input).where({{"d", d}}).scalar(share_of_empty), rate)});
        }
        return below_where(0.5 / static_cast<double>(n), regions);
      });
}

void judge_share(Recipe& recipe, const Cells& all, const std::vector<Index>& narrow, Index n) {
  const double rate = recipe.error_rate(narrow.size());
  recipe.judge(
      {.text = "On independent normal queries and keys, ReLU features leave on average the share (1/2 + 2^-(n+1))^d of "
               "the rows without weight",
       .definition = fmt::format("the mean over {} inputs of the share of rows whose n similarities phi(q).phi(k), "
                                 "phi(x) = max(x, 0), sum to 0, less the closed form; d = {}, n = {}, bidirectional",
                                 all.method(relu).input(normal).where({{"d", narrow.front()}}).all().front().replicates,
                                 fmt::join(narrow, ", "), n),
       .threshold = "0, which every interval must hold, with intervals narrower than +-0.02: a third of the "
                    "smallest share, that of d = 4",
       .because = "channels are independent, and each is positive in the query and in a key with probability "
                  "(1 - 2^-n) / 2"},
      [=] {
        std::vector<Comparison> off;
        for (const Index d : narrow) {
          Samples difference = all.method(relu).input(normal).where({{"d", d}}).scalar(share_of_empty);
          for (auto& [replicate, share] : difference) share -= expected(d, n);
          off.push_back({fmt::format("d = {}", d), mean(difference, rate)});
        }
        return all_contain(0, 0.02, off);
      });
}

void write(Recipe& recipe) {
  const Index n = recipe.sized<Index>(32, 256);
  // The d at which normal queries leave rows empty.
  const auto narrow = recipe.sized<std::vector<Index>>({1}, {1, 2, 3, 4});
  RunRequest request{.experiment = "attention-error:matrix=false",
                     .methods = {relu, "linear"},
                     .inputs = {normal, half_normal},
                     .n = {n},
                     .d = recipe.sized<std::vector<Index>>({1, 16}, {1, 2, 3, 4, 6, 8, 16, 64}),
                     .causal = false,
                     .replicates = recipe.sized<Index>(2, 32)};
  Cells all = recipe.run(request);
  request.methods = {relu};
  request.d = narrow;
  request.replicates = recipe.sized<Index>(2, 256);
  all = all + recipe.run(request);
  recipe.figure(
      "empty-rows", "Rows without any weight",
      fmt::format("n = {}, bidirectional; means over 32 inputs or more with 95 % intervals. A row is empty when ReLU "
                  "leaves its query no positive channel, with probability 2^-d on normal queries, and never "
                  "on half-normal ones. elu + 1, the default of linear, is above zero and has none.",
                  n),
      {{.title = "normal and half-normal queries and keys",
        .cells = all,
        .x = {"d"},
        .x_label = "channels d",
        .x_scale = "log2",
        .y = share_of_empty,
        .y_label = "share of rows without weight",
        .series = {"method", "input"}}});
  judge_sufficient(recipe, all, narrow, n);
  judge_share(recipe, all, narrow, n);
}

const bool registered = add(RecipeEntry{
    .text = {.name = "empty-rows",
             .summary = "Rows that a non-negative similarity leaves without any weight",
             .formula = "Is it enough that a similarity is non-negative, or must the sum of a row be positive as well?",
             .reference = "Katharopoulos et al. 2020, arXiv:2006.16236, section 3.2"},
    .write = write});

}  // namespace
}  // namespace attnbench::empty_rows_recipe
