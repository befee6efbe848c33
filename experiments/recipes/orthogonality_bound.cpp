// Performer's Theorem 2: how much less orthogonal vectors err than independent ones with positive features, m <= d.
// Both sides have closed forms (methods.md B), so the recipe checks the theorem exactly, without sampling.
#include <fmt/format.h>

#include "experiments/recipes/closed_forms.hpp"

namespace attnbench::orthogonality_bound_recipe {
namespace {

void write(Recipe& recipe) {
  const auto sizes = recipe.sized<std::vector<Index>>({4}, {2, 4, 16, 64});
  std::vector<std::string> lengths;
  // Up to |q + k|^2 = 16: beyond that, rounding is not small compared with the gain.
  const double step = recipe.sized(5.0, 1.5, 1.1);
  for (double length = 0.05; length < 2; length *= step) lengths.push_back(fmt::format("{:.4g}", length));
  std::vector<Panel> panels;
  Cells all;
  for (const Index d : sizes) {
    const Cells cells = recipe.run({.experiment = "performer-bounds",
                                    .methods = {fmt::format("performer:m={}", d)},
                                    .inputs = {"pair"},
                                    .n = {1},
                                    .d = {d},
                                    .sweep = {{"length", lengths}}});
    all = all + cells;
    panels.push_back({.title = fmt::format("d = m = {}", d),
                      .cells = cells,
                      .x = {"length"},
                      .x_label = "length |q| = |k|, half of |q + k|",
                      .x_scale = "log10",
                      .y = "orthogonal_gain",
                      .y_label = "(MSE_iid - MSE_ort) / exp(q.k)^2",
                      .y_scale = "log10",
                      .theory = "orthogonal_gain_bound"});
  }
  recipe.figure("orthogonality-bound", "The gain of orthogonal vectors, and the bound of Theorem 2",
                "q = k, positive features, m = d. Points: by how much the mean squared error of orthogonal vectors is "
                "less than that of independent ones, both by closed forms. Lines: what the theorem says that it is at "
                "least. They touch for short vectors, and the bound is loose for long ones.",
                panels);
  recipe.judge(
      {.text = "At q = k and m = d, positive features with orthogonal vectors err less than with independent ones by "
               "at least what Theorem 2 says",
       .source = "Choromanski et al. 2020, arXiv:2009.14794 (v4), section 3, Theorem 2, eq. 10",
       .quotation = "If SM^ort+_m(x,y) stands for the modification of SM^+_m(x,y) with orthogonal random features (and "
                    "thus for m <= d), then the following holds for any d > 0: MSE(SM^ort+_m(x,y)) <= "
                    "MSE(SM^+_m(x,y)) - 2(m-1)/(m(d+2)) (SM(x,y) - exp(-(|x|^2+|y|^2)/2))^2.",
       .definition = "the gap that the theorem guarantees, against the gain: the difference of the mean squared errors "
                     "by closed forms; both in units of exp(q.k)^2, at q = k, m = d = 2, 4, 16, 64 and |q + k|^2 from "
                     "0.01 to 16. The theorem is of any x and y and of m <= d",
       .threshold =
           "the gain at each setting; an earlier version of the paper has SM^2 in place of the bracket, which cannot "
           "hold at y = -x",
       .because = "the theorem is proved"},
      [=] {
        std::vector<Bounded> bounded;
        double least = 1, greatest = 0;  // of the bound over the gain
        for (const Cells& one : all.one_by_one()) {
          const double gain = one.scalar("orthogonal_gain").at(0), bound = one.scalar("orthogonal_gain_bound").at(0);
          bounded.push_back({"guaranteed gap, with the gain as its bound, of " + name_of(one), bound, gain});
          least = std::min(least, bound / gain);
          greatest = std::max(greatest, bound / gain);
        }
        Finding finding = all_at_most(bounded);
        finding.numbers += fmt::format("; the guaranteed gap is {:.3g} to {:.4g} of the gain", least, greatest);
        return finding;
      });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "orthogonality-bound",
                             .summary = "The Performer's bound on what orthogonal vectors gain",
                             .formula = "Is the gain of orthogonal vectors as large as Theorem 2 says, and how near "
                                        "does the bound come?",
                             .reference = "Choromanski et al. 2020, arXiv:2009.14794, Theorem 2"},
                    .write = write});

}  // namespace
}  // namespace attnbench::orthogonality_bound_recipe
