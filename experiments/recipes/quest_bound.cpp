// The bounds by which Quest chooses pages of keys: how far they are above the logits, whether the rows that follow them
// read their largest logit, and in how many rows they prove it.
#include <fmt/format.h>

#include "experiments/recipes/field.hpp"
#include "experiments/recipes/real_heads.hpp"

namespace attnbench::quest_bound_recipe {
namespace {

const std::vector<Index> pages{4, 16, 64};  // keys of a page; the authors have 16

// A quarter of n keys a row.
std::string quest(Index page, Index n) { return fmt::format("quest:page={},keep={}", page, n / 4 / page); }

// The same share for each head.
struct Shares {
  Cells cells;
  std::vector<RealHead> heads;
  Index n;
  double rate;

  std::vector<Region> by_model(const std::string& metric, Index page) const {
    std::vector<Region> regions;
    for (const RealHead& head : heads)
      region(regions, head.part()).comparisons.push_back({head.name(), median_of(samples(head, metric, page), rate)});
    return regions;
  }
  Samples samples(const RealHead& head, const std::string& metric, Index page) const {
    return cells.input(head.input()).method(quest(page, n)).scalar(metric);
  }
};

void judge(Recipe& recipe, const Shares& shares, const std::string& measured) {
  recipe.judge({.text = "Rows that read a quarter of their keys, in the pages of 16 keys with the largest bounds, read "
                        "their largest logit in nine of ten cases, on heads of " +
                        three_models,
                .source = "Tang et al. 2024, arXiv:2406.10774, section 3.3",
                .paraphrase = "the bounds estimate which pages hold the critical tokens",
                .definition = "the share of rows whose largest logit is one that the row reads" + measured,
                .threshold = "0.9, our own: the source gives no number",
                .expected = Ruling::open,
                .because = "a page is chosen by a bound that no single key of it needs to reach"},
               [=] { return above_where(0.9, shares.by_model("top_read", 16)); });
  recipe.judge({.text = "The bounds prove in at least half of the rows that the largest logit was read, with pages of "
                        "16 keys and a quarter of the keys, on heads of " +
                        three_models,
                .definition = "the share of rows in which no bound of an unread page is above the largest logit that "
                              "was read" +
                              measured,
                .threshold = "0.5, our own: no source uses the bounds as a proof",
                .expected = Ruling::open,
                .because = "a bound takes the best of each channel from another key"},
               [=] { return above_where(0.5, shares.by_model("certified", 16)); });
  recipe.judge({.text = "How far Quest's bounds are above the logits of their pages, in standard deviations of a row's "
                        "logits, on heads of " +
                        three_models,
                .definition = "the mean of bound less logit over keys, over the mean over rows of the standard "
                              "deviation of logits" +
                              measured + ", for pages of 4, 16 and 64 keys",
                .threshold = "none: the values. 1 and 4 are there to be read off",
                .expected = Ruling::measured,
                .because = "the more keys a page has, the further apart are the extremes of its channels"},
               [=, &recipe] {
                 std::vector<Comparison> found;
                 const double rate = recipe.error_rate(pages.size() * shares.heads.size());
                 for (const Index page : pages)
                   for (const RealHead& head : shares.heads)
                     found.push_back({fmt::format("pages of {}, {}", page, head.name()),
                                      median_of(quotients(shares.samples(head, "slack", page),
                                                          shares.samples(head, "spread", page)),
                                                rate)});
                 return values_of(found, {1, 4});
               });
}

void write(Recipe& recipe) {
  const Index n = recipe.sized<Index>(256, 512, 1024);
  const auto heads = telling_heads_of_models(recipe);
  RunRequest request{.experiment = "logit-bounds", .n = {n}, .replicates = recipe.sized<Index>(2, 24, texts)};
  for (const Index page : pages) request.methods.push_back(quest(page, n));
  const Cells cells = run_on(recipe, request, heads);
  std::vector<Panel> panels;
  for (const auto& [metric, label] :
       {std::pair{"top_read", "rows that read their largest logit"}, std::pair{"certified", "rows with a proof of it"}})
    panels.push_back({.title = label,
                      .cells = cells.where({{"input", inputs_of(first_and_last(heads))}}),
                      .x = {"page"},
                      .x_label = "keys of a page",
                      .x_scale = "log2",
                      .y = metric,
                      .y_label = "share of rows",
                      .interval = "median",
                      .series = {"input"}});
  recipe.figure(
      "quest-bound", "Bounds of logits by page",
      fmt::format("Quest with {} keys a row, a quarter; of each model two heads. Medians over texts with 95 % "
                  "intervals. {}.",
                  n / 4, heads_in_words(heads, n)),
      panels);
  judge(recipe, {cells, heads, n, recipe.error_rate(heads.size())},
        fmt::format(", the median over texts. {}", heads_in_words(heads, n)));
}

const bool registered =
    add(RecipeEntry{.text = {.name = "quest-bound",
                             .summary = "Quest's bounds of logits: how tight they are, and what they prove",
                             .formula = "Do bounds by page find the largest logit, and can they prove it?",
                             .reference = "Tang et al. 2024, arXiv:2406.10774"},
                    .write = write});

}  // namespace
}  // namespace attnbench::quest_bound_recipe
