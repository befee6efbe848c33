// The estimates that users of published libraries get. A parameter switches on each deviation of a library; the recipe
// compares it with the correct method and with the mean of V. Errors alone do not show a deviation: if the correct
// estimate is worse than the mean of V, a bias towards that mean lowers the error. So the recipe judges the bias of the
// kernel estimate and reports errors.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/recipes/closed_forms.hpp"

namespace attnbench::published_bugs_recipe {
namespace {

struct Trap {
  std::string correct, published, name;
  bool kernel = true;  // whether it estimates a kernel
};
const std::vector<Trap> traps{
    {"performer", "performer:sign_fix=false", "a QR factor without its signs"},
    {"performer", "performer:norms=same-block", "the norms of the rows that QR began with"},
    {"performer", "performer:norms=sqrt-d", "all norms sqrt(d)"},
    {"performer", "performer:epsilon=0.0001", "1e-4 added to features"},
    {"performer", "performer:epsilon=0.0001,stabiliser=projection-only", "1e-4 added to features stabilised by W x"},
    {"performer", "performer:epsilon=0.0001,epsilon_kind=plain", "1e-4 added after m^-1/2"},
    {"performer", "performer:stabiliser=per-key", "a stabiliser of each key, never restored"},
    {"performer:features=relu", "performer:features=relu,epsilon=0.001", "1e-3 added to ReLU features"},
    {"reformer:chunk=32", "reformer:chunk=32,bucket_mask=false", "no mask of other buckets", false},
    {"reformer:chunk=32", "reformer:chunk=32,combine=uniform", "rounds of hashing averaged", false}};
const std::string defaults = traps[4].published;
const std::string unstabilised = "performer:stabiliser=projection-only";
const std::string real_head = "model:layer=2,head=0";
// d = 64, along (1, ..., 1) and along e1: the results differ if the vectors are not isotropic.
const Specs pairs{"pair:length=0.5,direction=ones", "pair:length=0.5,direction=axis"};

std::string law(double scale) { return fmt::format("gaussian:scale={:g}", scale); }
Specs laws(const std::vector<double>& scales) {
  Specs all;
  for (const double scale : scales) all.push_back(law(scale));
  return all;
}

Specs methods_of(const std::string& correct) {
  Specs all{correct};
  for (const auto& trap : traps)
    if (trap.correct == correct) all.push_back(trap.published);
  return all;
}

struct Measured {
  Cells on_laws, on_head, biases, to_mean, in_float;
};

void draw(Recipe& recipe, const Measured& measured, Index n) {
  const std::string scale_label = "standard deviation of the entries of Q and K";
  std::vector<Panel> panels;
  for (const auto& [title, correct] : {std::pair{"positive features", "performer"},
                                       {"ReLU features", "performer:features=relu"},
                                       {"hashing", "reformer:chunk=32"}}) {
    Specs methods = methods_of(correct);
    methods.push_back("uniform");
    panels.push_back({.title = title,
                      .cells = measured.on_laws.methods(methods),
                      .x = {"scale"},
                      .x_label = scale_label,
                      .x_scale = "log10",
                      .y = "relative_output_error",
                      .y_label = "error of the output over that of the method",
                      .y_scale = "log10",
                      .ratio_to = correct});
  }
  const Panel mean_of_values{.title = "1e-4 added to features stabilised by W x",
                             .cells = measured.to_mean,
                             .x = {"scale"},
                             .x_label = scale_label,
                             .x_scale = "log10",
                             .y = "relative_output_difference",
                             .y_label = "distance to the mean of V, over its norm",
                             .y_scale = "log10"};
  Panel in_float = mean_of_values;
  in_float.title = "float, stabilised by W x";
  in_float.cells = measured.in_float;
  in_float.x_scale = "linear";
  in_float.y_label = "difference to max(W x - |x|^2/2), relative";
  recipe.headline(5, "Is published code right?");
  recipe.figure(
      "published-bugs", "Departures of published libraries: error of the output",
      fmt::format("Gaussian inputs, n = {}, d = 64, m = 256, bidirectional; 95 % intervals over inputs and "
                  "draws. uniform is the mean of V: where the method itself is worse than the mean of V, a departure "
                  "towards it lowers the error.",
                  n),
      panels);
  recipe.figure("published-bugs-epsilon", "The mean of V, returned, and keys that underflow",
                fmt::format("Gaussian inputs, n = {}, d = 64, m = 256, bidirectional. Left: how far the output is from "
                            "the mean of V. Right: in float, how far features stabilised by the maximum of W x are "
                            "from those of the paper, with the same random vectors; 0 but for rounding until keys "
                            "underflow.",
                            n),
                {mean_of_values, in_float});
}

void judge_biases(Recipe& recipe, const Cells& cells) {
  recipe.judge(
      {.text = "Each of eight ways in which published libraries depart from the Performer's random features leaves the "
               "estimate of the kernel unbiased",
       .source = "the defaults of google-research's fast attention, performer-pytorch and fast-transformers; google-"
                 "research's docstring of create_projection_matrix (commit 0c1bbe5f) for the law of the vectors",
       .quotation = "each projection vector has direction chosen uniformly at random and either deterministic length "
                    "\\sqrt{d} or length taken from the \\chi(d) distribution (in the latter case marginal "
                    "distributions of the projections are d-dimensional Gaussian vectors with associated identity "
                    "covariance matrix)",
       .definition =
           "the mean over draws of the estimate over the kernel, less 1 (kernel-error, relative_bias), for each "
           "departure alone, built into this project's features; the kernel is exp(q.k), of ReLU features the kernel "
           "without the 1e-3; d = m = 64, q = k, |q + k| = 1, along (1, ..., 1) and along e1, mean over 64 replicates "
           "of draws. A stabiliser is the number that is subtracted from the exponents of features against overflow: "
           "as published, libraries take the maximum of W x, without -|x|^2/2, or subtract from each key's exponents "
           "their own maximum and never restore it. A factor that all keys of a query share cancels in attention and "
           "counts here. The quotation is about directions and norms alone; for the 1e-4, the 1e-3 and the stabilisers "
           "the statement is our own",
       .threshold = "0, which every interval must hold, with intervals narrower than +-0.05",
       .expected = Ruling::refuted,
       .because = "an epsilon, norms that depend on Q, a maximum that is not restored and directions that are not "
                  "uniform each move the expectation"},
      [=, &recipe] {
        std::vector<Comparison> comparisons;
        std::vector<std::string> words;
        for (const auto& trap : traps) {
          if (!trap.kernel) continue;
          for (const auto& pair : pairs)
            comparisons.push_back({trap.name + (pair == pairs[0] ? ", along (1, ..., 1)" : ", along e1"),
                                   mean(cells.method(trap.published + ",m=64").input(pair).scalar("relative_bias"),
                                        recipe.error_rate(cells.size()))});
        }
        for (const auto& [what, estimate] : comparisons)
          words.push_back(fmt::format("{:+.1f} % of {}", 100 * estimate.value, what));
        Finding finding = all_contain(0, 0.05, comparisons);
        finding.numbers += fmt::format("; {}", fmt::join(words, "; "));
        return finding;
      });
}

void judge_errors(Recipe& recipe, const Cells& cells, const std::vector<double>& scales, Index n) {
  recipe.judge(
      {.text = "By what factor departures of published libraries from Performer and Reformer change the error of the "
               "output",
       .definition = fmt::format(
           "relative Frobenius error of the output to exact softmax attention with each of 10 departures alone, over "
           "that of the method without it; below 1 the departure lowers the error. The first 8 are of random features "
           "(m = 256 vectors), the last 2 of Reformer (chunks of 32 tokens): candidates are not masked by bucket, or "
           "the rounds are averaged with equal weights. n = {}, d = 64, no mask, median over {} inputs and draws "
           "(texts, on the head): Gaussian Q and K whose entries have the standard deviation that is given as scale, "
           "and layer 2, head 0 of this project's byte-level model, seen without its causal mask",
           n, cells.all().front().replicates),
       .threshold = "no source gives one: the values, and how many lie below 0.9, 1 and 1.1",
       .expected = Ruling::measured,
       .because = "an error does not test these: a bias towards the mean of V lowers it where the method is worse than "
                  "the mean of V"},
      [=, &recipe] {
        Specs inputs = laws(scales);
        inputs.push_back(real_head);
        std::vector<Comparison> comparisons;
        for (const auto& trap : traps)
          for (const auto& input : inputs) {
            const Cells here = cells.input(input);
            comparisons.push_back(
                {trap.name + " on " + input, median_ratio(here.method(trap.published).scalar("relative_output_error"),
                                                          here.method(trap.correct).scalar("relative_output_error"),
                                                          recipe.error_rate(traps.size() * inputs.size()))});
          }
        return values_of(comparisons, {0.9, 1, 1.1});
      });
}

// One number per scale; the finding gives the boundary between scales.
std::vector<Region> by_scale(const std::vector<double>& scales, const std::function<Estimate(const std::string&)>& at) {
  std::vector<Region> regions;
  for (const double scale : scales)
    regions.push_back(
        {.name = fmt::format("scale {:g}", scale), .comparisons = {{"", at(law(scale))}}, .coordinate = scale});
  return regions;
}

void judge_limits(Recipe& recipe, const Measured& measured, const std::vector<double>& scales,
                  const std::vector<double>& large, Index n) {
  const std::string setting = fmt::format(
      "by scale, the standard deviation of the entries of Gaussian Q and K (before both are multiplied by d^-1/4); n = "
      "{}, d = 64, m = 256 orthogonal vectors, no mask",
      n);
  recipe.judge(
      {.text = "With 1e-4, the default of performer-pytorch, added to features stabilised by the maximum of W x, "
               "Performer's output is less than a tenth "
               "as far from the mean of V as without the 1e-4",
       .source = "lucidrains/performer-pytorch issue 69, 2021-05-28, on its defaults; the statement is our own",
       .quotation = "Surprisingly, I'm getting very large errors (about 80%). Any idea as to where this comes from?",
       .definition = "the Frobenius distance of the output from the mean of V (agreement:[uniform]) over that of "
                     "Performer without the 1e-4, with the same random vectors, the median over inputs and draws, " +
                     setting +
                     ". Stabilised by the maximum of W x: it is subtracted from the exponents W x - |x|^2/2, of each "
                     "query over its features and of keys over all keys and features, before exp. The issue reports "
                     "large errors and asks for the cause",
       .threshold = "0.1: nine tenths of the distance from the mean of V are lost. As the scale doubles, the ratio "
                    "falls through every such threshold",
       .expected = Ruling::depends,
       .because = "features are exponentials: as their spread grows, all but a few fall below the 1e-4"},
      [=, &recipe] {
        return below_where(0.1,
                           by_scale(scales,
                                    [&](const std::string& input) {
                                      const Cells here = measured.to_mean.input(input);
                                      return median_ratio(here.method(defaults).scalar("relative_output_difference"),
                                                          here.method("performer").scalar("relative_output_difference"),
                                                          recipe.error_rate(scales.size()));
                                    }),
                           "scale");
      });
  recipe.judge(
      {.text = "In float, subtracting the maximum of W x from the exponents of features, without an epsilon, leaves "
               "Performer's output as it is to 1 %",
       .source =
           "google-research/google-research issue 753, 2021-07-01, which asks a question; the statement is our own",
       .quotation =
           "I don't understand why `jnp.max` terms are used in `nonnegative_softmax_kernel_feature_creator` as "
           "below. I cannot find the corresponding equations in the original paper.",
       .definition =
           "the Frobenius distance of the output from that of the Performer, which subtracts the maximum of W x - "
           "|x|^2/2, relative to the latter (agreement:[performer]), with the same random vectors, in float, the "
           "median over inputs and draws, " +
           setting +
           ". The maximum of W x is taken of each query over its features, and of keys over all keys and features",
       .threshold = "0.01: far above the rounding of float, and far from 1, where all keys have underflowed",
       .expected = Ruling::depends,
       .because = "exactly they are the same; in float exp(-|k|^2/2) underflows when |k| is large"},
      [=, &recipe] {
        return below_where(0.01,
                           by_scale(large,
                                    [&](const std::string& input) {
                                      return median_of(
                                          measured.in_float.input(input).scalar("relative_output_difference"),
                                          recipe.error_rate(large.size()));
                                    }),
                           "scale");
      });
}

void write(Recipe& recipe) {
  const Index n = recipe.sized<Index>(64, 128, 512);
  const auto scales = recipe.sized<std::vector<double>>({0.5, 2}, {0.5, 1, 2}, {0.25, 0.5, 0.7, 1, 1.4, 2});
  const auto large = recipe.sized<std::vector<double>>({1, 4}, {1, 2, 3, 4});
  Specs methods{"uniform"}, kernels;
  for (const std::string correct : {"performer", "performer:features=relu", "reformer:chunk=32"})
    for (const auto& method : methods_of(correct)) methods.push_back(method);
  for (const auto& trap : traps)
    if (trap.kernel) kernels.push_back(trap.published + ",m=64");

  const RunRequest on_laws{.experiment = "attention-error:matrix=false",
                           .methods = methods,
                           .inputs = laws(scales),
                           .n = {n},
                           .causal = false,
                           .replicates = recipe.sized(2, 20, 32)};
  RunRequest on_head = on_laws, mean_of_values = on_laws, in_float = on_laws;
  on_head.inputs = {real_head};
  mean_of_values.experiment = "agreement:[uniform]";
  mean_of_values.methods = {"performer", defaults};
  in_float.experiment = "agreement:[performer]";
  in_float.methods = {unstabilised};
  in_float.precision = Precision::f32;
  in_float.inputs = laws(large);
  const Measured measured{.on_laws = recipe.run(on_laws),
                          .on_head = recipe.run(on_head),
                          .biases = recipe.run({.experiment = draws_of_a_pair(recipe.sized<Index>(64, 64, 2048)),
                                                .methods = kernels,
                                                .inputs = pairs,
                                                .n = {1},
                                                .d = {64},
                                                .replicates = recipe.sized<Index>(2, replicates_for_means)}),
                          .to_mean = recipe.run(mean_of_values),
                          .in_float = recipe.run(in_float)};
  draw(recipe, measured, n);
  judge_biases(recipe, measured.biases);
  judge_errors(recipe, measured.on_laws + measured.on_head, scales, n);
  judge_limits(recipe, measured, scales, large, n);
}

const bool registered = add(
    RecipeEntry{.text = {.name = "published-bugs",
                         .summary = "The cost of departures of published libraries",
                         .formula = "Do implementations of random features and of hashing that deviate from their "
                                    "papers estimate the same attention?",
                         .reference = "google-research's fast attention, performer-pytorch, fast-transformers: their "
                                      "code as published"},
                .write = write});

}  // namespace
}  // namespace attnbench::published_bugs_recipe
