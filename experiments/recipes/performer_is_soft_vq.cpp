// Whether Performer is vector quantisation made soft: source 001's chain of steps, each measured. Hard VQ, VQ softened
// by a Gaussian mixture of width sigma, Performer, and Performer with its omegas read as codes in both ways (methods.md
// D).
#include <fmt/format.h>

#include "harness/core/parameters.hpp"
#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const std::string fixed = "performer:projection=orthogonal-fixed-norm", densities = "performer-vq",
                  over_codes = "performer-vq:form=softmax-over-codes";
const Specs quantised{"vq", "soft-vq:sigma=0.5", "soft-vq"};

const std::string experiment = "attention-error:matrix=false";
const Specs inputs{"gaussian:scale=0.5", "gaussian", "clustered", "model"};
const Specs titles{"gaussian, scale 0.5", "gaussian, scale 1", "clustered", "real head"};

const Description text{.name = "performer-is-soft-vq",
                       .summary = "Performer read as soft vector quantisation, step by step",
                       .formula =
                           "Performer's features are densities of a key at random codes, so Performer is vector "
                           "quantisation made soft: with omegas of equal norm its kernel is sum_y exp(q.w_y) "
                           "exp(-|k - w_y|^2/2), which is proportional to a softmax over codes.",
                       .reference = "Su 2023, kexue.fm/archives/9862; Lingle 2023, arXiv:2309.16354"};

Specs budgets(RecipeSize size) {
  if (size == RecipeSize::smoke) return {"8", "16"};
  if (size == RecipeSize::quick) return {"16", "64", "128"};
  return {"16", "32", "64", "128", "256"};
}

Specs widths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {"0.5", "1"};
  if (size == RecipeSize::quick) return {"0.1", "0.25", "0.5", "1", "2"};
  return {"0.1", "0.25", "0.35", "0.5", "0.7", "1", "1.4", "2", "4"};
}

Index length(RecipeSize size) { return size == RecipeSize::smoke ? 64 : size == RecipeSize::quick ? 512 : 1024; }

std::string with(const std::string& method, const std::string& arguments) {
  return method + (method.find(':') == std::string::npos ? ":" : ",") + arguments;
}

std::string canonical(const std::string& spec) { return Params("methods", spec).spec(); }

std::string widest_codebook(RecipeSize size) { return budgets(size).back(); }

std::vector<RunRequest> runs(RecipeSize size) {
  RunRequest over_budget{.experiment = experiment,
                         .methods = quantised,
                         .inputs = inputs,
                         .n = {length(size)},
                         .causal = false,
                         .sweep = {{"m", budgets(size)}, {"codes", budgets(size)}},
                         .replicates = size == RecipeSize::smoke   ? 2
                                       : size == RecipeSize::quick ? 8
                                                                   : 15};
  for (const auto& method : {std::string("performer"), fixed, densities, over_codes, std::string("uniform")})
    over_budget.methods.push_back(method);
  RunRequest over_width = over_budget;
  over_width.methods = {"soft-vq:codes=" + widest_codebook(size)};
  over_width.sweep = {{"sigma", widths(size)}};
  return {over_budget, over_width};
}

