// Time and state size of one decoding step against position, and the time to generate a whole sequence. Katharopoulos
// et al. count a softmax step as the square of the length: such a step recomputes all rows instead of using a cache of
// keys and values.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "experiments/recipes/growth.hpp"

namespace attnbench::decode_recipe {
namespace {

const std::string cached = "softmax", recomputed = "softmax:cache=false", linear = "linear";
// Methods whose state does not grow with the position. sweeps=0: k-means sweeps would improve vq's codebook but not
// change the time of a step.
std::vector<std::string> bounded(const Recipe& recipe) {
  std::vector<std::string> methods{linear, "performer", "vq:sweeps=0", "sink-window", "uniform"};
  if (recipe.size() == RecipeSize::full) methods.emplace_back("heavy-hitter");
  return methods;
}

const std::string paper = "Katharopoulos et al. 2020, arXiv:2006.16236, ";
const std::string setting =
    "attention of one head alone, d = dv = 64, gaussian inputs, float, one CPU thread, causal; seconds of one step, "
    "medians over blocks of turns";

struct Decoding {
  Cells steps;       // of bounded states and of the cache
  Cells generation;  // the three ways to generate, at the positions between which their steps are interpolated
};

Decoding run(Recipe& recipe) {
  RunRequest request{
      .experiment = "decode:" + turns(recipe) + recipe.sized<std::string>(",from=64", ""),
      .methods = bounded(recipe),
      .inputs = {"gaussian"},
      .n = recipe.sized<std::vector<Index>>({64, 128}, {128, 1024, 8192, 65536},
                                            {128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536}),
      .causal = true,
      .precision = Precision::f32};
  request.methods.push_back(cached);
  RunRequest generation = request;
  generation.methods = {cached, recomputed, linear};
  generation.n = recipe.sized<std::vector<Index>>({64, 128}, {128, 512, 1024, 2048, 4096},
                                                  {128, 256, 512, 1024, 2048, 4096, 8192});
  return {recipe.run(request), recipe.run(generation)};
}

void draw(Recipe& recipe, const Decoding& cells) {
  Panel time = time_panel("time of one head", cells.steps + cells.generation.method(recomputed), "seconds per token");
  time.x_label = "position";
  Panel memory = time;
  memory.title = "what is kept";
  memory.y = "state_bytes";
  memory.y_label = "bytes";
  memory.slope = false;
  recipe.figure("decode", "One decoding step against position",
                "One head, d = dv = 64, float, one thread, causal: medians over blocks with distribution-free 95 % "
                "intervals; n^a is the exponent of the last three positions. softmax keeps all keys and values, "
                "cache=false computes all rows again at each step; the others keep a state or a window of constant "
                "size. uniform is the mean of V.",
                {time, memory});
}

void judge_constant_cost(Recipe& recipe, const Cells& steps) {
  const auto methods = bounded(recipe);
  const auto lengths = by_length(steps.method(linear));
  const Cells last = steps.n(length_of(lengths.back()));
  recipe.judge(
      {.text = fmt::format("On one CPU thread, a decoding step with a state of constant size takes about as long at "
                           "position {} as at 1024, for every method",
                           length_of(lengths.back())),
       .source = paper + "section 3.3.2, of linear attention; the other methods are our own",
       .quotation = "When it comes to inference, the cost per time and memory for one prediction is constant "
                    "for our model.",
       .definition =
           setting +
           fmt::format(": a step at position {} over one at 1024, timed side by side in the same block. linear is the "
                       "source's model. Performer, vector quantisation without sweeps that improve its codebook (vq), "
                       "sink-window and "
                       "heavy-hitter (where listed) keep a state or a window of constant size as well. The mean of V "
                       "is left out: its step is too short to be timed so well",
                       length_of(lengths.back())),
       .threshold = "1.15: the 15 % by which the laws of growth let one doubling differ, here for six "
                    "doublings together, over which linear growth is a factor of 64",
       .because = "a step takes the same operations at any position"},
      [=, &recipe] {
        std::vector<Comparison> comparisons;
        for (const auto& method : methods)
          if (method != "uniform")
            comparisons.push_back(
                {method, median_of(last.method(method).turns("growth"), recipe.error_rate(methods.size() - 1))});
        return all_below(1.15, comparisons);
      });
  const auto first = static_cast<double>(length_of(lengths.front()));
  recipe.judge(
      {.text = "From which position on a decoding step with a state of constant size is faster than softmax over its "
               "cache of keys and values, on one CPU thread",
       .definition =
           setting +
           fmt::format(
               ": the position from which on the speedup over softmax with a cache stays above 1, interpolated "
               "between positions on logarithmic scales, one position for each block; medians over blocks. "
               "Where the method is faster from the first position on, {:g}, that position is given. Linear "
               "attention with 1 + elu, Performer, vector quantisation without sweeps that improve its codebook (vq), "
               "sink-window, heavy-hitter (where listed) and the mean of V (uniform)",
               first),
       .threshold = "none: a constant cost overtakes a growing one somewhere in any case; the position is the finding. "
                    "Positions below 256 and below 1024 are counted for the reader",
       .expected = Ruling::measured,
       .because = "it depends on what a step costs: 4 F d operations with F features against 4 t d at t"},
      [=, &recipe] {
        std::vector<Comparison> comparisons;
        for (const auto& method : methods) {
          std::vector<double> at = crossings(steps.method(method));
          for (double& position : at) position = std::max(position, first);
          comparisons.push_back({method, median_of(at, recipe.error_rate(methods.size()))});
        }
        return values_of(comparisons, {256, 1024});
      });
}

void judge_growth(Recipe& recipe, const Decoding& cells) {
  const Cells again = last_three(cells.generation.method(recomputed)),
              over_cache = last_three(cells.steps.method(cached));
  const auto positions = [](const Cells& curve) {
    std::vector<Index> all;
    for (const Cells& one : by_length(curve)) all.push_back(length_of(one));
    return fmt::format("positions {}", fmt::join(all, ", "));
  };
  recipe.judge(
      {.text = "On one CPU thread, the time of a softmax decoding step that computes the attention of all previous "
               "tokens again grows as the square of the position",
       .source = paper + "section 3.3.2",
       .quotation = "Moreover, the cost per timestep for transformers is not constant; instead, it scales "
                    "with the square of the current sequence length because attention must be computed for "
                    "all previous timesteps.",
       .definition = setting + ", at " + positions(again) +
                     ". Softmax without a cache: each step computes the attention of all tokens up to its position",
       .threshold = "every doubling multiplies the time by at least 3.5: 4 / 1.15, rounded, by the rule for "
                    "growth",
       .because = "2 t^2 d operations at position t"},
      [=, &recipe] {
        return grows_as(recipe, quadratic_growth, {{recomputed, again}});
      });
  recipe.judge(
      {.text = "With which power of the position the time of a softmax decoding step over a cache of keys and values "
               "grows, on one CPU thread",
       .definition = setting + ": the least-squares exponent of time against position over " + positions(over_cache) +
                     ", one for each block; the median over blocks",
       .threshold = "none; for comparison 1.2 and 1.8, at which a doubling multiplies by 2.3 and 3.5, the greatest "
                    "factor of linear growth and the least of quadratic growth",
       .expected = Ruling::measured,
       .because = "4 t d operations are linear in t; once keys and values leave the processor's caches their "
                  "way from memory adds to that"},
      [=, &recipe] {
        return with_disturbances(values_of({{"", median_of(exponents(over_cache), recipe.error_rate(1))}}, {1.2, 1.8}),
                                 {{cached, over_cache}});
      });
}

// Interpolates with a power law between neighbours; beyond the ends, extrapolates that of the nearest two.
double interpolated(const std::vector<double>& x, const std::vector<double>& y, double at) {
  size_t next = 1;
  while (next + 1 < x.size() && x[next] < at) ++next;
  return y[next] * std::pow(y[next - 1] / y[next], std::log(at / x[next]) / std::log(x[next - 1] / x[next]));
}

// Total seconds of the steps at positions 1 to `tokens`, one number per block.
std::vector<double> seconds_of_sequence(const Cells& curve, Index tokens) {
  std::vector<double> positions;
  std::vector<std::vector<double>> samples;
  for (const Cells& one : by_length(curve)) {
    positions.push_back(static_cast<double>(length_of(one)));
    samples.push_back(one.turns("seconds"));
  }
  std::vector<double> sums;
  for (size_t block = 0; block < samples[0].size(); ++block) {
    std::vector<double> seconds;
    for (const auto& of_position : samples)
      if (block < of_position.size()) seconds.push_back(of_position[block]);
    if (seconds.size() < samples.size()) break;  // a cell failed
    sums.push_back(0);
    for (Index t = 1; t <= tokens; ++t) sums.back() += interpolated(positions, seconds, static_cast<double>(t));
  }
  return sums;
}

// How many times longer `slow` takes than linear attention to generate `tokens` tokens.
struct Generation {
  std::string name, slow;
  Index tokens;
  double whole_model;  // the published factor of whole models on a CPU, one image at a time
};
const std::vector<Generation> generations{{"recomputing, N = 784", recomputed, 784, 13.2},
                                          {"recomputing, N = 3072", recomputed, 3072, 191.8},
                                          {"over a cache, N = 784", cached, 784, 1.3},
                                          {"over a cache, N = 3072", cached, 3072, 1.6}};

Estimate factor(const Cells& cells, const Generation& one, double divisor, double error_rate) {
  auto factors = seconds_of_sequence(cells.method(one.slow), one.tokens);
  const auto fast = seconds_of_sequence(cells.method(linear), one.tokens);
  factors.resize(std::min(factors.size(), fast.size()));
  for (size_t block = 0; block < factors.size(); ++block) factors[block] /= fast[block] * divisor;
  return median_of(factors, error_rate);
}

void judge_generation(Recipe& recipe, const Cells& cells) {
  const auto curves = curves_of(cells, {cached, recomputed, linear});
  const std::string summed =
      "attention of one head alone on one CPU thread, d = dv = 64 (the paper's heads have 32 channels), float, linear "
      "attention with elu + 1: the seconds of the steps at positions 1 to N, interpolated between measured positions "
      "from 128 on by power laws (below 128 by that of the first two), summed block by block; softmax over linear, "
      "medians over blocks";
  recipe.judge(
      {.text = "On one CPU thread, the linear attention of one head generates 3,072 tokens more than a thousand times "
               "faster than softmax attention that computes all rows again at every step",
       .source = paper + "abstract; sections 1 and 4.2.2",
       .quotation = "Our linear transformers achieve similar performance to vanilla transformers and they are "
                    "up to 4000x faster on autoregressive prediction of very long sequences.",
       .definition = summed + "; softmax without a cache, N = 3072. The paper's factor is of whole models on a GPU",
       .threshold = "1,000: section 1 calls the same result three orders of magnitude. The 4,000 of the "
                    "abstract is a throughput of whole models on a GPU with unequal batches (4,462x in Table "
                    "2), from which no bound follows for one head on a CPU",
       .because = "operations give N^2 / (6 d) = 24,576 for d = 64, and a state's step would have to run 25 "
                  "times less efficiently to fall below 1,000"},
      [=, &recipe] {
        return with_disturbances(all_above(1000, {{"", factor(cells, generations[1], 1, recipe.error_rate(1))}}),
                                 curves);
      });
  recipe.judge({.text = "On one CPU thread, the linear attention of one head gains more over softmax, with and without "
                        "a cache of keys and values, than the paper's whole models gain on a CPU",
                .source = paper + "appendix C.2, Table 5",
                .paraphrase = "seconds an image on a CPU, one image at a time, over those of the linear model: 13.2 "
                              "(MNIST, N = 784) and 191.8 (CIFAR-10, N = 3072) for softmax that recomputes, 1.3 and "
                              "1.6 for softmax with a cache",
                .definition = summed + "; softmax without and with a cache, N = 784 and 3072, each over the published "
                                       "factor. All four must lie above the threshold",
                .threshold = "1: the rest of a model costs the same with either attention, so that a whole model gains "
                             "no more than its attention does",
                .because = "operations give 1,600 and 24,576 against recomputation, 6 and 24 against the cache"},
               [=, &recipe] {
                 std::vector<Comparison> comparisons;
                 for (const auto& one : generations)
                   comparisons.push_back({one.name, factor(cells, one, one.whole_model, recipe.error_rate(4))});
                 return with_disturbances(all_above(1, comparisons), curves);
               });
  recipe.judge(
      {.text = "How many times faster the linear attention of one head generates 784 and 3,072 tokens than softmax "
               "attention, recomputing or over a cache of keys and values, on one CPU thread",
       .source = paper + "Tables 1 and 2; appendix C.1, Table 4",
       .quotation = "We observe that stateful-softmax is significantly faster than vanilla transformers. "
                    "However, its complexity is still quadratic with respect to the sequence length and our "
                    "forumlation [sic] is more than 50x faster for CIFAR-10.",
       .definition =
           summed +
           "; softmax without and with a cache. Published throughputs of whole models on a GPU, each at its own batch "
           "size: 317x (N = 784) and 4,462x (N = 3072) against recomputation, 18.9x and 56x against the cache",
       .threshold = "none: the published factors are of whole models, other batches and another machine, so "
                    "that a number near them, or far from them, decides nothing",
       .expected = Ruling::measured,
       .because = "the source gives numbers of another quantity"},
      [=, &recipe] {
        std::vector<Comparison> comparisons;
        for (const auto& one : generations)
          comparisons.push_back({one.name, factor(cells, one, 1, recipe.error_rate(4))});
        return with_disturbances(values_of(comparisons), curves);
      });
}

void write(Recipe& recipe) {
  const Decoding cells = run(recipe);
  draw(recipe, cells);
  judge_constant_cost(recipe, cells.steps);
  judge_growth(recipe, cells);
  judge_generation(recipe, cells.generation);
}

const bool registered = add(RecipeEntry{
    .text = {.name = "decode",
             .summary = "Time and memory of one decoding step against position, and of whole sequences",
             .formula = "How much does a decoding step cost at a late position, and how many times faster does "
                        "linear attention generate a sequence than softmax?",
             .reference = "Katharopoulos et al. 2020, arXiv:2006.16236, sections 3.3.2 and 4.2, appendix C"},
    .write = write});

}  // namespace
}  // namespace attnbench::decode_recipe
