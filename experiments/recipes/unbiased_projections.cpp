// Which ensembles of projection vectors keep positive features unbiased: source 002 says of orthogonal ones that any
// isotropic law does. It takes rows that are N(0, I) one by one: directions from the Haar measure (methods.md B4) and
// norms of chi_d, independent of the directions (J1) and not all sqrt(d) (B3). |q + k| = 1 here, d = m = 4, along
// (1, ..., 1) and along e1: laws that are not isotropic tell the two apart.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;
using Outcome = Verdict::Outcome;

struct Ensemble {
  std::string spec, name;
};
const std::vector<Ensemble> right{{"performer:m=4,projection=iid", "independent"},
                                  {"performer:m=4", "orthogonal, Haar directions and chi norms"},
                                  {"performer:m=4,projection=simplex", "simplex"},
                                  {"performer:m=4,projection=antithetic", "antithetic"},
                                  {"performer:m=4,projection=sobol", "scrambled Sobol"},
                                  {"performer:m=4,projection=halton", "shifted Halton"}};
const std::vector<Ensemble> wrong{{"performer:m=4,sign_fix=false", "directions of a raw QR factor"},
                                  {"performer:m=4,norms=same-block", "norms of the rows that QR began with"},
                                  {"performer:m=4,norms=sqrt-d", "all norms sqrt(d)"},
                                  {"performer:m=4,projection=hadamard", "products of Hadamard matrices"}};
const std::vector<std::pair<std::string, std::string>> directions{{"ones", "(1, ..., 1)"}, {"axis", "e1"}};

const Description text{.name = "unbiased-projections",
                       .summary = "Which orthogonal projections keep positive features unbiased",
                       .formula =
                           "Random features stay unbiased when their projection vectors are made orthogonal, for any "
                           "isotropic law of these.",
                       .reference = "Choromanski et al. 2020, arXiv:2009.14794, section 2.4"};

const std::string judged = "0.5";  // |q + k| = 1

std::string experiment(RecipeSize size, const std::string& length) {
  const Index most = size == RecipeSize::smoke ? 64 : size == RecipeSize::quick ? 2048 : 32768;
  const Index draws = size == RecipeSize::quick && length != judged ? 512 : most;
  return fmt::format("kernel-error:draws={},pairs=1,precision=0,by_pair=false", draws);
}
Specs lengths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {judged};
  return {"0.25", judged, "0.75"};
}
std::string input(const std::string& direction) { return "pair:direction=" + direction; }

Specs specs(const std::vector<Ensemble>& ensembles) {
  Specs all;
  for (const auto& ensemble : ensembles) all.push_back(ensemble.spec);
  return all;
}

std::vector<RunRequest> runs(RecipeSize size) {
  std::vector<RunRequest> all;
  for (const auto& length : lengths(size)) {
    RunRequest request{.experiment = experiment(size, length),
                       .methods = specs(right),
                       .inputs = {},
                       .n = {1},
                       .d = {4},
                       .replicates = size == RecipeSize::smoke ? 2 : 12};
    for (const auto& spec : specs(wrong)) request.methods.push_back(spec);
    for (const auto& [direction, words] : directions) request.inputs.push_back(input(direction) + ",length=" + length);
    all.push_back(request);
  }
  return all;
}

std::vector<Figure> figures(RecipeSize size) {
  auto experiments = nlohmann::json::array();
  for (const auto& length : lengths(size)) experiments.push_back(experiment(size, length));
  std::vector<Panel> panels;
  for (const auto& [direction, words] : directions) {
    const auto panel = [&, &along = direction](const std::string& title, const std::vector<Ensemble>& ensembles) {
      return Panel{.title = title,
                   .where = {{"experiment", experiments}, {"input", input(along)}, {"method", specs(ensembles)}},
                   .x = {"length"},
                   .x_label = "length |q| = |k|, half of |q + k|",
                   .y = "softmax_bias",
                   .y_label = "bias  E K'/exp(q.k) - 1"};
    };
    panels.push_back(panel("right laws, q + k along " + words, right));
    panels.push_back(panel("wrong laws, q + k along " + words, wrong));
  }
  return {figure("unbiased-projections", text, "Bias of positive features, by the law of their projection vectors",
                 "d = m = 4, q = k; means with 95 % intervals over replicates of draws.", panels)};
}

std::vector<Comparison> biases(const Results& results, const std::vector<Ensemble>& ensembles) {
  std::vector<Comparison> all;
  for (const auto& ensemble : ensembles)
    for (const auto& [direction, words] : directions)
      all.push_back({fmt::format("{}, q + k along {}", ensemble.name, words),
                     mean(results.scalar({{"method", ensemble.spec}, {"input", input(direction) + ",length=" + judged}},
                                         "softmax_bias"),
                          share_of_error_rate(ensembles.size() * directions.size()))});
  return all;
}

std::vector<Verdict> judge(const Results& results, RecipeSize) {
  Verdict holds = all_contain(0, 0.05,
                              "Positive features are unbiased with orthogonal, simplex, antithetic and randomised "
                              "quasi-Monte Carlo vectors that are N(0, I) one by one",
                              biases(results, right));
  const auto comparisons = biases(results, wrong);
  Verdict fails = all_contain(0, 0.05,
                              {"Orthogonal vectors keep positive features unbiased whatever the law of their norms and "
                               "directions (raw QR factors, the norms of its rows, norms sqrt(d), Hadamard products)",
                               Outcome::fail},
                              comparisons);
  std::vector<std::string> words;
  for (const auto& [what, estimate] : comparisons)
    words.push_back(fmt::format("{:+.1f} % of {}", 100 * estimate.value, what));
  fails.numbers += fmt::format("; {}", fmt::join(words, ", "));
  return {holds, fails};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