std::vector<Figure> figures(RecipeSize size) {
  std::vector<Panel> over_budget, over_width;
  Specs methods = quantised;
  for (const auto& method : {std::string("performer"), densities, over_codes, std::string("uniform")})
    methods.push_back(method);
  for (size_t i = 0; i < inputs.size(); ++i) {
    Panel panel{.title = titles[i],
                .where = {{"experiment", experiment}, {"input", inputs[i]}, {"causal", 0}, {"method", methods}},
                .x = {"m", "codes"},
                .x_label = "codes, or features m",
                .x_scale = "log2",
                .y = "relative_output_error",
                .y_label = "|A'V - AV| / |AV|  (Frobenius)",
                .y_scale = "log10",
                .references = {"uniform"}};
    over_budget.push_back(panel);
    panel.where["method"] = canonical("soft-vq:codes=" + widest_codebook(size));
    panel.x = {"sigma"};
    panel.x_label = "width sigma of the mixture";
    panel.x_scale = "log10";
    panel.references = {canonical("vq:codes=" + widest_codebook(size)), "uniform"};
    over_width.push_back(panel);
  }
  return {figure("performer-is-soft-vq", text, "Performer as soft vector quantisation",
                 fmt::format("Relative Frobenius error of the output at n = {}, d = 64, bidirectional; means "
                             "with 95 % intervals over inputs and draws. Codebooks are learnt on another head of the "
                             "same law; performer-vq has its omegas for codes, at norms sqrt(d). Above the line of "
                             "uniform, a method is worse than the mean of V.",
                             length(size)),
                 over_budget),
          figure("soft-vq-over-width", text, "Soft vector quantisation between VQ and the mean of V",
                 fmt::format("{} codes: a narrow mixture is hard VQ, a wide one the mean of V.", widest_codebook(size)),
                 over_width)};
}

// One region an input, in it a comparison for each budget: the error of `method` over that of `other`.
std::vector<Region> over_budgets(const Results& results, RecipeSize size, const std::string& method,
                                 const std::string& other) {
  const double rate = share_of_error_rate(inputs.size() * budgets(size).size());
  const auto error = [&](const std::string& input, const std::string& spec) {
    return results.scalar({{"method", spec}, {"input", input}}, "relative_output_error");
  };
  std::vector<Region> regions;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Region region{titles[i], {}};
    for (const auto& m : budgets(size))
      region.comparisons.push_back(
          {"m = " + m, ratio(error(inputs[i], with(method, "m=" + m)),
                             error(inputs[i], other == "uniform" ? other : with(other, "m=" + m)), rate)});
    regions.push_back(region);
  }
  return regions;
}

Verdict judge_identity(const Results& results, RecipeSize size) {
  std::vector<Comparison> both_ways;
  for (const auto& [method, other] : {std::pair(densities, fixed), std::pair(fixed, densities)})
    for (const auto& region : over_budgets(results, size, method, other))
      for (const auto& comparison : region.comparisons)
        both_ways.push_back({region.name + ", " + comparison.what, comparison.estimate});
  return all_below(1.001,
                   "Performer with omegas of norm sqrt(d) errs like its reading as densities of keys at codes, to one "
                   "part in a thousand",
                   both_ways);
}

// Of all widths, the one that is surest to be below: by the upper end of its interval.
Verdict judge_softening(const Results& results, RecipeSize size) {
  const double rate = share_of_error_rate(inputs.size() * widths(size).size());
  const std::string codes = "codes=" + widest_codebook(size);
  std::vector<Region> regions;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto error = [&](const std::string& spec) {
      return results.scalar({{"method", spec}, {"input", inputs[i]}}, "relative_output_error");
    };
    Comparison best;
    for (const auto& sigma : widths(size)) {
      const Estimate found = ratio(error(with("soft-vq:" + codes, "sigma=" + sigma)), error(with("vq", codes)), rate);
      if (best.what.empty() || found.interval.high < best.estimate.interval.high) best = {"sigma = " + sigma, found};
    }
    regions.push_back({fmt::format("{} ({})", titles[i], best.what), {best}});
  }
  return below_where(1,
                     {fmt::format("Vector quantisation with {} codes errs less when it is made soft by some width",
                                  widest_codebook(size)),
                      Verdict::Outcome::ambiguous},
                     regions);
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  return {judge_identity(results, size),
          below_where(1,
                      {"The softmax over codes errs less than the Performer that it is said to be proportional to",
                       Verdict::Outcome::ambiguous},
                      over_budgets(results, size, over_codes, fixed)),
          below_where(1, {"The softmax over codes errs less than the mean of V", Verdict::Outcome::ambiguous},
                      over_budgets(results, size, over_codes, "uniform")),
          judge_softening(results, size)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
