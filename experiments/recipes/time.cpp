// Time and memory against sequence length: which law each method's time follows.
#include <fmt/format.h>

#include <cmath>

#include "experiments/recipes/growth.hpp"

namespace attnbench::time_recipe {
namespace {

// Rounds of hashing as in Fig. 1 of Katharopoulos et al. As in the published code, a token is compared with its whole
// chunk and the one before, in all buckets, so buckets smaller than a chunk save no time.
const Specs lsh{"reformer:bucket_mask=false,rounds=1", "reformer:bucket_mask=false,rounds=4",
                "reformer:bucket_mask=false,rounds=8"};
const std::string routing = "routing:sweeps=0";  // sweeps would move centroids but not change the time of a call

Specs approximations(const Recipe& recipe) {
  Specs all{"performer", "linear", "linformer", "nystrom", "vq", "local"};
  if (recipe.size() != RecipeSize::quick) all.insert(all.end(), {"performer:features=trig", "truncated:window=16"});
  return all;
}

Specs with(Specs first, const Specs& others) {
  first.insert(first.end(), others.begin(), others.end());
  return first;
}

RunRequest timed(const Recipe& recipe, const Specs& methods, const std::vector<Index>& n, bool paired) {
  return {.experiment = "speed:" + turns(recipe, 48) + (paired ? "" : ",pair=false"),
          .methods = methods,
          .inputs = {"gaussian"},
          .n = n,
          .causal = false,
          .precision = Precision::f32};
}

// Curves of methods with a budget of sqrt(n).
std::vector<Curve> run_growing(Recipe& recipe, const Specs& methods, const std::string& budget, const Specs& lengths) {
  Specs roots;
  for (const auto& n : lengths) roots.push_back(fmt::format("{:.0f}", std::sqrt(std::stod(n))));
  RunRequest request = timed(recipe, methods, {}, false);
  request.sweep = {{"n", lengths}, {budget, roots}};
  request.zip = {{"n", budget}};
  const Cells cells = recipe.run(request);
  std::vector<Curve> curves;
  for (const auto& method : methods) {
    Specs specs;
    for (const auto& root : roots) specs.push_back(Params("methods", method).with(budget, root).spec());
    curves.push_back({method, cells.methods(specs)});
  }
  return curves;
}

// Strides, clusters and buckets grow as sqrt(n), as the papers choose them; chunks of Reformer are of constant size.
struct Growing {
  std::vector<Curve> reformer, patterns;

