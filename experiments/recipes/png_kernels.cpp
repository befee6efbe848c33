// The kernels that random features of other functions estimate, Performer's eq. 5: the Gaussian kernel from sines and
// cosines, softmax's from it by h(x) = exp(|x|^2/2), the angular and arc-cosine kernels from signs and powers of ReLU,
// and more (closed forms: methods.md A7). Cosines without their sines are not the Gaussian kernel.
#include <fmt/format.h>

#include "experiments/recipes/closed_forms.hpp"

namespace attnbench::png_kernels_recipe {
namespace {

const Specs exponentials{"positive", "hyperbolic", "oprf", "trig", "gaussian", "gaussian-phase", "exp"},
    others{"identity", "relu", "relu2", "step", "sign", "abs", "square", "erf", "cos"};

Specs specs(const Specs& maps) {
  Specs all;
  for (const auto& map : maps) all.push_back("performer:features=" + map + ",m=16,projection=iid");
  return all;
}

void write(Recipe& recipe) {
  Specs maps = exponentials;
  maps.insert(maps.end(), others.begin(), others.end());
  // Below the angles where targets are 0 and a relative error is undefined.
  const auto angles =
      recipe.sized<Specs>({"0.5"}, {"0.25", "0.6", "1"}, {"0.1", "0.25", "0.4", "0.6", "0.8", "1", "1.2"});
  const Cells all = recipe.run({.experiment = draws_of_a_pair(recipe.sized<Index>(64, 384, 6144)),
                                .methods = specs(maps),
                                .inputs = {"pair:length=0.5"},
                                .n = {1},
                                .d = {4},
                                .sweep = {{"angle", angles}},
                                .replicates = recipe.sized<Index>(2, replicates_for_means)});
  std::vector<Panel> panels;
  for (const auto& [title, drawn] : {std::pair{"exponential kernels", exponentials}, {"other kernels", others}}) {
    const Panel bias{.title = fmt::format("{}: bias", title),
                     .cells = all.methods(specs(drawn)),
                     .x = {"angle"},
                     .x_label = "angle between q and k (radians)",
                     .y = "relative_bias",
                     .y_label = "E K'/K - 1",
                     .series = {"features"}};
    Panel error = bias;
    error.title = fmt::format("{}: error", title);
    error.y = "relative_mse";
    error.y_label = "E (K'/K - 1)^2";
    error.y_scale = "log10";
    error.theory = "relative_mse_theory";
    panels.insert(panels.end(), {bias, error});
  }
  recipe.figure("png-kernels", "Estimates over the kernels that they are of",
                "d = 4, m = 16 independent vectors, |q| = |k| = 0.5; means with 95 % intervals over 32 replicates of "
                "draws, lines are closed forms.",
                panels);
  recipe.judge(
      {.text = fmt::format("At |q| = |k| = 0.5, random features of {} functions estimate without bias the kernels that "
                           "closed forms give for them",
                           maps.size()),
       .source = "Choromanski et al. 2020, arXiv:2009.14794, section 2.3, after eq. 5, for functions with h = 1",
       .quotation = "For example, by taking h(x) = 1, l = 1 and D = N(0, I_d) we obtain estimators of the so-called "
                    "PNG-kernels (Choromanski et al., 2017) (e.g. f_1 = sgn corresponds to the angular kernel).",
       .definition =
           fmt::format("the mean over draws of the estimate with features h(x) f(W x) / sqrt(m) over the kernel's "
                       "closed form, less 1 (kernel-error, relative_bias), the mean over {} replicates; f or features: "
                       "{}; d = 4, m = 16 independent vectors, |q| = |k| = 0.5, angles {} between q and k",
                       recipe.sized<Index>(2, replicates_for_means), fmt::join(maps, ", "), fmt::join(angles, ", ")),
       .threshold = "0, which every interval must hold, with intervals narrower than +-0.1: kernels that are mistaken "
                    "for each other, such as that of cosines alone for the Gaussian one, differ by more",
       .because = "each closed form is the expectation of a product of two functions of normal variables"},
      [=, &recipe] {
        std::vector<Comparison> comparisons;
        for (const Cells& one : all.one_by_one())
          comparisons.push_back({name_of(one), mean(one.scalar("relative_bias"), recipe.error_rate(all.size()))});
        return all_contain(0, 0.1, comparisons);
      });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "png-kernels",
                             .summary = "The kernels that features of random projections estimate",
                             .formula = "Do features h(x) f(W x) / sqrt(m) estimate, without bias, the kernels that "
                                        "theory gives for their functions f?",
                             .reference = "Choromanski et al. 2020, arXiv:2009.14794, eq. 5"},
                    .write = write});

}  // namespace
}  // namespace attnbench::png_kernels_recipe
