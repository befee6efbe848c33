// The published gradients of causal linear attention: which function they are gradients of, and their cost. Eq. 13 to
// 15 are those of the numerators. In the attention, queries and keys also move the denominators, which adds gamma_i Z_i
// and zeta_i (methods.md H3); values do not. An implementation of eq. 13 to 15 alone trains with wrong gradients.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/recipes/growth.hpp"

namespace attnbench::gradients_recipe {
namespace {

const std::vector<std::string> laws{"gaussian", "ar1"}, tensors{"queries", "keys", "values"};
constexpr double resolution = 1e-6;
const std::string resolved =
    "1e-6: what differences with steps of 1e-6 in double resolve; rounding leaves 1e-9, and a step over the bend of "
    "elu "
    "at 0 leaves 5e-7 at most";
const std::string paper = "Katharopoulos et al. 2020, arXiv:2006.16236, ";
const std::string differences =
    "relative error of a gradient against central differences of its loss along random directions, root mean square, "
    "in double; causal linear attention with elu + 1, d = 16, independent normal tokens and AR(1) tokens of "
    "correlation 0.9";

void draw(Recipe& recipe, const Cells& errors, const Cells& steps) {
  std::vector<Panel> panels;
  for (const auto& tensor : tensors)
    panels.push_back({.title = "equations 13 to 15 for the " + tensor,
                      .cells = errors,
                      .x = {"n"},
                      .x_label = "sequence length n",
                      .x_scale = "log2",
                      .y = "published_error_" + tensor,
                      .y_label = "relative error against differences",
                      .y_scale = "log10",
                      .interval = "median",
                      .series = {"input"}});
  panels.push_back(time_panel("forward and backward", steps, "seconds per training step"));
  panels.push_back(panels.back());
  panels.back().title = "memory beyond input, output and gradients";
  panels.back().y = "peak_bytes";
  panels.back().y_label = "peak memory in bytes";
  panels.back().slope = false;
  recipe.figure("gradients", "Gradients of causal linear attention",
                "Equations 13 to 15 taken for the gradients of the attention, against differences of the loss, d = 16, "
                "medians of 32 draws: wrong by a tenth and more for queries and keys, which move the denominators as "
                "well, and to what differences resolve for values, which do not. Below: one head, d = 64, float, one "
                "thread, causal.",
                panels);
}

void judge_gradients(Recipe& recipe, const Cells& errors) {
  std::vector<Index> lengths;
  for (const Cells& one : by_length(errors.input(laws.front()))) lengths.push_back(length_of(one));
  const std::string draws = fmt::format("n = {}, {} draws", fmt::join(lengths, ", "), errors.all().front().replicates),
                    everywhere = differences + ", " + draws + ", each of which must hold";
  const auto every_draw = [=](const std::string& kind) {
    std::vector<Bounded> all;
    for (const auto& tensor : tensors)
      for (const auto& law : laws)
        for (const Cells& one : by_length(errors.input(law)))
          for (const auto& [replicate, error] : one.scalar(kind + "_error_" + tensor))
            all.push_back({fmt::format("{} of {}, n = {}", tensor, law, length_of(one)), error, resolution});
    return all_at_most(all);
  };
  recipe.judge({.text = "Equations 13 to 15 are the gradients of the numerators of causal linear attention",
                .source = paper + "section 3.3.1, eq. 13 to 15",
                .quotation = "To address this, we derive the gradients of the numerator in equation 9 as cumulative "
                             "sums.",
                .definition = everywhere + "; loss <G, numerators>, G random",
                .threshold = resolved,
                .because = "derived in the paper's appendix A, and again in this project's specification"},
               [=] { return every_draw("numerator"); });
  recipe.judge(
      {.text = "Taken for the gradients of the whole attention, equations 13 to 15 are right for queries, for keys and "
               "for values",
       .definition = differences + ", " + draws +
                     ", medians over draws; loss <g, output>, g random, with G_i = g_i / den_i in the equations, den_i "
                     "the denominator of row i. The paper derives the equations for the numerators and does not claim "
                     "that they are the gradients of the whole attention",
       .threshold = resolved,
       .expected = Ruling::depends,
       .because = "values do not move the denominators, queries and keys do"},
      [=, &recipe] {
        std::vector<Region> regions;
        for (const auto& tensor : tensors) {
          regions.push_back({tensor, {}});
          for (const auto& law : laws)
            for (const Cells& one : by_length(errors.input(law)))
              regions.back().comparisons.push_back({fmt::format("{}, n = {}", law, length_of(one)),
                                                    median_of(one.scalar("published_error_" + tensor),
                                                              recipe.error_rate(tensors.size() * errors.size()))});
        }
        return below_where(resolution, regions);
      });
  recipe.judge({.text = "With the part of the denominators added, equations 13 to 15 of Katharopoulos et al. are the "
                        "gradients of causal linear attention",
                .definition = everywhere + "; loss <g, output>, g random; the gradients that this project computes",
                .threshold = resolved,
                .because = "the derivative of a quotient; this also tests the code"},
               [=] { return every_draw("whole"); });
}

void judge_cost(Recipe& recipe, const Cells& steps) {
  const auto lengths = by_length(steps);
  const std::string setting =
      "forward and backward of causal linear attention, elu + 1, one head, d = dv = 64, float, "
      "one CPU thread";
  recipe.judge(
      {.text = "On one CPU thread, a training step of causal linear attention takes time that is linear in the "
               "sequence length",
       .source = paper + "section 3.3.1",
       .quotation = "The cumulative sum terms in equations 9, 13-15 are computed in linear time and require "
                    "constant memory with respect to the sequence length.",
       .definition =
           setting + fmt::format("; seconds of a step, every doubling from n = {} to {}, medians over blocks of turns",
                                 length_of(lengths.front()), length_of(lengths.back())),
       .threshold = "every doubling multiplies the time by at most 2.3: 2 and the 15 % of the rule for growth",
       .because = "the operations are linear in n"},
      [=, &recipe] {
        return grows_as(recipe, linear_growth, {{"linear", steps}});
      });
  recipe.judge(
      {.text = "A training step of causal linear attention needs at most max(C, M) further floats for every further "
               "token, so that it keeps no state for each",
       .source = paper + "section 3.3.1",
       .quotation = "This results in an algorithm with computational complexity O(N C M) and memory O(N max(C, M)) for "
                    "a given feature map of C dimensions.",
       .definition = setting + fmt::format("; peak memory beyond inputs, output and gradients: bytes that a further "
                                           "token adds, the difference between n = {1} and n = {0} over {1} - {0}",
                                           length_of(lengths.front()), length_of(lengths.back())),
       .threshold = "256 bytes: max(C, M) = 64 floats a token, which the paper allows for all of its memory; a state S "
                    "has 16,384 bytes",
       .because = "cumulative sums need one state at a time"},
      [=] {
        const auto first = lengths.front().scalar("peak_bytes"), last = lengths.back().scalar("peak_bytes");
        std::vector<Bounded> bytes;
        const auto tokens = static_cast<double>(length_of(lengths.back()) - length_of(lengths.front()));
        for (const auto& [replicate, peak] : last)
          if (first.contains(replicate))
            bytes.push_back({"bytes a token", (peak - first.at(replicate)) / tokens, 64 * sizeof(float)});
        return all_at_most(bytes);
      });
}

void write(Recipe& recipe) {
  const Cells errors = recipe.run({.experiment = "gradients",
                                   .methods = {"linear"},
                                   .inputs = laws,
                                   .n = recipe.sized<std::vector<Index>>({32}, {64, 256}, {64, 128, 256, 512, 1024}),
                                   .d = {16},
                                   .causal = true,
                                   .replicates = recipe.sized<Index>(2, 32)});
  // Memory is measured in pages, and a short sequence does not fill one.
  const Cells steps = recipe.run(
      {.experiment = "training-step:" + turns(recipe) + ",pair=false",
       .methods = {"linear"},
       .inputs = {"gaussian"},
       .n = recipe.sized<std::vector<Index>>({512, 1024}, {2048, 4096, 8192}, {2048, 4096, 8192, 16384, 32768}),
       .causal = true,
       .precision = Precision::f32});
  draw(recipe, errors, steps);
  judge_gradients(recipe, errors);
  judge_cost(recipe, steps);
}

const bool registered = add(
    RecipeEntry{.text = {.name = "gradients",
                         .summary = "Published gradients of linear attention: of its numerators, at linear cost",
                         .formula = "Of which function are equations 13 to 15 the gradients, and do they take linear "
                                    "time and constant memory?",
                         .reference = "Katharopoulos et al. 2020, arXiv:2006.16236, section 3.3.1 and eq. 13 to 15"},
                .write = write});

}  // namespace
}  // namespace attnbench::gradients_recipe
