// Whether Performer is soft vector quantisation (Su, kexue.fm/archives/9862): compares hard VQ, VQ softened by a
// Gaussian mixture of width sigma, VQ with random codes, Performer, and Performer with its omegas read as codes in both
// ways (methods.md D).
#include <fmt/format.h>

#include "experiments/recipes/field.hpp"
#include "experiments/recipes/real_heads.hpp"

namespace attnbench::performer_is_soft_vq_recipe {
namespace {

const std::string post = "Su 2023, kexue.fm/archives/9862";
const std::string fixed = "performer:projection=orthogonal-fixed-norm", densities = "performer-vq",
                  over_codes = "performer-vq:form=softmax-over-codes", random_codes = "vq:codebook=random";
const std::string error = "relative_output_error";

struct Setting {
  std::string title, input;
};
const std::vector<Setting> settings{{"gaussian, scale 0.5", "gaussian:scale=0.5"},
                                    {"gaussian, scale 1", "gaussian"},
                                    {"clustered", "clustered"},
                                    {"a head of the byte-level model", typical_head.input()}};

std::string with(const std::string& method, const std::string& arguments) {
  return method + (method.find(':') == std::string::npos ? ":" : ",") + arguments;
}
// The budget parameter is `codes` for VQ and `m` (the number of omegas) for Performer.
std::string at_budget(const std::string& method, const std::string& budget) {
  if (method == "uniform") return method;
  return with(method, (method.starts_with("performer") ? "m=" : "codes=") + budget);
}

// One region per input, with a comparison for each budget: the error of `method` over that of `other`.
std::vector<Region> over_budgets(const Recipe& recipe, const Cells& all, const Specs& budgets,
                                 const std::string& method, const std::string& other) {
  std::vector<Region> regions;
  for (const auto& [title, input] : settings) {
    Region region{title, {}};
    for (const auto& budget : budgets) {
      const Cells here = all.input(input);
      region.comparisons.push_back(
          {"budget " + budget, median_ratio(here.method(at_budget(method, budget)).scalar(error),
                                            here.method(at_budget(other, budget)).scalar(error),
                                            recipe.error_rate(settings.size() * budgets.size()))});
    }
    regions.push_back(region);
  }
  return regions;
}

void state_budgets(Recipe& recipe, const Cells& all, const Specs& budgets, Index n) {
  const std::string measured = fmt::format(
      "relative Frobenius error of the output of {{}}; {} codes or omegas, n = {}, d = 64, no mask; Gaussian inputs "
      "(entries of Q and K of standard deviation 0.5 and 1), clustered ones (queries and keys around 16 random "
      "centres, "
      "0.3 of an entry's standard deviation within a cluster) and layer 2, head 0 of this project's byte-level model, "
      "chosen before the run; q and k times d^-1/4; medians over {} inputs and draws, or texts. An input holds where "
      "each number of codes does",
      fmt::join(budgets, ", "), n, recipe.sized<Index>(2, texts));
  const auto of = [&](const char* methods) { return fmt::format(fmt::runtime(measured), methods); };
  recipe.judge(
      {.text = "With random vectors omega of norm sqrt(d), Performer errs as much as soft vector quantisation whose "
               "codes are the omegas and whose key features are Gaussian densities",
       .source = post + ", section 似曾相识",
       .quotation =
           "早期的线性Attention工作“Peformer”可以视为一个“Soft”版的Transformer-VQ。 (The early linear attention work "
           "\"Performer\" can be seen as a \"soft\" version of Transformer-VQ.)",
       .definition =
           of("attention whose query features are exp(omega.q) and whose key features are exp(-|k - omega|^2 / 2), "
              "over that of Performer with positive features of the same omegas, orthogonal and of norm sqrt(d)"),
       .threshold = "within 0.1 % of 1: an identity of attention matrices, to the rounding of an error",
       .because = "where all norms are equal, exp(-|k - w|^2/2) is the Performer's feature up to a factor that "
                  "cancels"},
      [=, &recipe] {
        std::vector<Comparison> comparisons;
        for (const Region& region : over_budgets(recipe, all, budgets, densities, fixed))
          for (const Comparison& c : region.comparisons)
            comparisons.push_back({region.name + ", " + c.what, c.estimate});
        return all_between(0.999, 1.001, comparisons);
      });
  recipe.judge(
      {.text = "Attention whose key features are a softmax over random codes errs less than Performer with the codes "
               "as its omegas",
       .definition = of("attention whose query features are exp(omega.q) and whose key features are the softmax over "
                        "the omegas of -|k - omega|^2 / 2, over that of Performer with positive features of the same "
                        "omegas, orthogonal and of norm sqrt(d)"),
       .threshold = "1: equal errors",
       .expected = Ruling::open,
       .because = "nothing is known beforehand"},
      [=, &recipe] { return below_where(1, over_budgets(recipe, all, budgets, over_codes, fixed)); });
  recipe.judge(
      {.text = "Attention whose key features are a softmax over random codes errs less than the mean of V",
       .definition =
           of("attention whose query features are exp(omega.q) and whose key features are the softmax over the omegas "
              "of -|k - omega|^2 / 2, random orthogonal omegas of norm sqrt(d), over that of the mean of V"),
       .threshold = "1: equal errors",
       .expected = Ruling::open,
       .because = "nothing is known beforehand"},
      [=, &recipe] { return below_where(1, over_budgets(recipe, all, budgets, over_codes, "uniform")); });
  recipe.judge(
      {.text = "Attention with vector-quantised keys errs less with codes learnt by k-means than with keys drawn at "
               "random as codes",
       .source = post + ", first sentence of section 依样葫芦",
       .quotation = "比如它里边的ω_1,ω_2,⋯,ω_m是随机采样并固定下来的，这意味它们作为中心向量的近似程度其实是很差的。 "
                    "(For example its "
                    "omega_1, ..., omega_m are sampled at random and then fixed, which means that as centre "
                    "vectors they in fact approximate very poorly.)",
       .definition =
           of("attention whose keys are replaced by the nearest code, with codes that k-means learns from calibration "
              "keys (another draw of the law, another text of the model), over that with calibration keys drawn at "
              "random as codes, which is a kinder choice than the omegas of the source, random normal vectors"),
       .threshold = equal_errors + "; the source gives no number",
       .expected = Ruling::open,
       .because = "Su speaks of random vectors as codes; codes that are keys are better than these, so that k-means, "
                  "which lowers the distance of keys to their codes, need not gain everywhere"},
      [=, &recipe] { return errs_less_where(over_budgets(recipe, all, budgets, "vq", random_codes)); });
}

void state_softening(Recipe& recipe, const Cells& hard, const Cells& soft, const Specs& widths,
                     const std::string& codes) {
  recipe.judge(
      {.text = fmt::format("With {} codes, soft vector quantisation of keys errs less than hard vector quantisation "
                           "for at least one of {} widths of its Gaussian mixture",
                           codes, widths.size()),
       .definition = fmt::format(
           "relative Frobenius error of the output of soft vector quantisation, which spreads a key over the codes c_y "
           "by pi_y exp(-|k - c_y|^2 / (2 sigma^2)), over that of hard, which takes the nearest code; {} codes by "
           "k-means of calibration keys, pi_y their shares, sigma = {}; n = {}, d = 64, no mask, medians over {} "
           "inputs and draws, or texts. An input holds where one width surely errs less",
           codes, fmt::join(widths, ", "), recipe.sized<Index>(64, 256, 1024), recipe.sized<Index>(2, texts)),
       .threshold = "1: equal errors. An input fails only if every width errs more",
       .expected = Ruling::open,
       .because = "nothing is known beforehand"},
      [=, &recipe] {
        std::vector<Region> regions;
        for (const auto& [title, input] : settings) {
          Region region{title, {}, std::nullopt, Region::Rule::some};
          for (const auto& sigma : widths)
            region.comparisons.push_back(
                {"sigma = " + sigma,
                 median_ratio(soft.input(input).where({{"sigma", std::stod(sigma)}}).scalar(error),
                              hard.input(input).scalar(error), recipe.error_rate(settings.size() * widths.size()))});
          regions.push_back(region);
        }
        return below_where(1, regions);
      });
}

void write(Recipe& recipe) {
  const Index n = recipe.sized<Index>(64, 256, 1024);
  const auto budgets = recipe.sized<Specs>({"8", "16"}, {"16", "64", "128"}, {"16", "32", "64", "128", "256"});
  const auto widths = recipe.sized<Specs>({"0.5", "1"}, {"0.1", "0.25", "0.5", "1", "2"},
                                          {"0.1", "0.25", "0.35", "0.5", "0.7", "1", "1.4", "2", "4"});
  RunRequest request{.experiment = "attention-error:matrix=false",
                     .methods = {"vq", random_codes, "soft-vq:sigma=0.5", "soft-vq", "performer", fixed, densities,
                                 over_codes, "uniform"},
                     .inputs = {},
                     .n = {n},
                     .causal = false,
                     .sweep = {{"m", budgets}, {"codes", budgets}},
                     .replicates = recipe.sized<Index>(2, texts)};
  for (const Setting& setting : settings) request.inputs.push_back(setting.input);
  const Cells all = recipe.run(request);
  const std::string& most = budgets.back();
  RunRequest over_width = request;
  over_width.methods = {"soft-vq:codes=" + most};
  over_width.sweep = {{"sigma", widths}};
  const Cells soft = recipe.run(over_width);

  std::vector<Panel> of_budgets, of_widths;
  for (const auto& [title, input] : settings) {
    Panel panel{.title = title,
                .cells = all.input(input),
                .x = {"m", "codes"},
                .x_label = "codes, or features m",
                .x_scale = "log2",
                .y = error,
                .y_label = "|A'V - AV| / |AV|  (Frobenius)",
                .y_scale = "log10",
                .interval = "median",
                .references = {"uniform"}};
    of_budgets.push_back(panel);
    panel.cells = soft.input(input) + all.input(input).methods({"vq:codes=" + most, "uniform"});
    panel.x = {"sigma"};
    panel.x_label = "width sigma of the mixture";
    panel.x_scale = "log10";
    panel.references = {"vq:codes=" + most, "uniform"};
    of_widths.push_back(panel);
  }
  recipe.figure(
      "performer-is-soft-vq", "Performer as soft vector quantisation",
      fmt::format("Relative Frobenius error of the output at n = {}, d = 64, no mask; medians over inputs and draws "
                  "with 95 % intervals. Codebooks are learnt on another draw of the same law, or another text; "
                  "performer-vq reads its omegas as codes, at norms sqrt(d). Above the line of uniform a "
                  "method is worse than the mean of V.",
                  n),
      of_budgets);
  recipe.figure("soft-vq-over-width", "Soft vector quantisation between VQ and the mean of V",
                fmt::format("{} codes: a narrow mixture is hard VQ, a wide one the mean of V.", most), of_widths);
  state_budgets(recipe, all, budgets, n);
  state_softening(recipe, all.method("vq:codes=" + most), soft, widths, most);
}

const bool registered =
    add(RecipeEntry{.text = {.name = "performer-is-soft-vq",
                             .summary = "Performer read as soft vector quantisation, step by step",
                             .formula = "Is Performer vector quantisation made soft, and which of the two errs less?",
                             .reference = "Su 2023, kexue.fm/archives/9862; Lingle 2023, arXiv:2309.16354"},
                    .write = write});

}  // namespace
}  // namespace attnbench::performer_is_soft_vq_recipe
