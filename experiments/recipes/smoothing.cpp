// Whether rounding keys less their mean, instead of the keys themselves, lessens the error of quantised attention. A
// shift of all keys changes no weight of softmax, so that in exact arithmetic both are the same.
#include <fmt/format.h>

#include "experiments/recipes/field.hpp"
#include "experiments/recipes/real_heads.hpp"

namespace attnbench::smoothing_recipe {
namespace {

const std::string error = "relative_output_error";
const std::vector<Index> widths{8, 4};  // bits of a number

std::string quantised(Index bits, bool smooth) {
  return fmt::format("quantised:bits={0},queries={0},smooth={1}", bits, smooth);
}

void write(Recipe& recipe) {
  const Index n = recipe.sized<Index>(64, 512, 1024);
  const auto heads = telling_heads_of_models(recipe);
  Cells cells;
  for (const auto& of_model : by_model(heads)) {
    RunRequest request{.experiment = "attention-error:matrix=false",
                       .methods = {"uniform"},
                       .n = {n},
                       .replicates = recipe.sized<Index>(2, 24, texts)};
    for (const Index bits : widths)
      for (const bool smooth : {false, true}) request.methods.push_back(quantised(bits, smooth));
    cells = cells + run_on(recipe, request, of_model);
  }
  std::vector<Panel> panels;
  for (const auto& of_model : by_model(heads)) {
    Cells here;
    for (const auto& input : inputs_of(of_model)) here = here + cells.input(input);
    panels.push_back(
        table_column(here, error, fmt::format("error of the output, {}", of_model.front().part()), "median", "log10"));
  }
  recipe.figure("smoothing", "Quantised queries and keys, with the mean of the keys and without",
                fmt::format("Relative error of the output, medians over heads and texts. Blocks of 64 tokens share a "
                            "scale. {}.",
                            heads_in_words(heads, n)),
                panels);
  for (const Index bits : widths)
    recipe.judge(
        {.text =
             fmt::format("With queries and keys of {} bits, keys less their mean give a smaller error of the output "
                         "than the keys themselves, on heads of {}",
                         bits, three_models),
         .source = "Zhang et al. 2024, arXiv:2410.02367, section 4.2",
         .paraphrase = "keys have outliers in some channels, which all tokens share; subtracting the mean over tokens "
                       "removes them and makes quantised attention more accurate",
         .definition =
             fmt::format("the relative Frobenius error of the output with smooth=true over that with "
                         "smooth=false, text by text, in double, a region for each model; values stay as they "
                         "are. {}",
                         heads_in_words(heads, n)),
         .threshold = equal_errors,
         .expected = Ruling::open,
         .because = "it must, where the mean of the keys is large against their spread; not every head is like that"},
        [=, &recipe] {
          std::vector<Region> regions;
          for (const RealHead& head : heads) {
            const Cells here = cells.input(head.input());
            const auto errors = [&](bool smooth) { return here.method(quantised(bits, smooth)).scalar(error); };
            region(regions, head.part())
                .comparisons.push_back(
                    {head.name(), median_ratio(errors(true), errors(false), recipe.error_rate(heads.size()))});
          }
          return errs_less_where(regions);
        });
}

const bool registered = add(RecipeEntry{.text = {.name = "smoothing",
                                                 .summary = "Quantised keys, with their mean and without",
                                                 .formula = "Does rounding keys less their mean make less of an error?",
                                                 .reference = "Zhang et al. 2024, arXiv:2410.02367"},
                                        .write = write});

}  // namespace
}  // namespace attnbench::smoothing_recipe