  Cells cells() const {
    Cells all;
    for (const auto* curves : {&reformer, &patterns})
      for (const Curve& curve : *curves) all = all + curve.cells;
    return all;
  }
};

Growing growing_budgets(Recipe& recipe) {
  const Specs longest{"1024", "4096", "16384"};
  Growing all{.reformer =
                  run_growing(recipe, lsh, "buckets", recipe.sized<Specs>({"64", "256"}, {"256", "1024"}, longest))};
  const auto lengths = recipe.sized<Specs>({"64", "256"}, {"1024", "4096"}, longest);
  all.patterns = run_growing(recipe, {"strided", "sparse-fixed"}, "stride", lengths);
  all.patterns.push_back(run_growing(recipe, {routing}, "clusters", lengths).front());
  return all;
}

void draw(Recipe& recipe, const Cells& paired, const Cells& all, const Cells& computing, const Cells& growing) {
  Panel speedup = speedup_panel("paired with exact softmax", paired);
  speedup.theory = "";
  speedup.crossing = false;
  Panel roofline = time_panel("against the roofline", computing, "least time by the machine's rates / time");
  roofline.slope = false;
  roofline.y = "roofline_fraction";
  Panel memory = time_panel("memory of one head", computing, "peak memory beyond inputs and output");
  memory.slope = false;
  memory.y = "peak_bytes";
  const std::string head =
      "One head, d = dv = 64, float, one thread, bidirectional: medians with distribution-free 95 % intervals; ";
  recipe.figure("time", "Time against sequence length",
                head +
                    "n^a is the fitted exponent. Each block of turns gives one ratio to softmax measured beside it. "
                    "identity returns V: nothing can be faster. The roofline holds FLOPs and exponentials of the "
                    "cost formula, inputs and output against rates measured in the same process (attnbench "
                    "machine).",
                {time_panel("time of one head", all), speedup, roofline});
  Panel budgets = time_panel("budgets that grow as the square root of n", growing);
  budgets.x = {"n", "stride", "clusters", "buckets"};
  budgets.slope = false;  // the legend would call the axis by all four names; the verdicts have the exponents
  recipe.figure("time-of-patterns", "Time of patterns and clusters against sequence length",
                head +
                    "Strides, clusters and buckets are sqrt(n), chunks of Reformer are of 64 "
                    "tokens; rounds are those of lsh-1, lsh-4 and lsh-8 in Fig. 1 of Katharopoulos et al. 2020.",
                {budgets});
  recipe.figure("memory", "Memory against sequence length",
                "The same calls: resident memory at the peak of one call, beyond inputs and output. The three lines of "
                "most code (form=materialised) keep n x n numbers; the tiled softmax and the approximations do not.",
                {memory});
}

const std::string seconds_defined =
    "the factor by which a doubling of n multiplies the seconds of a call (the square root of that of a quadrupling, "
    "where lengths are four apart), the median over blocks of turns, every doubling judged; attention alone, forward, "
    "one head, d = dv = 64, float, one thread, no mask; ";

void judge_laws(Recipe& recipe, const Cells& all, const Growing& growing) {
  recipe.judge(
      {.text = "On one CPU thread, the time of exact softmax attention grows as the square of the sequence length",
       .source = "Katharopoulos et al. 2020, arXiv:2006.16236, section 4.1.2 and Fig. 1",
       .quotation = "As expected, softmax scales quadratically with respect to the sequence length.",
       .definition = seconds_defined + "this project's tiled softmax, n = 256 to 1024 (at full size 256 to 8192). The "
                                       "source times forward and backward passes on a GPU",
       .threshold = "3.5: fixed costs and caches may take an eighth off the fourfold of n^2",
       .because = "every pair of tokens is computed"},
      [=, &recipe] { return grows_as(recipe, quadratic_growth, curves_of(all, {"softmax"})); });
  recipe.judge(
      {.text = "On one CPU thread, the time of attention by features, projections, landmarks, codes and windows grows "
               "no faster than linearly in the sequence length",
       .source = "Katharopoulos et al. 2020, arXiv:2006.16236, section 4.1.2; Choromanski et al. 2020, "
                 "arXiv:2009.14794, section 2.2",
       .quotation = "We observe that both Reformer and linear attention scale linearly with the sequence "
                    "length.",
       .definition =
           seconds_defined +
           "Performer, linear attention with 1 + elu, Linformer, Nystroemformer, vector-quantised keys and local "
           "windows, at full size also trigonometric features and linear attention cut to a band, with budgets that do "
           "not depend on n; n = 256 to 1024 (at full size 256 to 65536). Katharopoulos et al. time forward and "
           "backward passes of Reformer and linear attention on a GPU; Choromanski et al. count operations",
       .threshold = "2.3: caches may add 15 % to the twofold of n",
       .because = "their operations are proportional to n"},
      [=, &recipe] { return grows_as(recipe, linear_growth, curves_of(all, approximations(recipe))); });
  recipe.judge(
      {.text = "On one CPU thread, Reformer's time grows no faster than n log n",
       .source = "Kitaev et al. 2020, arXiv:2001.04451, abstract",
       .quotation = "For one, we replace dot-product attention by one that uses locality-sensitive hashing, "
                    "changing its complexity from O(L^2) to O(L log L), where L is the length of the sequence.",
       .definition = seconds_defined + "1, 4 and 8 rounds of hashing, chunks of 64 tokens, sqrt(n) buckets: their hash "
                                       "takes as many operations as the factorised hash into n / 4 buckets of the "
                                       "published code; n = 256 and 1024 (at full size 1024, 4096 and 16384)",
       .threshold =
           "2.5: 15 % above 2.17, the factor by which n log n grows from n = 4096 to 8192. Katharopoulos et al. "
           "measured no difference from linear",
       .because = "chunks of constant size are linear, sorting is n log n"},
      [=, &recipe] { return grows_as(recipe, n_log_n_growth, growing.reformer); });
  recipe.judge({.text = "On one CPU thread, the time of the Sparse Transformer's patterns and of the Routing "
                        "Transformer grows no faster than n^1.5",
                .source = "Child et al. 2019, arXiv:1904.10509, abstract; Roy et al. 2020, arXiv:2003.05997, abstract",
                .quotation = "In this paper we introduce sparse factorizations of the attention matrix which reduce "
                             "this to O(n sqrt(n)).",
                .definition = seconds_defined +
                              "the strided and the fixed pattern with strides of sqrt(n), and routing with sqrt(n) "
                              "clusters of sqrt(n) tokens each; n = 1024 and 4096 (at full size also 16384)",
                .threshold = "3.25: 15 % above 2^1.5 = 2.83. O(n sqrt(n)) is a bound from above; costs per token may "
                             "keep growth below it",
                .because = "each query sees a multiple of sqrt(n) keys"},
               [=, &recipe] {
                 return grows_as(recipe, {"n^1.5 at most", 0, n_root_n_growth.most}, growing.patterns);
               });
}

// ImageNet64 is n = 64 * 64 * 3 tokens. Reformer's settings there are published (trax, reformer_imagenet64.gin): chunks
// of 128, n / 64 buckets, 2 rounds, chunks cut from the sorted order.
void judge_pair(Recipe& recipe) {
  const Index n = recipe.sized<Index>(128, 1536, 12288);
  const std::string reformer = fmt::format("reformer:chunk=128,chunks=sorted,rounds=2,buckets={}", n / 64);
  const Specs performers{"performer:m=256", "performer:m=256,features=relu"},
      reformers{reformer, reformer + ",bucket_mask=false"};
  RunRequest request = timed(recipe, performers, {n}, false);
  request.methods.insert(request.methods.end(), reformers.begin(), reformers.end());
  request.causal = true;
  const Cells all = recipe.run(request);
  recipe.judge(
      {.text = fmt::format(
           "On one CPU thread, causal attention by Performer is at least twice as fast as by Reformer at n = {}", n),
       .source = "Choromanski et al. 2020, arXiv:2009.14794, section 4.5 (ImageNet64, n = 12288)",
       .quotation = "Depending on hardware (TPU or GPU), we also found that the Performer can be 2x faster than the "
                    "Reformer via Jax optimizations for the (U) setting.",
       .definition =
           "seconds of Reformer (2 rounds, chunks of 128, n / 64 buckets, as published for ImageNet64; tokens compared "
           "within their bucket, or with the whole chunks, as the published code computes before it masks) over "
           "seconds of Performer with 256 positive or ReLU features, block by block, the median over blocks; the four "
           "pairs are judged one by one; attention alone, one head, d = dv = 64, float, one thread. The paper's are "
           "whole models on accelerators, which can be twice as fast",
       .threshold = "2, as published",
       .expected = Ruling::open,
       .because = "other machines, other code, and attention without the rest of the model"},
      [=, &recipe] {
        std::vector<Region> regions;
        for (const bool within : {true, false})
          for (const auto& performer : performers)
            regions.push_back(
                {fmt::format("{} against Reformer {}", performer, within ? "within buckets" : "of whole chunks"),
                 {{"", median_of(times(all.method(reformers[within ? 0 : 1]), all.method(performer)),
                                 recipe.error_rate(4))}}});
        return above_where(2, regions);
      });
}

void write(Recipe& recipe) {
  const std::string exact = "softmax", materialised = "softmax:form=materialised", floor = "identity";
  const auto lengths =
      recipe.sized<std::vector<Index>>({64, 128}, {256, 512, 1024}, {256, 512, 1024, 2048, 4096, 8192});
  std::vector<Index> whole_matrix = lengths;  // the matrix has 64 MB at n = 4096
  std::erase_if(whole_matrix, [](Index n) { return n > 4096; });
  const Specs approximate = approximations(recipe);
  const Cells paired = recipe.run(timed(recipe, with({exact}, with(approximate, {floor})), lengths, true));
  // Longer lengths run without softmax, which takes seconds per call there. One run times all lengths of a curve in
  // turns.
  Cells approximated = paired.methods(with(approximate, {floor}));
  if (recipe.size() == RecipeSize::full)
    approximated = recipe.run(
        timed(recipe, with(approximate, {floor}), {256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536}, false));
  const Cells all = paired.method(exact) + approximated + recipe.run(timed(recipe, {materialised}, whole_matrix, true));
  const Growing growing = growing_budgets(recipe);
  draw(recipe, paired, all, all.methods(with({exact, materialised}, approximate)), growing.cells());
  judge_laws(recipe, all, growing);
  judge_pair(recipe);
}

const bool registered =
    add(RecipeEntry{.text = {.name = "time",
                             .summary = "Time and memory against sequence length",
                             .formula = "How does the time of a call grow with the sequence length: exact attention, "
                                        "approximations of constant budget, patterns and clusters?",
                             .reference = "Katharopoulos et al. 2020, arXiv:2006.16236, Fig. 1; Choromanski et al. "
                                          "2020, arXiv:2009.14794, Fig. 3"},
                    .write = write});

}  // namespace
}  // namespace attnbench::time_recipe
