// Attention-free mixers in depth: do tokens become the same, and how far is such a network from an attention network
// with the same other weights? Their weights are drawn, not trained: this is about initialisation.
// A random Synthesizer's matrix reads no token, so every layer takes the same share of the residual R: order 1. A dense
// one's rows depend on their own token, A = 1 a^T + O(R), and res(A X) = O(R^2): order 2. Softmax: order 3.
#include <fmt/format.h>

#include <limits>

#include "experiments/recipes/through_layers.hpp"
#include "harness/measures/collapse.hpp"

namespace attnbench::mixers_depth_recipe {
namespace {

const std::string random_synthesizer = "synthesizer";
const Specs averaging{random_synthesizer, "synthesizer:kind=dense"}, others{"fnet", "gmlp", "mixer:residual=false"};
const Specs inputs{"gaussian", "ar1"};

struct Measured {
  size_t layers;
  Index n;
  Cells alone, whole;  // mixing only, and mixing with skip connections and MLP

  Cells one(const std::string& method, const std::string& input) const { return alone.method(method).input(input); }
};

Measured measure(Recipe& recipe) {
  Measured all{.layers = recipe.sized<size_t>(4, 8), .n = recipe.sized<Index>(32, 64, 512)};
  RunRequest request{.experiment = fmt::format("depth:layers={},matrix=false", all.layers),
                     .methods = {"softmax", "uniform"},
                     .inputs = inputs,
                     .n = {all.n},
                     .causal = false,
                     .replicates = recipe.sized<Index>(2, 32)};
  for (const Specs& some : {averaging, others}) request.methods.insert(request.methods.end(), some.begin(), some.end());
  all.whole = recipe.run(request);
  request.experiment += ",skip=false,feed_forward=false";
  all.alone = recipe.run(request);
  return all;
}

void draw(Recipe& recipe, const Measured& all) {
  const auto panel = [](const std::string& title, const Cells& cells, const std::string& metric,
                        const std::string& label, Index first) {
    Panel drawn = through_layers(title, cells.input(inputs[0]), metric, label, first);
    drawn.interval = "median";
    return drawn;
  };
  const std::string residual = "|res(X)| / |X|  (composite norm)", error = "|X' - X| / |X|  (Frobenius)",
                    whole = "with skip connections and MLP";
  recipe.figure(
      "mixers-depth", "Attention-free mixers through layers",
      fmt::format("Left: how far apart tokens are. Right: hidden states against those of softmax with the "
                  "same other weights, 1.41 for independent ones of equal size. Above: the mixing alone, "
                  "with LayerNorm before it; below: with skip connections and MLP. gaussian tokens, n = {}, "
                  "d = 64, bidirectional, weights drawn, medians over {} draws. FNet's transform is not "
                  "normalised, so that it outweighs what it is added to.",
                  all.n, recipe.sized(2, 32)),
      {panel("mixing alone", all.alone, "residual_composite", residual, 0),
       panel("mixing alone", all.alone, "output_error", error, 1),
       panel(whole, all.whole, "residual_composite", residual, 0), panel(whole, all.whole, "output_error", error, 1)});
}

// The relative residual of the tokens after all layers, over that before the first.
std::vector<Comparison> kept(const Recipe& recipe, const Measured& all, const Specs& methods) {
  std::vector<Comparison> comparisons;
  for (const auto& input : inputs)
    for (const auto& method : methods) {
      const Cells one = all.one(method, input);
      comparisons.push_back({method + ", " + input, median_ratio(one.scalar("final_residual"),
                                                                 one.element("residual_composite", all.layers + 1, 0),
                                                                 recipe.error_rate(inputs.size() * methods.size()))});
    }
  return comparisons;
}

// The order at which the residual falls, down to double rounding; infinity for a draw where it does not fall.
std::vector<double> orders_of_collapse(const Measured& all, const Cells& one) {
  const double floor = 16 * static_cast<double>(all.n) * std::numeric_limits<double>::epsilon();
  std::vector<double> orders;
  for (const auto& residuals : one.arrays("residual_composite", all.layers + 1))
    orders.push_back(order_of_convergence(residuals, floor).value_or(std::numeric_limits<double>::infinity()));
  return orders;
}

void write(Recipe& recipe) {
  const Measured all = measure(recipe);
  draw(recipe, all);
  const std::string residual = fmt::format(
      "the relative residual |X - 1 x^T| / |X| of the tokens X after {} layers, over that before the first, draw by "
      "draw: x is the mean token, |X| the composite norm, the root of the largest column sum of |X_ij| times the "
      "largest row sum. A layer is LayerNorm and mixing with its projections, without skip connection and feed-forward "
      "part; no weight is trained, those of projections are N(0, 1/64). Gaussian and AR(1) tokens, n = {}, d = 64, no "
      "mask, medians over {} draws",
      all.layers, all.n, recipe.sized<Index>(2, 32));
  recipe.judge({.text = fmt::format("How much of the differences between tokens is left after {} layers of random or "
                                    "of dense Synthesizer mixing alone",
                                    all.layers),
                .definition = residual + ". Values below 1e-15 are the rounding of doubles: no more than that is left",
                .threshold = "none: the values. A half and a tenth are there to be read off",
                .expected = Ruling::measured,
                .because = "positive rows that sum to 1 average tokens, so that differences shrink; no source says by "
                           "how much"},
               [=, &recipe] {
                 return values_of(kept(recipe, all, averaging), {0.5, 0.1});
               });
  recipe.judge(
      {.text = "Through layers of random Synthesizer mixing alone, the differences between tokens fall with an order "
               "below 2",
       .definition =
           fmt::format("the order p of r_(l+1) = c r_l^p, r_l = |X - 1 x^T| / |X| of the tokens X after layer l, x the "
                       "mean token, in the composite norm (the root of the largest column sum of |X_ij| times the "
                       "largest row sum): p from r at three layers, equally far apart, of {}, the last one before "
                       "rounding; a draw whose residual does not fall counts as infinite. A layer is LayerNorm and "
                       "mixing with its projections, without skip connection and feed-forward part, weights drawn. "
                       "Gaussian and AR(1) tokens, n = {}, d = 64, no mask, the median over {} draws",
                       all.layers, all.n, recipe.sized<Index>(2, 32)),
       .threshold = "2: half way between order 1, at which every layer takes the same share of the differences, and "
                    "order 3, which is proved of softmax attention. Orders between 1 and 2 would pass too",
       .because =
           "the matrix of a random Synthesizer reads no token, so that every layer takes the same share: order 1"},
      [=, &recipe] {
        std::vector<Comparison> orders;
        for (const auto& input : inputs)
          orders.push_back({input, median_of(orders_of_collapse(all, all.one(random_synthesizer, input)),
                                             recipe.error_rate(inputs.size()))});
        return all_below(2, orders);
      });
  recipe.judge({.text = fmt::format("How much of the differences between tokens is left after {} layers of FNet, of "
                                    "gMLP or of the Mixer's token mixing alone",
                                    all.layers),
                .definition = residual + ". The Mixer's token-mixing branch has no skip connection of its own here, "
                                         "gMLP's spatial weights are N(0, 1/n)",
                .threshold = "none: the values. A half and a tenth are there to be read off",
                .expected = Ruling::measured,
                .because = "their matrices do not average; no source says how much is left"},
               [=, &recipe] {
                 return values_of(kept(recipe, all, others), {0.5, 0.1});
               });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "mixers-depth",
                             .summary = "FNet, MLP-Mixer, gMLP and Synthesizer through layers",
                             .formula = "Do tokens become the same through layers of mixers that do without attention?",
                             .reference = "Dong et al. 2021, arXiv:2103.03404, for the residual; Lee-Thorp et al. "
                                          "2021, arXiv:2105.03824; Tolstikhin et al. 2021, arXiv:2105.01601; Liu et "
                                          "al. 2021, arXiv:2105.08050; Tay et al. 2020, arXiv:2005.00743"},
                    .write = write});

}  // namespace
}  // namespace attnbench::mixers_depth_recipe
