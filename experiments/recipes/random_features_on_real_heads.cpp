// Whether random features are worth anything on real attention heads: against the mean of V, over m and over the
// temperature (the logits times logit_scale), with the transforms that cost softmax attention nothing.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const Specs maps{"performer", "performer:features=trig", "performer:features=hyperbolic", "performer:features=oprf",
                 "performer:features=aderf"};

std::string with(const std::string& method, const std::string& arguments) {
  return method + (method.find(':') == std::string::npos ? ":" : ",") + arguments;
}

Specs methods() {
  Specs all;
  for (const auto& map : maps) {
    all.push_back(map);
    all.push_back(with(map, "transform=full,shift=mean"));
  }
  return all;
}

Specs budgets(RecipeSize size) {
  if (size == RecipeSize::smoke) return {"16", "32"};
  if (size == RecipeSize::quick) return {"64", "256"};
  return {"64", "128", "256", "512", "1024"};
}

Specs scales(RecipeSize size) {
  if (size == RecipeSize::smoke) return {"1", "0.05"};
  if (size == RecipeSize::quick) return {"1", "0.25", "0.05"};
  return {"1", "0.5", "0.25", "0.1", "0.05"};
}

Index length(RecipeSize size) { return size == RecipeSize::smoke ? 64 : size == RecipeSize::quick ? 256 : 1024; }

// Layer and head.
std::vector<std::pair<Index, Index>> heads(RecipeSize size) {
  if (size == RecipeSize::smoke) return {{2, 1}};
  if (size == RecipeSize::quick) return {{0, 0}, {2, 1}};
  std::vector<std::pair<Index, Index>> all;
  for (Index layer = 0; layer < 4; ++layer)
    for (Index head = 0; head < 3; ++head) all.emplace_back(layer, head);
  return all;
}

std::string input(const std::pair<Index, Index>& head) {
  return fmt::format("model:layer={},head={}", head.first, head.second);
}

const Description text{.name = "random-features-on-real-heads",
                       .summary = "Random features on real heads, against the mean of V",
                       .formula =
                           "Random features approximate the attention of a trained model better than the mean of V "
                           "does.",
                       .reference =
                           "Choromanski et al. 2020, arXiv:2009.14794; Likhosherstov et al. 2023, "
                           "arXiv:2302.00787"};

std::vector<RunRequest> runs(RecipeSize size) {
  RunRequest request{.experiment = "attention-error:matrix=false",
                     .methods = methods(),
                     .inputs = {},
                     .n = {length(size)},
                     .causal = false,
                     .sweep = {{"m", budgets(size)}, {"logit_scale", scales(size)}},
                     .replicates = size == RecipeSize::smoke   ? 2
                                   : size == RecipeSize::quick ? 10
                                                               : 12};
  request.methods.push_back("uniform");
  for (const auto& head : heads(size)) request.inputs.push_back(input(head));
  return {request};
}

Panel panel(const std::string& title, nlohmann::json where) {
  Panel all{.title = title,
            .where = {{"experiment", "attention-error:matrix=false"}, {"causal", 0}},
            .y = "relative_output_error",
            .y_label = "error of the output / that of the mean of V",
            .y_scale = "log10",
            .ratio_to = "uniform"};
  all.where.update(where);
  return all;
}

std::vector<Figure> figures(RecipeSize size) {
  auto inputs = nlohmann::json::array();
  for (const auto& head : heads(size)) inputs.push_back(input(head));
  std::vector<Panel> over_m, over_temperature;
  for (const auto& scale : scales(size)) {
    Panel one =
        panel("logits times " + scale, {{"input", inputs}, {"n", length(size)}, {"logit_scale", std::stod(scale)}});
    one.x = {"m"};
    one.x_label = "m";
    one.x_scale = "log2";
    over_m.push_back(one);
  }
  for (const auto& head : heads(size)) {
    Panel one = panel(fmt::format("layer {}, head {}", head.first, head.second),
                      {{"input", input(head)}, {"n", length(size)}, {"m", std::stoi(budgets(size).back())}});
    one.x = {"logit_scale"};
    one.x_label = "factor of the logits";
    one.x_scale = "log10";
    over_temperature.push_back(one);
  }
  return {
      figure("random-features-on-real-heads", text, "Random features on real heads, against m",
             fmt::format("Heads of the byte-level transformer, seen bidirectionally, n = {}, d = 64. Frobenius error "
                         "of the output over that of the mean of V, geometric means with 95 % intervals over heads and "
                         "draws: above the line, a method is worse than attending to nothing. m counts projection "
                         "vectors (trig and hyperbolic make two features of each).",
                         length(size)),
             over_m),
      figure("random-features-over-temperature", text, "Random features on real heads, against temperature",
             fmt::format("At m = {}, head by head; 95 % intervals over draws.", budgets(size).back()),
             over_temperature)};
}

// Of the heads the one that decides whether all lie below 1: one that is surely above, else the least sure to be below.
Comparison decisive(const std::vector<Comparison>& all) {
  const auto greatest = [&](double Interval::*end) {
    return *std::max_element(all.begin(), all.end(), [end](const Comparison& x, const Comparison& y) {
      return x.estimate.interval.*end < y.estimate.interval.*end;
    });
  };
  const Comparison failed = greatest(&Interval::low);
  return failed.estimate.above(1) ? failed : greatest(&Interval::high);
}

// A factor of the logits is a region; in it, a head counts as won when some estimator at some m errs less than the mean
// of V.
std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  const auto all_heads = heads(size);
  const Specs all_m = budgets(size), all_methods = methods();
  const double rate = share_of_error_rate(all_heads.size() * all_m.size() * all_methods.size() * scales(size).size());
  std::vector<Region> regions;
  std::vector<std::string> best_words;
  for (const auto& scale : scales(size)) {
    Region region{"logits times " + scale, {}};
    std::string words;
    for (const auto& head : all_heads) {
      const auto error = [&](const std::string& method) {
        return results.scalar({{"method", method}, {"input", input(head)}, {"logit_scale", std::stod(scale)}},
                              "relative_output_error");
      };
      const Samples null = error("uniform");
      Comparison best;
      for (const auto& m : all_m)  // the one that is surest to be below: by the upper end of its interval
        for (const auto& method : all_methods) {
          const std::string spec = with(method, "m=" + m);
          const Estimate found = ratio(error(spec), null, rate);
          if (best.what.empty() || found.interval.high < best.estimate.interval.high) best = {spec, found};
        }
      region.comparisons.push_back(best);
      words += fmt::format("{}{} by {}", words.empty() ? "" : ", ", best.estimate.text(), best.what);
    }
    regions.push_back({region.name, {decisive(region.comparisons)}});
    best_words.push_back(fmt::format("logits times {}: {}", scale, words));
  }
  Verdict verdict = below_where(
      1,
      // By the closed forms their error grows as exp |q + k|^2 / m: small logits are within reach, real ones not.
      {fmt::format(
           "On every one of {} real heads some random-feature estimator (m up to {}) errs less than the mean of V",
           all_heads.size(), all_m.back()),
       Verdict::Outcome::conditional},
      regions);
  verdict.numbers = fmt::format("least ratios to the mean of V, head by head: {}", fmt::join(best_words, "; "));
  return {verdict};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
