// What the missing sign fix of a QR factor does to positive features (methods.md B). Householder QR gives a Q whose
// first entries have one sign; google-research's JAX code, performer-pytorch and fast-transformers use it as it is.
// |q + k| = 0.8 here: |q| = |k| = 0.4 at angle 0, along (1, ..., 1) and along e1.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const std::string correct = "performer", raw = "performer:sign_fix=false";
const Specs directions{"ones", "axis"};

std::string with_m(const std::string& method, Index d) {
  return fmt::format("{}{}m={}", method, method.find(':') == std::string::npos ? ":" : ",", d);
}

std::string input(const std::string& direction) { return "pair:length=0.4,direction=" + direction; }

std::vector<Index> sizes(RecipeSize size) {
  return size == RecipeSize::smoke ? std::vector<Index>{4, 8} : std::vector<Index>{4, 8, 16, 32, 64};
}

// Long vectors average more in one draw and take longer to draw.
std::string experiment(RecipeSize size, Index d) {
  const Index draws = size == RecipeSize::smoke ? 64 : (size == RecipeSize::quick ? 32768 : 1048576) / d;
  return fmt::format("kernel-error:draws={},pairs=1,precision=0,by_pair=false", draws);
}

const Description text{.name = "sign-fix",
                       .summary = "QR without the sign fix: a bias that a mean squared error does not show",
                       .formula =
                           "Rows of a raw Householder QR factor are not Haar distributed: positive features made of "
                           "them are biased, and at d = 4 their mean squared error is lower for it.",
                       .reference = "Mezzadri 2007, arXiv:math-ph/0609050"};

std::vector<RunRequest> runs(RecipeSize size) {
  std::vector<RunRequest> all;
  for (const Index d : sizes(size)) {
    RunRequest request{.experiment = experiment(size, d),
                       .methods = {with_m(correct, d), with_m(raw, d)},
                       .inputs = {},
                       .n = {1},
                       .d = {d},
                       .replicates = size == RecipeSize::smoke ? 2 : 12};
    for (const auto& direction : directions) request.inputs.push_back(input(direction));
    all.push_back(request);
  }
  return all;
}

std::vector<Figure> figures(RecipeSize size) {
  auto experiments = nlohmann::json::array();
  for (const Index d : sizes(size)) experiments.push_back(experiment(size, d));
  std::vector<Panel> bias, error;
  for (const auto& direction : directions) {
    const Panel panel{.title = direction == "ones" ? "q + k along (1, ..., 1)" : "q + k along e1",
                      .where = {{"experiment", experiments}, {"input", input(direction)}},
                      .x = {"m"},
                      .x_label = "d = m",
                      .x_scale = "log2",
                      .y = "relative_bias",
                      .y_label = "bias  E K'/K - 1"};
    bias.push_back(panel);
    Panel ratio = panel;
    ratio.y = "relative_mse";
    ratio.y_label = "MSE / MSE of the correct code";
    ratio.ratio_to = correct;
    error.push_back(ratio);
  }
  bias.insert(bias.end(), error.begin(), error.end());
  return {figure("sign-fix", text, "Bias and error of raw QR factors",
                 "Positive features, m = d, |q + k| = 0.8; 95 % intervals over replicates. Above: the correct code has "
                 "no bias, the raw factor has one that depends on the direction. Below: its mean squared error over "
                 "that of the correct code. An evaluation by MSE prefers the wrong code where it is below 1.",
                 bias)};
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  const auto all_d = sizes(size);
  std::vector<Comparison> biased, unbiased;
  std::vector<Region> lower_error;
  std::vector<std::string> biases;
  for (const auto& direction : directions) {
    for (const Index d : all_d) {
      const auto samples = [&](const std::string& method, const std::string& metric) {
        return results.scalar({{"method", with_m(method, d)}, {"input", input(direction)}, {"d", d}}, metric);
      };
      const std::string what = fmt::format("d = {} along {}", d, direction == "ones" ? "(1, ..., 1)" : "e1");
      unbiased.push_back({what, mean(samples(correct, "relative_bias"), share_of_error_rate(2 * all_d.size()))});
      lower_error.push_back({what,
                             {{"", ratio(samples(raw, "relative_mse"), samples(correct, "relative_mse"),
                                         share_of_error_rate(2 * all_d.size()))}}});
      if (direction != "ones") continue;
      biased.push_back({what, mean(samples(raw, "relative_bias"), share_of_error_rate(all_d.size()))});
      biases.push_back(fmt::format("{:+.1f} % at d = {}", 100 * biased.back().estimate.value, d));
    }
  }
  Verdict bias = all_below(
      0, "Without the sign fix of the QR factor positive features are biased downwards along (1, ..., 1)", biased);
  bias.numbers += fmt::format("; {}", fmt::join(biases, ", "));
  return {bias, all_contain(0, 0.03, "With the sign fix positive features have no bias", unbiased),
          below_where(1,
                      {"The biased code has the lower mean squared error, so that an evaluation by it prefers the bug",
                       Verdict::Outcome::ambiguous},
                      lower_error)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
