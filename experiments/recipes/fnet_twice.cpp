// FNet applied twice, and the part of its input that survives. methods.md G1: the complex transform F over tokens and
// channels has F(F(V)) = n dv V^-, V^-_ij = V_(-i mod n, -j mod dv). FNet keeps the real part each time, so only the
// even part of V survives, (V + V^-) / 2. The first application already loses the odd part.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/runner/recipe.hpp"

namespace attnbench::fnet_twice_recipe {
namespace {

void write(Recipe& recipe) {
  // Even and odd sizes have 2 and 1 frequencies that equal their own negative.
  const auto lengths = recipe.sized<std::vector<Index>>({8, 15}, {8, 15, 16, 33, 64, 128});
  const auto widths = recipe.sized<std::vector<Index>>({4}, {5, 16});
  const Cells all = recipe.run({.experiment = "fourier-twice",
                                .methods = {"fnet"},
                                .inputs = {"gaussian"},
                                .n = lengths,
                                .d = widths,
                                .causal = false,
                                .replicates = 3});
  std::vector<Panel> panels;
  for (const auto& [metric, title] : {std::pair{"to_reversal", "FNet twice, to the reversal"},
                                      {"to_even_part", "FNet twice, to the even part"},
                                      {"complex_to_reversal", "complex transform twice, to the reversal"}})
    panels.push_back({.title = title,
                      .cells = all,
                      .x = {"n"},
                      .x_label = "tokens n",
                      .x_scale = "log2",
                      .y = metric,
                      .y_label = "distance / |V|",
                      .y_scale = "log10",
                      .series = {"method", "d"}});
  recipe.figure(
      "fnet-twice", "Two Fourier transforms against their input reversed",
      "Output over n dv, against V reversed and against its even part; dv = d, 95 % intervals over inputs. Half "
      "of the energy of normal V is odd and is lost; 1e-16 is rounding.",
      panels);

  const auto every = [=](const std::string& metric) {
    std::vector<Bounded> distances;
    for (const Index n : lengths)
      for (const Index d : widths)
        for (const auto& [replicate, distance] : all.n(n).where({{"d", d}}).scalar(metric))
          distances.push_back({fmt::format("n = {}, dv = {}", n, d), distance, 1e-12});
    return distances;
  };
  const std::string sizes = fmt::format(
      "; V^-_ij = V_(-i mod n, -j mod dv) is V reversed along tokens and channels; independent normal V, n = {}, dv = "
      "{}, every one of {} inputs, no mask",
      fmt::join(lengths, ", "), fmt::join(widths, " and "), all.all().front().replicates);
  recipe.judge({.text = "FNet's mixing applied twice gives n dv times the even part of its input, so that nothing of "
                        "the odd part is left",
                .definition = "the distance of the output over n dv to the even part (V + V^-) / 2, over |V| "
                              "(Frobenius). FNet's mixing is the real part of the unnormalised Fourier transform over "
                              "tokens and channels, with nothing between the two" +
                              sizes,
                .threshold = "1e-12: an identity, to rounding",
                .because = "the real part of the transform of an odd signal is 0"},
               [=] { return all_at_most(every("to_even_part")); });
  recipe.judge(
      {.text =
           "The complex Fourier transform over tokens and channels, applied twice, gives n dv times its input reversed",
       .definition = "the distance of the output of the unnormalised complex transform, applied twice, over n dv to "
                     "V^-, over |V| (Frobenius)" +
                     sizes,
       .threshold = "1e-12: an identity, to rounding",
       .because = "the square of the discrete Fourier transform is the reversal"},
      [=] { return all_at_most(every("complex_to_reversal")); });
}

const bool registered = add(
    RecipeEntry{.text = {.name = "fnet-twice",
                         .summary = "The part of its input that FNet applied twice leaves",
                         .formula = "Which part of their input do two FNet layers without anything between them leave?",
                         .reference = "Lee-Thorp et al. 2021, arXiv:2105.03824, eq. 3"},
                .write = write});

}  // namespace
}  // namespace attnbench::fnet_twice_recipe
