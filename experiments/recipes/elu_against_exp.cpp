// How near 1 + elu is to e^x: exactly where x <= 0, and below it by 1 - (1 + x) e^-x above, 26 % at x = 1 (methods.md
// C1). In attention, this difference is compared with the distance of the exponential's attention to average pooling.
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "experiments/recipes/conventions.hpp"
#include "experiments/recipes/real_heads.hpp"

namespace attnbench::elu_against_exp_recipe {
namespace {

// d = 1 and q = -k = x: the kernels are (1 + x) e^-x and e^x e^-x, raw and scaled alike.
const std::string opposite = fmt::format("pair:direction=axis,angle={}", std::numbers::pi);
const std::string distance = "relative_difference";

std::string experiment(const Convention& convention) {
  return fmt::format("agreement:[{}]", convention.of("linear:features=exp"));
}
std::string normal(const std::string& scale) { return "gaussian:scale=" + scale; }
std::vector<std::string> scales(const Recipe& recipe) {
  return recipe.sized<std::vector<std::string>>({"0.25", "2"}, {"0.125", "0.25", "0.5", "1", "2", "4"});
}

RunRequest compared(const Convention& convention, std::vector<std::string> inputs) {
  return {.experiment = experiment(convention),
          .methods = {convention.of("linear"), "uniform"},
          .inputs = std::move(inputs)};
}

struct Runs {
  Cells points, scales, shares;  // raw
  std::vector<Cells> heads;      // one for each convention
};

Runs run(Recipe& recipe) {
  RunRequest request = compared(conventions[0], {opposite});
  request.methods = {conventions[0].of("linear")};
  request.n = {2};
  request.d = {1};
  request.causal = false;
  request.sweep = {
      {"length", recipe.sized<std::vector<std::string>>({"0.5", "1"}, {"0.125", "0.25", "0.5", "1", "2", "4"})}};
  Runs runs{.points = recipe.run(request)};
  request = compared(conventions[0], {"gaussian"});
  request.n = {recipe.sized<Index>(64, 128, 512)};
  request.causal = false;
  request.sweep = {{"scale", scales(recipe)}};
  request.replicates = recipe.sized<Index>(2, 32);
  runs.scales = recipe.run(request);
  request.inputs = {"signs"};
  request.sweep = {
      {"positive", recipe.sized<std::vector<std::string>>({"0", "0.5"}, {"0", "0.1", "0.25", "0.5", "1"})}};
  request.replicates = recipe.sized<Index>(2, 8);  // drawn, not judged
  runs.shares = recipe.run(request);
  for (const Convention& convention : conventions) {
    request = compared(convention, {});
    request.n = {recipe.sized<Index>(64, 128, 1024)};
    request.replicates = recipe.sized<Index>(2, 18, texts);
    runs.heads.push_back(run_on(recipe, request, telling_heads_of_models(recipe)));
  }
  return runs;
}

// In units of the distance to the mean of V.
Estimate relative_distance(const Convention& convention, const Cells& here, double error_rate) {
  return median_ratio(here.method(convention.of("linear")).scalar(distance), here.method("uniform").scalar(distance),
                      error_rate);
}

void judge_map(Recipe& recipe, const Runs& runs) {
  recipe.judge(
      {.text = "1 + elu(x) is exp(x) for x <= 0 and falls short of it by the share 1 - (1 + x) exp(-x) for x "
               "> 0, which is 26 % at x = 1 and 59 % at x = 2",
       .definition = "of the two maps phi, the relative difference of the kernels phi(q) phi(k) at q = x, k = "
                     "-x and d = 1, x between 1/8 and 4, less the closed form: phi(-x) = exp(-x) for both, so that "
                     "the kernels differ as the maps do at x. And |A' - A| / |A| (Frobenius) of the linear "
                     "attention matrices of the two maps on q and k of which no entry is above 0, d = 64",
       .threshold = "1e-12: an identity, to rounding",
       .because = "1 + elu(x) is 1 + x above 0, and exp(x) below, by definition"},
      [=] {
        std::vector<Bounded> off;
        for (const RecipeCell& cell : runs.points.all()) {
          const double x = cell.asked.input.real("length"), closed_form = 1 - (1 + x) * std::exp(-x);
          for (const auto& [replicate, value] :
               runs.points.input(cell.asked.input.spec()).scalar("largest_kernel_difference"))
            off.push_back({fmt::format("at x = {:g}, {:.3g} less the closed form", x, value),
                           std::abs(value - closed_form), 1e-12});
        }
        for (const auto& [replicate, value] :
             runs.shares.input("signs:positive=0").method(conventions[0].of("linear")).scalar(distance))
          off.push_back({"|A' - A| / |A| where no entry is above 0", value, 1e-12});
        return all_at_most(off);
      });
}

const std::string how_far =
    "|A' - A| (Frobenius) over |U - A|: A' is the matrix of linear attention with 1 + elu, A that with exp features "
    "and U that of the mean of V. 0 is the same attention, 1 as far as average pooling";

Statement closeness(std::string text, const std::string& where) {
  return {
      .text = std::move(text),
      .source = "Su 2021, kexue.fm/archives/8338, section 激活函数",
      .quotation =
          "我们知道1+x正是e^x在x=0处的一阶泰勒展开，因此1+elu(x)这个选择其实已经相当接近e^x了。 (We know that 1 + x is "
          "just the first-order Taylor expansion of e^x at x = 0, so the choice 1 + elu(x) is in fact "
          "already quite close to e^x.)",
      .definition =
          how_far + ". " + where +
          ". The source speaks of the two functions near x = 0; here the attention that they give is compared",
      .threshold = "the source says \"quite close\" and gives none: 0.1, 0.25 and 0.5 are there for the reader",
      .expected = Ruling::measured,
      .because = "the two maps agree below 0 and part above, so that it depends on the size of entries"};
}

void judge_attention(Recipe& recipe, const Convention& convention, const Cells& cells) {
  const auto heads = telling_heads_of_models(recipe);
  const double rate = recipe.error_rate(heads.size());
  recipe.judge(closeness(fmt::format("How far linear attention with 1 + elu is from that with exponentials, with {}, "
                                     "on heads of {}",
                                     convention.name, three_models),
                         heads_in_words(heads, cells.all().front().asked.problem.shape.nk)),
               [=] {
                 std::vector<Comparison> comparisons;
                 for (const RealHead& head : heads)
                   comparisons.push_back({head.name(), relative_distance(convention, cells.input(head.input()), rate)});
                 return values_of(comparisons, {0.1, 0.25, 0.5});
               });
}

void judge_scales(Recipe& recipe, const Cells& cells) {
  const auto all_scales = scales(recipe);
  const double rate = recipe.error_rate(all_scales.size());
  recipe.judge(closeness(fmt::format("How far linear attention with 1 + elu is from that with exponentials on raw "
                                     "normal q and k of standard deviation {} to {}",
                                     all_scales.front(), all_scales.back()),
                         fmt::format("Raw q and k, independent normal entries, n = {}, d = 64, bidirectional, medians "
                                     "over {} inputs. To multiply q and k by d^-1/4 = 0.35, as this project does "
                                     "elsewhere, is to take 0.35 of the standard deviation",
                                     cells.all().front().asked.problem.shape.nk, cells.all().front().replicates)),
               [=] {
                 std::vector<Comparison> comparisons;
                 for (const auto& scale : all_scales)
                   comparisons.push_back({"standard deviation " + scale,
                                          relative_distance(conventions[0], cells.input(normal(scale)), rate)});
                 return values_of(comparisons, {0.1, 0.25, 0.5});
               });
}

std::vector<Panel> panels(const Runs& runs) {
  const Panel pointwise{.title = "the map itself",
                        .cells = runs.points,
                        .x = {"length"},
                        .x_label = "x",
                        .x_scale = "log2",
                        .y = "largest_kernel_difference",
                        .y_label = "1 - (1 + elu(x)) / exp(x)",
                        .y_scale = "log10"};
  const Panel over_share{.title = "attention, entries of scale 1",
                         .cells = runs.shares,
                         .x = {"positive"},
                         .x_label = "share of the entries of Q and K above 0",
                         .y = distance,
                         .y_label = "|A' - A| / |A|, A of exp features"};
  Panel over_scale = over_share;
  over_scale.title = "attention, half of the entries above 0";
  over_scale.cells = runs.scales;
  over_scale.x = {"scale"};
  over_scale.x_label = "standard deviation of the entries of Q and K";
  over_scale.x_scale = over_scale.y_scale = "log2";
  return {pointwise, over_share, over_scale};
}

void write(Recipe& recipe) {
  const Runs runs = run(recipe);
  recipe.figure("elu-against-exp", "1 + elu and the exponential",
                fmt::format("Left: relative difference of the two maps, which are equal below 0. Then that of the "
                            "attention matrices that they make of raw q and k, n = {}, d = 64, bidirectional, means "
                            "over 32 inputs (8 for the shares of positive entries) with 95 % intervals; uniform is the "
                            "mean of V, as far from the attention of "
                            "exponentials as its line says.",
                            recipe.sized<Index>(64, 128, 512)),
                panels(runs));
  judge_map(recipe, runs);
  for (size_t i = 0; i < conventions.size(); ++i) judge_attention(recipe, conventions[i], runs.heads[i]);
  judge_scales(recipe, runs.scales);
}

const bool registered =
    add(RecipeEntry{.text = {.name = "elu-against-exp",
                             .summary = "1 + elu against the exponential",
                             .formula = "How close is 1 + elu to the exponential as an activation of queries and keys?",
                             .reference = "Su 2021, kexue.fm/archives/8338"},
                    .write = write});

}  // namespace
}  // namespace attnbench::elu_against_exp_recipe
