// Expected attention keeps the keys that normal queries would weigh most. Whether the queries of trained heads are
// normal, and whether their first half says which keys the second half weighs.
#include <fmt/format.h>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench::expected_attention_recipe {
namespace {

void write(Recipe& recipe) {
  const Index n = recipe.sized<Index>(256, 512, 1024);
  const auto heads = telling_heads_of_models(recipe);
  const Cells cells = run_on(recipe,
                             {.experiment = "gaussian-queries",
                              .methods = {"softmax"},
                              .n = {n},
                              .replicates = recipe.sized<Index>(2, 24, texts)},
                             heads);
  std::vector<Panel> panels;
  for (const auto& [metric, label] : {std::pair{"order", "rank correlation over keys"},
                                      std::pair{"kurtosis", "kurtosis over that of normal queries"}})
    panels.push_back({.title = label,
                      .kind = "table",
                      .cells = cells,
                      .y = metric,
                      .y_label = label,
                      .interval = "median",
                      .series = {"input"}});
  recipe.figure("expected-attention", "The weights of keys, from the first half of the queries and from the second",
                fmt::format("Left: the weight of a key that follows from mean and covariance of the first half, "
                            "against the mean weight that the second half gives it. Medians over texts with 95 % "
                            "intervals. {}.",
                            heads_in_words(heads, n)),
                panels);
  const auto regions = [=, &recipe](const std::string& metric) {
    std::vector<Region> all;
    for (const RealHead& head : heads)
      region(all, head.part())
          .comparisons.push_back(
              {head.name(), median_of(cells.input(head.input()).scalar(metric), recipe.error_rate(heads.size()))});
    return all;
  };
  const std::string where = fmt::format("the median over texts. {}", heads_in_words(heads, n));
  recipe.judge(
      {.text = "The tails of queries are those of a normal law, on heads of " + three_models,
       .source = "Devoto et al. 2025, arXiv:2510.00636, section 3",
       .paraphrase = "queries of a head are taken to be normal",
       .definition = "Mardia's kurtosis of the first half of the queries over that of as many normal ones, " + where,
       .threshold = "1.1: tails a tenth heavier than those of the normal law. Lighter ones count as normal",
       .expected = Ruling::open,
       .because = "queries of few kinds of tokens are a mixture, not one normal law"},
      [=] { return below_where(1.1, regions("kurtosis")); });
  recipe.judge(
      {.text = "Mean and covariance of earlier queries order the keys as later queries weigh them, on heads of " +
               three_models,
       .source = "Devoto et al. 2025, arXiv:2510.00636, section 3",
       .paraphrase = "the attention that keys will get is estimated from the distribution of queries",
       .definition = "the rank correlation over keys of mu.k + k^T Sigma k / 2, from the first half of the "
                     "queries, and log mean exp(q.k) over the second, " +
                     where,
       .threshold = "0.9, our own: the source gives no number",
       .expected = Ruling::open,
       .because = "ranks need less than the law: any law with that mean and spread will do"},
      [=] { return above_where(0.9, regions("order")); });
  recipe.judge(
      {.text = "How much the mean of earlier queries alone says about the order of keys",
       .definition = "the rank correlation over keys of mu.k and log mean exp(q.k) over the second half, " + where,
       .threshold = "none: the values. 0.5 and 0.9 are there to be read off",
       .expected = Ruling::measured,
       .because = "the covariance counts keys that few queries weigh much"},
      [=] {
        std::vector<Comparison> found;
        for (const Region& one : regions("order_of_mean"))
          found.insert(found.end(), one.comparisons.begin(), one.comparisons.end());
        return values_of(found, {0.5, 0.9});
      });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "expected-attention",
                             .summary = "Whether the queries of trained heads are normal, and what they say of keys",
                             .formula = "Do earlier queries say which keys later ones weigh?",
                             .reference = "Devoto et al. 2025, arXiv:2510.00636"},
                    .write = write});

}  // namespace
}  // namespace attnbench::expected_attention_recipe
