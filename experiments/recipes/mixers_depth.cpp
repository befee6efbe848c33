// Depth behaviour of the attention-free mixers: do tokens become the same, and how far is a network of them from one of
// attention with the same other weights. Their weights are drawn, as everywhere here: this is about initialisation.
// A random Synthesizer's matrix reads no token, so every layer takes the same share of the residual R: order 1. A dense
// one's rows depend on their own token, A = 1 a^T + O(R), and res(A X) = O(R^2): order 2. Softmax: order 3.
#include <fmt/format.h>

#include "experiments/recipes/through_layers.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const Description text{
    .name = "mixers-depth",
    .summary = "FNet, MLP-Mixer, gMLP and Synthesizer through layers",
    .formula =
        "A Synthesizer's matrix averages tokens as attention's does, so they collapse, at the rate of a fixed "
        "matrix; FNet, gMLP and the branch of a Mixer do not average, and keep tokens apart.",
    .reference =
        "Dong et al. 2021, arXiv:2103.03404, for the residual; Lee-Thorp et al. 2021, arXiv:2105.03824; "
        "Tolstikhin et al. 2021, arXiv:2105.01601; Liu et al. 2021, arXiv:2105.08050; Tay et al. 2020, "
        "arXiv:2005.00743"};

const std::string random_synthesizer = "synthesizer", dense_synthesizer = "synthesizer:kind=dense";
const Specs averaging{random_synthesizer, dense_synthesizer};
const Specs others{"fnet", "gmlp", "mixer:residual=false"};
const std::string alone = "depth:layers={},skip=false,feed_forward=false,matrix=false",
                  whole = "depth:layers={},matrix=false";
const Specs inputs{"gaussian", "ar1"};

size_t layers(RecipeSize size) { return size == RecipeSize::smoke ? 4 : 8; }
Index tokens(RecipeSize size) { return size == RecipeSize::smoke ? 32 : size == RecipeSize::quick ? 256 : 512; }

Specs methods() {
  Specs all{"softmax", "uniform"};
  for (const Specs* some : {&averaging, &others}) all.insert(all.end(), some->begin(), some->end());
  return all;
}

std::string experiment(const std::string& kind, RecipeSize size) {
  return fmt::format(fmt::runtime(kind), layers(size));
}

std::vector<RunRequest> runs(RecipeSize size) {
  std::vector<RunRequest> all;
  for (const auto& kind : {alone, whole})
    all.push_back({.experiment = experiment(kind, size),
                   .methods = methods(),
                   .inputs = inputs,
                   .n = {tokens(size)},
                   .causal = false,
                   .replicates = size == RecipeSize::smoke   ? 2
                                 : size == RecipeSize::quick ? 8
                                                             : 15});
  return all;
}

Panel panel(RecipeSize size, const std::string& title, const std::string& kind, const std::string& metric,
            const std::string& label, Index first) {
  Panel drawn = through_layers(title, {{"method", methods()}, {"input", inputs[0]}, {"causal", 0}, {"n", tokens(size)}},
                               metric, label, first);
  drawn.where["experiment"] = experiment(kind, size);
  drawn.interval = "median";
  return drawn;
}

std::vector<Figure> figures(RecipeSize size) {
  const std::string residual = "|res(X)| / |X|  (composite norm)", error = "|X' - X| / |X|  (Frobenius)";
  return {figure("mixers-depth", text, "Attention-free mixers through layers",
                 "Left: how far apart tokens are. Right: hidden states against those of softmax with the same other "
                 "weights, 1.41 for independent ones of equal size. Above: the mixing alone, with LayerNorm before it; "
                 "below: with skip connections and MLP. gaussian tokens, d = 64, both directions, weights drawn. "
                 "FNet's transform is not normalised, so that it outweighs what it is added to.",
                 {panel(size, "mixing alone", alone, "residual_composite", residual, 0),
                  panel(size, "mixing alone", alone, "output_error", error, 1),
                  panel(size, "with skip connections and MLP", whole, "residual_composite", residual, 0),
                  panel(size, "with skip connections and MLP", whole, "output_error", error, 1)})};
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  const size_t length = layers(size) + 1;
  const auto where = [&](const std::string& method, const std::string& input) {
    return nlohmann::json{{"method", method}, {"input", input}, {"skip", "false"}};
  };
  const auto kept = [&](const std::string& method, const std::string& input, double rate) {
    const auto start = element(results, where(method, input), "residual_composite", length, 0);
    return ratio(results.scalar(where(method, input), "final_residual"), start, rate);
  };
  const double rate = share_of_error_rate(inputs.size() * (averaging.size() + others.size()));
  std::vector<Comparison> collapsing, orders;
  std::vector<Region> apart;
  for (const auto& input : inputs) {
    for (const auto& method : averaging) collapsing.push_back({method + ", " + input, kept(method, input, rate)});
    for (const auto& method : others) {
      Estimate lost = kept(method, input, rate);
      lost = {1 / lost.value, {1 / lost.interval.high, 1 / lost.interval.low}, lost.replicates};
      apart.push_back({method + ", " + input, {{"", lost}}});
    }
    orders.push_back({random_synthesizer + ", " + input,
                      mean(orders_of_collapse(results, where(random_synthesizer, input), length, tokens(size)),
                           share_of_error_rate(inputs.size()))});
  }
  return {all_below(0.1, "Layers of either Synthesizer alone lose nine tenths of the tokens' relative residual",
                    collapsing),
          all_below(2, "The random Synthesizer's tokens fall together exponentially: the order of collapse is below 2",
                    orders),
          below_where(
              2,
              {"Layers of FNet, gMLP or the Mixer's branch alone keep half of the tokens' relative residual, or more",
               Verdict::Outcome::ambiguous},
              apart)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
