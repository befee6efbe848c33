// Whether feature maps leave entries of q and k without a gradient: ReLU does at negative entries, elu + 1 never does.
// Raw and scaled q and k have the same zeros; the recipe judges raw ones, as published.
#include <fmt/format.h>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench::zero_gradients_recipe {
namespace {

const std::string elu = "linear:inputs=unscaled", relu = "linear:features=relu,inputs=unscaled";
const Specs others{"linear:features=exp,inputs=unscaled", "linear:features=relu2,inputs=unscaled"};

struct Input {
  std::string name;
  Cells cells;
};

const std::string zero_share =
    "the share of entries of the gradients of q and k that are exactly 0, in double, for linear attention to raw q and "
    "k and the loss <G, out> with normal G, over those queries and keys that have a gradient";
void judge_claim(Recipe& recipe, const std::vector<Input>& inputs, const std::string& where) {
  recipe.judge(
      {.text =
           "ReLU features set the gradients of all negative entries of q and k to zero, and elu + 1 sets none to zero",
       .source = "Katharopoulos et al. 2020, arXiv:2006.16236, section 3.2.1",
       .quotation = "We prefer elu(.) over relu(.) to avoid setting the gradients to 0 when x is negative.",
       .definition = fmt::format("{}; of elu + 1 this share itself, of ReLU the share of negative entries of q and k "
                                 "less this share, in every replicate. {}",
                                 zero_share, where),
       .threshold = "0: with elu + 1 no entry is without a gradient, with ReLU every negative one is",
       .because = "the derivative of ReLU is 0 below 0, that of elu + 1 is e^x"},
      [=] {
        std::vector<Bounded> all;
        for (const auto& [name, cells] : inputs) {
          for (const auto& [replicate, share] : cells.method(elu).scalar("zero_gradients"))
            all.push_back({"elu + 1 on " + name, share, 0});
          const Samples without = cells.method(relu).scalar("zero_gradients");
          for (const auto& [replicate, negative] : cells.method(relu).scalar("negative_entries"))
            all.push_back(
                {"negative entries with a gradient under ReLU on " + name, negative - without.at(replicate), 0});
        }
        return all_at_most(all);
      });
}

void judge_share(Recipe& recipe, const std::vector<Input>& inputs, const std::string& where) {
  const double rate = recipe.error_rate(inputs.size());
  recipe.judge(
      {.text = "How large a share of the entries of the gradients of q and k is exactly zero with ReLU features",
       .definition = fmt::format("{}. {}", zero_share, where),
       .threshold = "none is published: 0.25 and 0.75 are there for the reader",
       .expected = Ruling::measured,
       .because = "it is at least the share of negative entries, which is half of normal ones"},
      [=] {
        std::vector<Comparison> shares;
        for (const auto& [name, cells] : inputs)
          shares.push_back({name, median_of(cells.method(relu).scalar("zero_gradients"), rate)});
        return values_of(shares, {0.25, 0.75});
      });
}

void write(Recipe& recipe) {
  const Index n = recipe.sized<Index>(64, 256, 1024);
  RunRequest request{.experiment = "zero-gradients",
                     .methods = {elu, relu, others[0], others[1]},
                     .inputs = {"gaussian"},
                     .n = {n},
                     .causal = false,
                     .replicates = recipe.sized<Index>(2, texts)};
  std::vector<Input> inputs{{"normal q and k", recipe.run(request)}};
  const auto heads = telling_heads_of_models(recipe);
  request.causal = {};
  const Cells on_heads = run_on(recipe, request, heads);
  for (const RealHead& head : heads) inputs.push_back({head.name(), on_heads.input(head.input())});
  std::vector<Panel> panels;
  for (const auto& of_model : by_model(heads)) {
    Cells cells;
    for (const std::string& input : inputs_of(of_model)) cells = cells + on_heads.input(input);
    panels.push_back({.title = of_model.front().part(),
                      .cells = cells,
                      .x = {"layer"},
                      .x_label = "layer",
                      .y = "zero_gradients",
                      .y_label = "share of zero gradients"});
  }
  recipe.figure("zero-gradients", "Entries of q and k without a gradient",
                fmt::format("Shares of the entries of the gradients of q and k that are exactly zero, over tokens that "
                            "have one, by layer; means over heads, texts and draws with 95 % intervals. {}. exp and "
                            "elu + 1 have next to none.",
                            heads_in_words(heads, n)),
                panels);
  const std::string where =
      fmt::format("Normal q and k without a mask, n = {}, d = 64, medians over {} draws, and heads. {}", n,
                  request.replicates, heads_in_words(heads, n));
  judge_claim(recipe, inputs, where);
  judge_share(recipe, inputs, where);
}

const bool registered = add(
    RecipeEntry{.text = {.name = "zero-gradients",
                         .summary = "Zero gradients of queries and keys under ReLU and elu + 1",
                         .formula = "Does ReLU set gradients of queries and keys to zero, and does elu + 1 avoid it?",
                         .reference = "Katharopoulos et al. 2020, arXiv:2006.16236, section 3.2.1"},
                .write = write});

}  // namespace
}  // namespace attnbench::zero_gradients_recipe
