// The kernels that random features of other functions estimate, source 002 after the Performer's eq. 5: the Gaussian
// kernel from sines and cosines, softmax's from it by h(x) = exp(|x|^2/2), the angular and arc-cosine kernels from
// signs and powers of ReLU, and more (closed forms: methods.md A7). Cosines without their sines are not the Gaussian
// kernel.
#include <fmt/format.h>

#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const Specs exponentials{"positive", "hyperbolic", "oprf", "trig", "gaussian", "gaussian-phase", "exp"},
    others{"identity", "relu", "relu2", "step", "sign", "abs", "square", "erf", "cos"};

const Description text{.name = "png-kernels",
                       .summary = "The kernels that features of random projections estimate",
                       .formula =
                           "Features h(x) f(W x) / sqrt(m) estimate softmax's kernel with h(x) = exp(|x|^2/2) and f = "
                           "(sin, cos), the Gaussian kernel with h = 1, and others with other f, all without bias.",
                       .reference = "Choromanski et al. 2020, arXiv:2009.14794, eq. 5"};

std::string spec(const std::string& map) { return "performer:features=" + map + ",m=16,projection=iid"; }
Specs specs(const Specs& maps) {
  Specs all;
  for (const auto& map : maps) all.push_back(spec(map));
  return all;
}
Specs all_maps() {
  Specs all = exponentials;
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

// Short of where targets are 0, which no error is relative to.
Specs angles(RecipeSize size) {
  if (size == RecipeSize::smoke) return {"0.5"};
  if (size == RecipeSize::quick) return {"0.25", "0.6", "1"};
  return {"0.1", "0.25", "0.4", "0.6", "0.8", "1", "1.2"};
}
std::string experiment(RecipeSize size) {
  const Index draws = size == RecipeSize::smoke ? 64 : size == RecipeSize::quick ? 2048 : 32768;
  return fmt::format("kernel-error:draws={},pairs=1,precision=0,by_pair=false", draws);
}
const std::string pair = "pair:length=0.5";

std::vector<RunRequest> runs(RecipeSize size) {
  return {{.experiment = experiment(size),
           .methods = specs(all_maps()),
           .inputs = {pair},
           .n = {1},
           .d = {4},
           .sweep = {{"angle", angles(size)}},
           .replicates = size == RecipeSize::smoke ? 2 : 12}};
}

std::vector<Figure> figures(RecipeSize size) {
  std::vector<Panel> panels;
  for (const auto& [title, maps] : {std::pair{"exponential kernels", exponentials}, {"other kernels", others}}) {
    Panel bias{.title = fmt::format("{}: bias", title),
               .where = {{"experiment", experiment(size)}, {"input", pair}, {"method", specs(maps)}},
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
  return {figure("png-kernels", text, "Estimates over the kernels that they are of",
                 "d = 4, m = 16 independent vectors, |q| = |k| = 0.5; means with 95 % intervals over replicates of "
                 "draws, lines are closed forms.",
                 panels)};
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  const Specs maps = all_maps();
  std::vector<Comparison> comparisons;
  for (const auto& map : maps)
    for (const auto& angle : angles(size)) {
      const nlohmann::json where{{"method", spec(map)}, {"input", pair + ",angle=" + angle}};
      comparisons.push_back(
          {fmt::format("{} at angle {}", map, angle),
           mean(results.scalar(where, "relative_bias"), share_of_error_rate(maps.size() * angles(size).size()))});
    }
  return {all_contain(0, 0.1,
                      fmt::format("Random features of {} functions estimate the kernels that theory gives for them "
                                  "without bias",
                                  maps.size()),
                      comparisons)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
