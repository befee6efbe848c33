// How much of the output approximations lose when the logits have ALiBi's penalty on distance: a penalty makes the far
// keys unimportant, and it makes the logits large, which is what features of fixed number pay for.
#include <fmt/format.h>

#include "experiments/recipes/field.hpp"

namespace attnbench::what_alibi_changes_recipe {
namespace {

const std::string error = "relative_output_error", window = "local:window=64", performer = "performer:m=256",
                  law = "gaussian:scale=0.5";
// Feature maps whose number of features does not depend on n.
const std::vector<std::pair<std::string, std::string>> features{
    {"Performer, m = 256", performer}, {"Taylor, order 2", "taylor"}, {"1 + elu", "linear"}};
// Powers of 2 from 2^-12. The source's 8 heads have 2^-8 to 2^-1; of 2^-2 and more a window sees all the weight.
const std::vector<double> slopes{0.000244140625, 0.0009765625, 0.00390625, 0.015625, 0.0625};
constexpr double judged = 0.0625;

std::string alibi(double slope) { return fmt::format("alibi:[{}],slope={}", law, slope); }

Samples errors(const Cells& cells, const std::string& method, double slope) {
  return cells.input(alibi(slope)).method(method).scalar(error);
}

void judge(Recipe& recipe, const Cells& cells, const std::string& measured) {
  const auto changed = [&recipe, cells](const std::string& method, size_t comparisons) {
    return median_ratio(errors(cells, method, judged), errors(cells, method, 0), recipe.error_rate(comparisons));
  };
  recipe.judge({.text = "With ALiBi's penalty of slope 1/16 softmax over a window of 64 keys errs less than without a "
                        "penalty",
                .source = "Press et al. 2021, arXiv:2108.12409, section 3",
                .paraphrase = "the penalty is a bias towards recent tokens",
                .definition = measured + "with the slope 1/16 over that with the slope 0, draw by draw",
                .threshold = equal_errors,
                .because = "a key 64 tokens back has lost exp(-4) of its weight"},
               [=] {
                 return errs_less_where({{"slope 1/16 over 0", {{"", changed(window, 1)}}}});
               });
  recipe.judge(
      {.text = "With ALiBi's penalty of slope 1/16 features whose number does not grow with n err more than "
               "without a penalty",
       .definition = measured + "with the slope 1/16 over that with the slope 0, draw by draw, of Performer, of the "
                                "Taylor features of order 2 and of 1 + elu",
       .threshold = "1: equal errors. Ratios within a factor of 1.1 count as equal, which is not more",
       .because = "logits reach 1/16 of n below those of the last key, and errors of such features grow with "
                  "the logits"},
      [=] {
        std::vector<Region> regions;
        for (const auto& [name, method] : features) regions.push_back({name, {{"", changed(method, features.size())}}});
        return above_where(1, regions, {}, equal_within);
      });
  recipe.judge(
      {.text = "With ALiBi's penalty softmax over a window of 64 keys errs less than Performer with 256 vectors",
       .definition = measured + "of the window over that of Performer, draw by draw, by the slope",
       .threshold = equal_errors,
       .expected = Ruling::depends,
       .because = "the window wins where the keys beyond it have lost their weight"},
      [=, &recipe] {
        std::vector<Region> regions;
        for (const double slope : slopes)
          regions.push_back(
              {.name = fmt::format("slope {:g}", slope),
               .comparisons = {{"", median_ratio(errors(cells, window, slope), errors(cells, performer, slope),
                                                 recipe.error_rate(slopes.size()))}},
               .coordinate = slope});
        return below_where(1, regions, "slope", equal_within);
      });
}

void write(Recipe& recipe) {
  const Index n = recipe.sized<Index>(128, 512, 1024);
  RunRequest request{.experiment = "attention-error:matrix=false",
                     .methods = {"uniform", window},
                     .inputs = {alibi(0)},
                     .n = {n},
                     .d = {65},
                     .causal = true,
                     .replicates = recipe.sized<Index>(2, 24, 32)};
  for (const auto& [name, method] : features) request.methods.push_back(method);
  for (const double slope : slopes) request.inputs.push_back(alibi(slope));
  const Cells cells = recipe.run(request);
  Cells penalised;
  for (const double slope : slopes) penalised = penalised + cells.input(alibi(slope));
  recipe.figure("what-alibi-changes", "Errors of the output with ALiBi's penalty on distance",
                fmt::format("Normal queries and keys of standard deviation 0.5, n = {}, d = 64, causal; medians over "
                            "inputs and draws with 95 % intervals. The mean of V is that of the keys that a row sees.",
                            n),
                {{.title = "penalty of slope (i - j)",
                  .cells = penalised,
                  .x = {"slope"},
                  .x_label = "slope of the penalty",
                  .x_scale = "log2",
                  .y = error,
                  .y_label = "relative error of the output",
                  .y_scale = "log10",
                  .interval = "median"}});
  judge(recipe, cells,
        fmt::format("the relative Frobenius error of the output, normal queries and keys of standard deviation 0.5, n "
                    "= {}, d = 64 and one coordinate for the penalty, causal, the median over inputs and draws: ",
                    n));
}

const bool registered =
    add(RecipeEntry{.text = {.name = "what-alibi-changes",
                             .summary = "Approximations where logits have a penalty on distance",
                             .formula = "Which approximations gain and which lose where logits have ALiBi's penalty?",
                             .reference = "Press et al. 2021, arXiv:2108.12409"},
                    .write = write});

}  // namespace
}  // namespace attnbench::what_alibi_changes_recipe
