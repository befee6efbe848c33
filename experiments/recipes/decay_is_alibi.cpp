// A recurrence whose state decays weighs distance as ALiBi does, token for token. Features that see ALiBi as a
// coordinate of queries and keys estimate its penalty, or miss it.
#include <fmt/format.h>

#include "experiments/recipes/field.hpp"

namespace attnbench::decay_is_alibi_recipe {
namespace {

const std::vector<double> slopes{0.00390625, 0.03125, 0.25};  // of ALiBi's 8 heads the last, the fifth and the second
constexpr double rounding = 1e-6;
const std::string penalty = "penalty", deviation = "largest_deviation", law = "gaussian:scale=0.5";

std::string alibi(double slope) { return fmt::format("alibi:[{}],slope={}", law, slope); }
std::string decay(double slope) { return fmt::format("retnet:slope={}", slope); }

struct Features {
  std::string name, spec;
};
const std::vector<Features> features{{"Performer, m = 64", "performer:m=64"},
                                     {"Performer, m = 1024", "performer:m=1024"},
                                     {"Taylor, order 2", "taylor"},
                                     {"1 + elu", "linear"}};

void write(Recipe& recipe) {
  const Index n = recipe.sized<Index>(32, 128, 256), draws = recipe.sized<Index>(2, 24, 32);
  RunRequest of_decay{
      .experiment = "distance-penalty", .inputs = {law}, .n = {n}, .d = {64}, .causal = true, .replicates = draws};
  for (const double slope : slopes) of_decay.methods.push_back(decay(slope));
  RunRequest of_alibi{.experiment = "distance-penalty",
                      .methods = {"softmax"},
                      .n = {n},
                      .d = {65},
                      .causal = true,
                      .replicates = draws};
  for (const auto& one : features) of_alibi.methods.push_back(one.spec);
  for (const double slope : slopes) of_alibi.inputs.push_back(alibi(slope));
  const Cells decays = recipe.run(of_decay), penalised = recipe.run(of_alibi);

  recipe.figure("decay-is-alibi", "Weight that a key loses with distance",
                fmt::format("Logarithm of the weight lost a token, the mean over pairs; normal queries and keys of "
                            "standard deviation 0.5, n = {}, d = 64 and one coordinate for the penalty, causal. "
                            "Medians over inputs and draws with 95 % intervals.",
                            n),
                {{.title = "ALiBi, given as a coordinate",
                  .cells = penalised,
                  .x = {"slope"},
                  .x_label = "slope of the penalty",
                  .x_scale = "log2",
                  .y = penalty,
                  .y_label = "weight lost a token [nat]",
                  .interval = "median"}});
  const std::string measured = fmt::format(
      "log(A_ij / A_ii) less the same without the penalty, pairs j < i; normal queries and keys of standard deviation "
      "0.5, n = {}, d = 64, causal, slopes 1/256, 1/32 and 1/4",
      n);
  recipe.judge(
      {.text = "A decay of exp(-slope) a token is ALiBi's penalty of that slope",
       .source = "Sun et al. 2023, arXiv:2307.08621, eq. 5; Press et al. 2021, arXiv:2108.12409, section 3",
       .paraphrase = "retention weighs q.k by a power of gamma, ALiBi adds a multiple of the distance to the "
                     "logit",
       .definition = "the largest distance from -slope (i - j) of " + measured +
                     ": retention with that decay, and softmax with ALiBi as one more coordinate",
       .threshold = "1e-6: an identity, to rounding, which the logarithm of a weight q.k near 0 makes larger",
       .because = "a product with exp(-slope (i - j)) is a sum in the logarithm"},
      [=] {
        std::vector<Bounded> found;
        for (const double slope : slopes) {
          for (const auto& [replicate, value] : decays.method(decay(slope)).scalar(deviation))
            found.push_back({fmt::format("retention, slope {:g}, draw {}", slope, replicate), value, rounding});
          for (const auto& [replicate, value] : penalised.input(alibi(slope)).method("softmax").scalar(deviation))
            found.push_back({fmt::format("softmax, slope {:g}, draw {}", slope, replicate), value, rounding});
        }
        return all_at_most(found);
      });
  recipe.judge(
      {.text = "How much of ALiBi's penalty features keep that see it as a coordinate",
       .definition = "the mean weight lost a token over the slope, by the slope: " + measured +
                     "; Performer with 64 and 1024 vectors, Taylor features of order 2, and 1 + elu",
       .threshold = "none: the values. 0.9 and 1.1, within a tenth of the penalty, are there to be read off",
       .expected = Ruling::measured,
       .because = "features estimate exp(q.k) where the logits are small, and the coordinate makes them large"},
      [=, &recipe] {
        std::vector<Comparison> found;
        const double rate = recipe.error_rate(slopes.size() * features.size());
        for (const double slope : slopes)
          for (const auto& [name, spec] : features) {
            Samples ratios = penalised.input(alibi(slope)).method(spec).scalar(penalty);
            for (auto& [replicate, value] : ratios) value /= slope;
            found.push_back({fmt::format("{}, slope {:g}", name, slope), median_of(ratios, rate)});
          }
        return values_of(found, {0.9, 1.1});
      });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "decay-is-alibi",
                             .summary = "A decaying state and a penalty on distance",
                             .formula = "Is a decay ALiBi, and do features keep ALiBi's penalty?",
                             .reference = "Sun et al. 2023, arXiv:2307.08621; Press et al. 2021, arXiv:2108.12409"},
                    .write = write});

}  // namespace
}  // namespace attnbench::decay_is_alibi_recipe
