// FNet applied twice does not reverse its input. methods.md G1: the complex transform F over tokens and channels has
// F(F(V)) = n dv V^-, V^-_ij = V_(-i mod n, -j mod dv). FNet keeps the real part each time: what is left of V is its
// even part, (V + V^-) / 2, and the odd part is gone after the first time, whatever comes behind it.
#include <fmt/format.h>

#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

const Description text{.name = "fnet-twice",
                       .summary = "What FNet applied twice leaves of its input",
                       .formula =
                           "Two Fourier transforms reverse their input; two FNet layers, which keep real parts, give "
                           "its even part alone.",
                       .reference = "Lee-Thorp et al. 2021, arXiv:2105.03824, eq. 3"};

// Even and odd sizes have 2 and 1 frequencies of their own.
std::vector<Index> lengths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {8, 15};
  return {8, 15, 16, 33, 64, 128};
}
std::vector<Index> widths(RecipeSize size) {
  return size == RecipeSize::smoke ? std::vector<Index>{4} : std::vector<Index>{5, 16};
}

std::vector<RunRequest> runs(RecipeSize size) {
  return {{.experiment = "fourier-twice",
           .methods = {"fnet"},
           .inputs = {"gaussian"},
           .n = lengths(size),
           .d = widths(size),
           .causal = false,
           .replicates = 3}};
}

std::vector<Figure> figures(RecipeSize size) {
  std::vector<Panel> panels;
  for (const auto& [metric, title] : {std::pair{"to_reversal", "FNet twice, to the reversal"},
                                      {"to_even_part", "FNet twice, to the even part"},
                                      {"complex_to_reversal", "complex transform twice, to the reversal"}})
    panels.push_back({.title = title,
                      .where = {{"experiment", "fourier-twice"}, {"input", "gaussian"}, {"d", widths(size)}},
                      .x = {"n"},
                      .x_label = "tokens n",
                      .x_scale = "log2",
                      .y = metric,
                      .y_label = "distance / |V|",
                      .y_scale = "log10",
                      .series = {"method", "d"}});
  return {figure("fnet-twice", text, "What two Fourier transforms give back",
                 "Output over n dv, against V reversed and against its even part; dv = d, 95 % intervals over inputs. "
                 "Of normal V half of the energy is odd and is lost; 1e-16 is rounding.",
                 panels)};
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  constexpr double rounding = 1e-12;
  const auto all = [&](const std::string& metric) {
    std::vector<Bounded> distances;
    for (const Index n : lengths(size))
      for (const Index d : widths(size))
        for (const auto& [replicate, distance] : results.scalar({{"n", n}, {"d", d}}, metric))
          distances.push_back({fmt::format("n = {}, dv = {}", n, d), distance, rounding});
    return distances;
  };
  return {all_at_most({"FNet applied twice gives its input reversed, times n dv (distance over |V|)",
                       Verdict::Outcome::fail, "a remark often made; true of the complex transform"},
                      all("to_reversal")),
          all_at_most("FNet applied twice gives the even part of its input, times n dv (distance over |V|)",
                      all("to_even_part")),
          all_at_most("FNet annihilates the odd part of its input (what it keeps of its norm)", all("odd_part_kept")),
          all_at_most("The complex Fourier transform applied twice reverses its input (distance over |V|)",
                      all("complex_to_reversal"))};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
