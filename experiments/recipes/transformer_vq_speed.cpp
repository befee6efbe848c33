// Transformer-VQ's speed against length: attention to a codebook of c codes costs 6 n c d FLOPs where causal softmax
// costs 2 n^2 d, so that tokens per second do not fall with n. Published with 512 codes, at n = 8192 and 32,768; quick
// and smoke sizes divide codes and lengths alike, which keeps the ratios of FLOPs.
#include <fmt/format.h>

#include "experiments/recipes/growth.hpp"

namespace attnbench::transformer_vq_speed_recipe {
namespace {

void write(Recipe& recipe) {
  const auto codes = recipe.sized<Index>(8, 64, 512);
  const std::string exact = "softmax", vq = fmt::format("vq:codes={},sweeps=0", codes);  // sweeps do not affect time
  std::vector<Index> lengths;
  for (Index n = 2 * codes; n <= 64 * codes; n *= 2) lengths.push_back(n);
  const Cells all = recipe.run({.experiment = "speed:" + turns(recipe),
                                .methods = {exact, vq},
                                .inputs = {"gaussian"},
                                .n = lengths,
                                .causal = true,
                                .precision = Precision::f32});
  recipe.figure("transformer-vq-speed", "Attention to a codebook against length",
                fmt::format("One head, d = dv = 64, {} codes, float, one thread, causal: medians with "
                            "distribution-free 95 % intervals; n^a is the fitted exponent, the line on the right is "
                            "the ratio of FLOPs. Published, of whole models with 512 codes: more than 3 times faster "
                            "at n = 8192, more than 12 times at n = 32,768.",
                            codes),
                {time_panel("time of one head", all), speedup_panel("over softmax", all.method(vq))});

  const Index first = lengths.front(), last = lengths.back();
  const Cells vq_cells = all.method(vq);
  const std::string head =
      "attention alone, forward, one head, d = dv = 64, float, one thread, causal; the codebook is given, not learned; "
      "median over blocks of turns";
  recipe.judge({.text = fmt::format("On one CPU thread, the time of causal attention to a codebook of {} codes grows "
                                    "no faster than linearly from n = {} to {}",
                                    codes, first, last),
                .source = "Lingle 2023, arXiv:2309.16354, abstract",
                .quotation = "We introduce Transformer-VQ, a decoder-only transformer computing softmax-based dense "
                             "self-attention in linear time.",
                .definition = "the factor by which a doubling of n multiplies the seconds of a call, every doubling "
                              "judged: softmax attention with each key replaced by the nearest code; " +
                              head,
                .threshold = "2.3: caches may add 15 % to the twofold of n",
                .because = "6 n c d operations"},
               [=, &recipe] {
                 return grows_as(recipe, linear_growth, {{vq, vq_cells}});
               });
  recipe.judge(
      {.text = fmt::format(
           "On one CPU thread, Transformer-VQ's attention gains more over softmax attention at n = {} than at n = {}",
           last, first),
       .source = "Lingle 2023, arXiv:2309.16354, abstract",
       .paraphrase = "the factor by which Transformer-VQ is faster grows from 8k to 32k tokens",
       .definition = fmt::format("its speedup over this project's tiled softmax at n = {} over its speedup at n = {}, "
                                 "block by block; below 1 where the gain grows; {} codes; ",
                                 first, last, codes) +
                     head + ". The source compares whole models at 8k and 32k tokens",
       .threshold = "1: equal gains",
       .because = "softmax takes quadratic time, a codebook linear"},
      [=, &recipe] {
        return all_below(
            1, {{"", median_of(times(vq_cells.n(first), vq_cells.n(last), "speedup"), recipe.error_rate(1))}});
      });
  recipe.judge(
      {.text = fmt::format("On one CPU thread, causal attention to {} codes is over 3 times as fast as softmax "
                           "attention at n = {}, and over 12 times at n = {}",
                           codes, 16 * codes, 64 * codes),
       .source = "Lingle 2023, arXiv:2309.16354, abstract",
       .quotation = "In addition, the optimized implementation of Transformer-VQ is over 3x faster than a comparable "
                    "quadratic-time transformer at sequence length 8k, is over 12x faster at 32k, and can scale to "
                    "131k with similar throughput.",
       .definition = "its speedup over this project's tiled softmax at 16 and at 64 tokens a code (published: 512 "
                     "codes, n = 8192 and 32,768), over the published factor of 3 or 12; " +
                     head + ". The paper's are whole models on accelerators, of which attention is a part",
       .threshold = "1: the published factors",
       .expected = Ruling::open,
       .because = "the rest of a model takes time that attention alone does not; but the machine is another"},
      [=, &recipe] {
        std::vector<Region> regions;
        for (const auto& [of_codes, published] : {std::pair{16, 3.0}, {64, 12.0}}) {
          std::vector<double> over = vq_cells.n(of_codes * codes).turns("speedup");
          for (double& speedup : over) speedup /= published;
          regions.push_back({fmt::format("n = {}, over {} times", of_codes * codes, published),
                             {{"", median_of(over, recipe.error_rate(2))}}});
        }
        return above_where(1, regions);
      });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "transformer-vq-speed",
                             .summary = "Speed of attention to a codebook against length",
                             .formula = "Is attention to a codebook linear in n, and as much faster than softmax as "
                                        "published?",
                             .reference = "Lingle 2023, arXiv:2309.16354, abstract and section 5"},
                    .write = write});

}  // namespace
}  // namespace attnbench::transformer_vq_speed_recipe
