// Departures of published code of sampled, randomised and landmark attention from their papers. methods.md S, A10, E.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/recipes/closed_forms.hpp"
#include "experiments/recipes/field.hpp"
#include "experiments/recipes/real_heads.hpp"

namespace attnbench::sampling_slips_recipe {
namespace {

struct Slip {
  std::string correct, published, name;
};
// Not a power of 4 keys, so that Thinformer's code leaves keys unread. The quantile of vAttention has a recipe of its
// own, vattention-coverage: it changes how often a promise is broken, not the mean.
const std::vector<Slip> slips{
    {"hyper:block=32,s=32,queries=sorted", "hyper:block=32,s=32,queries=sorted,mask_own=false",
     "HyperAttention: drawn keys of the own block count twice"},
    {"kdeformer:block=32,s=32", "kdeformer:block=32,s=32,probabilities=authors",
     "KDEformer: a length over a squared length"},
    {"magicpig:bits=6,tables=24,window=16", "magicpig:bits=6,tables=24,window=16,epsilon=0.0001",
     "MagicPIG: 1e-4 added to probabilities"},
    {"vattention:eps=0.2,window=8,top=8", "vattention:eps=0.2,window=8,top=8,collapsed=true",
     "vAttention: a key that is drawn twice counts once"},
    {"thinformer:keep=64", "thinformer:keep=64,strided=true", "Thinformer: keys beyond a power of 4 are not read"},
    {"randomised:m=16", "randomised:m=16,noise=false", "RA in evaluation mode: no noise"},
    {"lara:c=32", "lara:c=32,noise=false", "LARA in evaluation mode: no noise"},
    {"lara:c=32", "lara:c=32,weights=over-queries", "LARA: softmax over queries in place of proposals"},
    {"eva:c=32,window=32", "eva:c=32,window=32,noise=false", "EVA in evaluation mode: no noise"},
    {"eva:c=32,window=32", "eva:c=32,window=32,sizes=false", "EVA: a chunk counts as one key"},
    {"eva:c=32,window=32", "eva:c=32,window=32,overlapping=true", "EVA: keys of the window count twice"},
    {"skyformer:landmarks=64", "skyformer:landmarks=64,ridge=0.1", "Skyformer: 0.1 I is added before the inverse"},
    {"skyformer:landmarks=64", "skyformer:landmarks=64,fixed_scale=true", "Skyformer: divides by 32^(1/4) for any d"}};
const Slip& doubled = slips[0];
const Slip& collapsed = slips[3];
const Slip& strided = slips[4];

// Each spec once, a correct one before those that depart from it.
Specs specs_of(const std::vector<Slip>& all) {
  Specs specs;
  for (const Slip& slip : all)
    for (const std::string& spec : {slip.correct, slip.published})
      if (std::find(specs.begin(), specs.end(), spec) == specs.end()) specs.push_back(spec);
  return specs;
}

struct Setting {
  std::string name, input;
};

// Whether the mean ratio of the estimated denominator to the exact one is 1 with the slip.
Finding unbiased_denominator(Recipe& recipe, const Cells& ratios, const Slip& slip) {
  const auto ratio = [&](const std::string& spec) {
    return mean(ratios.method(spec).scalar("mean_ratio"), recipe.error_rate(4));
  };
  Finding finding = all_contain(1, 0.02, {{"published", ratio(slip.published)}});
  const Estimate correct = ratio(slip.correct);
  finding.numbers += fmt::format("; without the slip {:.4g} ({:.4g} to {:.4g})", correct.value, correct.interval.low,
                                 correct.interval.high);
  return finding;
}

void write(Recipe& recipe) {
  const Index n = recipe.sized<Index>(96, 500, 1000), replicates = recipe.sized<Index>(2, 20, texts);
  const std::vector<Setting> settings{
      {"normal inputs", "gaussian"},
      {"tokens that resemble their neighbours", "ar1"},
      {"layer 2, head 0 of the masked byte-level model", "masked-model:layer=2,head=0"}};
  RunRequest errors{.experiment = "attention-error:matrix=false",
                    .methods = {"uniform"},
                    .n = {n},
                    .causal = false,
                    .replicates = replicates};
  for (const std::string& spec : specs_of(slips)) errors.methods.push_back(spec);
  for (const Setting& setting : settings) errors.inputs.push_back(setting.input);
  RunRequest denominators{.experiment = "denominator-coverage",
                          .methods = specs_of({doubled, collapsed}),
                          .inputs = {"gaussian"},
                          .n = {recipe.sized<Index>(96, 256)},
                          .d = {16},
                          .causal = false,
                          .replicates = recipe.sized<Index>(2, 128, replicates_for_means)};
  const Cells measured = recipe.run(errors), means = recipe.run(denominators);

  recipe.headline(12, "Is published code of sampling methods right?");
  std::vector<Panel> panels;
  for (const Setting& setting : settings)
    panels.push_back(
        table_column(measured.input(setting.input), "relative_output_error", setting.name, "median", "log10"));
  recipe.figure(
      "sampling-slips", "Departures of published code of sampling methods: error of the output",
      fmt::format("Bidirectional, n = {}; medians with 95 % intervals over {} inputs or texts. uniform is the "
                  "mean of V.",
                  n, replicates),
      panels);

  // Adds what the statements about denominators share.
  const auto judge_bias = [&](const Slip& slip, const std::string& words, Statement statement) {
    statement.definition = fmt::format(
        "the mean over rows and draws of the estimated denominator over the exact one "
        "(denominator-coverage), {}, n = {}, d = 16, normal inputs, {} draws",
        words, denominators.n.front(), denominators.replicates);
    statement.threshold =
        "1, which the interval must hold, with an interval narrower than +-0.02. Without the slip the same interval "
        "holds 1";
    statement.expected = Ruling::refuted;
    recipe.judge(statement, [=, &recipe] { return unbiased_denominator(recipe, means, slip); });
  };
  judge_bias(doubled, "block = s = 32",
             {.text = "HyperAttention's estimate of the denominator has no bias when drawn keys of the query's own "
                      "block count a second time, as in the GPU path of the authors' code",
              .source = "insuhan/hyper-attn, its code as published; the statement is our own",
              .paraphrase = "the CUDA path adds the drawn keys to the block's without masking those of the block",
              .because = "a block is an eighth of the keys here, and a drawn key stands for n/s of them"});
  judge_bias(collapsed, collapsed.published,
             {.text = "vAttention's estimate of the denominator has no bias when a key that is drawn several times is "
                      "added once, as where the authors' library makes a dense mask of the draws",
              .source = "skylight-org/sparse-attention-hub, its code as published; the statement is our own",
              .paraphrase = "draws with replacement become one entry a key of a dense mask of weights",
              .because = "b draws of m keys reach m (1 - (1 - 1/m)^b) different ones, b (1 - b / 2m) for few"});
  recipe.judge(
      {.text = "Thinformer errs as little when it reads only every s-th key, so that a power of 4 is left, as its "
               "published code does",
       .source = "microsoft/thinformer, its code as published; the statement is our own",
       .paraphrase = "the sequence is strided down to a power of 4 before it is halved",
       .definition = fmt::format("the relative Frobenius error of the output of {} over that of {}, the median over {} "
                                 "inputs or texts; n = {}, bidirectional",
                                 strided.published, strided.correct, replicates, n),
       .threshold = "1.05: equal errors but for a twentieth",
       .expected = Ruling::refuted,
       .because = "three quarters of the keys are never read, so that the rest is a coarser sample of them"},
      [=, &recipe] {
        std::vector<Region> regions;
        for (const Setting& setting : settings) {
          const Cells here = measured.input(setting.input);
          regions.push_back({setting.name,
                             {{"", median_ratio(here.method(strided.published).scalar("relative_output_error"),
                                                here.method(strided.correct).scalar("relative_output_error"),
                                                recipe.error_rate(settings.size()))}}});
        }
        return below_where(1.05, regions);
      });
  recipe.judge(
      {.text = "By what factor departures of published code from papers on sampled, randomised and landmark attention "
               "change the error of the output",
       .definition = fmt::format("the relative Frobenius error of the output with each departure alone over that "
                                 "without it, the median over {} inputs or texts; n = {}, bidirectional",
                                 replicates, n),
       .threshold = "no source gives one: the values, and how many lie below 0.9, 1 and 1.1",
       .expected = Ruling::measured,
       .because = "an error does not test a departure: a bias may lower it"},
      [=, &recipe] {
        std::vector<Comparison> factors;
        for (const Slip& slip : slips)
          for (const Setting& setting : settings) {
            const Cells here = measured.input(setting.input);
            factors.push_back({slip.name + ", " + setting.name,
                               median_ratio(here.method(slip.published).scalar("relative_output_error"),
                                            here.method(slip.correct).scalar("relative_output_error"),
                                            recipe.error_rate(slips.size() * settings.size()))});
          }
        return values_of(factors, {0.9, 1, 1.1});
      });
}

const bool registered = add(RecipeEntry{
    .text = {.name = "sampling-slips",
             .summary = "The cost of departures of published code of sampling methods",
             .formula = "Do implementations of sampled attention that deviate from their papers estimate "
                        "the same attention?",
             .reference = "insuhan/hyper-attn, majid-daliri/kdeformer, Infini-AI-Lab/MagicPIG, "
                          "skylight-org/sparse-attention-hub, HKUNLP/efficient-attention, microsoft/thinformer, "
                          "pkuzengqi/Skyformer: their code as published"},
    .write = write});

}  // namespace
}  // namespace attnbench::sampling_slips_recipe
