// Statements of sources about models that are trained with approximate attention from the start, judged by recorded
// rows of scripts/train: small byte-level models, causal (next bytes) and bidirectional (masked bytes).
#include <fmt/format.h>

#include "experiments/recipes/trained.hpp"

namespace attnbench::learning_curves_recipe {
namespace {

constexpr size_t texts = 32;

const TrainedWith softmax{"softmax"}, elu{"linear"}, exponentials{"linear:features=exp"}, relu{"linear:features=relu"},
    truncated{"truncated:window=16"}, polynomial{"polynomial"}, random_logits{"synthesizer"},
    dense_logits{"synthesizer:kind=dense"}, linformer{"linformer:r=64"}, fourier{"fnet"}, quantised{"vq:codes=64"};

const std::vector<TrainedWith> in_both{softmax,   elu,        exponentials,  relu,
                                       truncated, polynomial, random_logits, dense_logits};

const std::string measured =
    "bits of a held-out byte after 600 steps of 8 texts, of byte-level models with 2 layers of 4 heads of 32, n = "
    "256: "
    "causal (the next byte) and bidirectional (bytes in masked runs); ";
const std::string per_seed =
    ", text by text, median over 32 held-out texts; one comparison a seed, which decides first weights and batches";

struct Models {
  TrainedModels causal, masked;

  size_t seeds() const { return static_cast<size_t>(std::max(causal.seeds(), masked.seeds())); }
  std::vector<std::pair<std::string, const TrainedModels*>> both() const {
    return {{"causal", &causal}, {"bidirectional", &masked}};
  }
};

// Both models: the seeds that the one with fewer has.
Finding recorded(const Finding& finding, const Models& models) {
  return as_recorded(finding, std::min(models.causal.seeds(), models.masked.seeds()), {"bytes", "masked"});
}

struct Pair {
  std::string name;
  TrainedWith one, other;
};

// One region for each model and pair; all seeds have to agree in it.
std::vector<Region> regions_of(const Recipe& recipe, const Models& models, const std::vector<Pair>& pairs) {
  const double rate = recipe.error_rate(2 * pairs.size() * models.seeds());
  std::vector<Region> regions;
  for (const auto& [name, trained] : models.both())
    for (const Pair& pair : pairs)
      regions.push_back({fmt::format("{}, {}", name, pair.name), trained->lost(pair.one, pair.other, rate)});
  return regions;
}

std::vector<Comparison> values_of_pairs(const Recipe& recipe, const Models& models, const std::vector<Pair>& pairs) {
  std::vector<Comparison> values;
  for (const Region& region : regions_of(recipe, models, pairs))
    for (const Comparison& comparison : region.comparisons)
      values.push_back({fmt::format("{}, {}", region.name, comparison.what), comparison.estimate});
  return values;
}

const std::string post = "Su 2021, kexue.fm/archives/8338, ";

void judge_features(Recipe& recipe, const Models& models) {
  recipe.judge(
      {.text = "After 600 steps a small model trained with linear attention has fewer bits if its features are "
               "exponentials "
               "than if they are 1 + elu or ReLU",
       .source = post + "文章小结 (summary)",
       .quotation = "线性Attention的最佳激活函数应当是指数函数 (the best activation function of linear "
                    "attention should be the exponential)",
       .definition = measured + "exponentials minus the other map" + per_seed,
       .threshold = "0: both maps train as well",
       .expected = Ruling::open,
       .because = "the post argues from the class of functions and trains nothing"},
      [=, &recipe] {
        return recorded(
            below_where(0, regions_of(recipe, models,
                                      {{"against 1 + elu", exponentials, elu}, {"against ReLU", exponentials, relu}})),
            models);
      });
}

void judge_truncation(Recipe& recipe, const Models& models) {
  recipe.judge(
      {.text =
           "After 600 steps a small model trained with linear attention has fewer bits if the matrix is cut to a band",
       .source = post + "section on concentrated attention (集中注意)",
       .quotation =
           "将线性Attention的Attention矩阵先算出来，然后强行截断Attention矩阵（也就是每个token只跟前后几个token做"
           "attention，变成局部形式的Attention）让它变得稀疏，结果发现这种截断后的线性Attention效果明显好于全矩阵的"
           "线性Attention。 (compute the attention matrix of linear attention first and then cut it by force "
           "(each token attends only to a few tokens before and after it, a local form of attention) to make "
           "it sparse; linear attention cut like this turned out to be clearly better than that with the full "
           "matrix.)",
       .definition = measured +
                     "the band |i - j| <= 16 of linear attention with 1 + elu, renormalised, minus "
                     "the full matrix" +
                     per_seed,
       .threshold = "0: both train as well",
       .because = "nearby bytes tell most about a byte, and a dense average over 256 bytes hides them"},
      [=, &recipe] {
        return recorded(below_where(0, regions_of(recipe, models, {{"band against full matrix", truncated, elu}})),
                        models);
      });
}

// The loss to softmax in the causal model minus that in the bidirectional one, on the same texts.
std::vector<Comparison> causal_less_than_bidirectional(const Models& models, const TrainedWith& attention,
                                                       double rate) {
  const auto excess = [&](const TrainedModels& trained, size_t seed) {
    const auto own = trained.by_text(attention, "bits_by_text"), exact = trained.by_text(softmax, "bits_by_text");
    std::vector<double> differences;
    for (size_t i = 0; seed < own.size() && seed < exact.size() && i < texts; ++i)
      differences.push_back(own[seed][i] - exact[seed][i]);
    return differences;
  };
  std::vector<Comparison> all;
  const auto seeds = static_cast<size_t>(std::min(models.causal.seeds(), models.masked.seeds()));
  for (size_t seed = 0; seed < seeds; ++seed) {
    const auto causal = excess(models.causal, seed), masked = excess(models.masked, seed);
    const std::string what = fmt::format("seed {}", seed + 1);
    all.push_back(causal.empty() || masked.empty() ? Comparison{what, unmeasured()}
                                                   : median_difference(what, causal, masked, rate));
  }
  return all;
}

void judge_causality(Recipe& recipe, const Models& models) {
  recipe.judge(
      {.text = "After 600 steps linear attention loses fewer bits to softmax in a small causal model than in a "
               "bidirectional one",
       .source = post + "section on concentrated attention (集中注意)",
       .quotation = "线性Attention做语言模型或者解码器的时候，效果是跟标准Attention差不了多少的 [...] "
                    "相比之下，如果用不稀疏的双向的线性Attention直接做MLM模型，则掉点会相当明显。 (When linear "
                    "attention is used "
                    "for language models or decoders its quality is not much below that of standard attention [...] In "
                    "comparison, if bidirectional linear attention, which is not sparse, is used for masked language "
                    "models as it is, quality drops quite clearly.)",
       .definition = measured +
                     "bits above those of softmax, causal minus bidirectional, for 1 + elu and exponentials" + per_seed,
       .threshold = "0: both models lose as much",
       .expected = Ruling::open,
       .because = "nothing is known in advance of models this small; the two tasks predict different bytes of the same "
                  "texts"},
      [=, &recipe] {
        const double rate = recipe.error_rate(2 * models.seeds());
        return recorded(below_where(0, {{"1 + elu", causal_less_than_bidirectional(models, elu, rate)},
                                        {"exponentials", causal_less_than_bidirectional(models, exponentials, rate)}}),
                        models);
      });
}

void judge_values(Recipe& recipe, const Models& models) {
  recipe.judge(
      {.text = "How many bits more a model needs that is trained with the polynomial kernel of degree 2 than one with "
               "the exponential kernel",
       .source = "Katharopoulos et al. 2020, arXiv:2006.16236, section 3.2.1",
       .quotation =
           "the polynomial kernel, for example, has an exact finite dimensional feature map and has been shown "
           "to work equally well with the exponential or RBF kernel",
       .definition = measured +
                     "the polynomial kernel minus softmax, whose kernel is the exponential of q.k, and minus "
                     "linear attention with exponentials of each channel" +
                     per_seed,
       .threshold = "the source says \"equally well\" and gives none: 0 and 0.1 bits are there for the reader",
       .expected = Ruling::measured,
       .because = "the source reports the finding of another paper on translation"},
      [=, &recipe] {
        return recorded(values_of(values_of_pairs(recipe, models,
                                                  {{"against softmax", polynomial, softmax},
                                                   {"against exponentials of channels", polynomial, exponentials}}),
                                  {0, 0.1}),
                        models);
      });
  recipe.judge(
      {.text = "How many bits more a model needs that is trained with a Synthesizer than one with softmax",
       .source = "Tay et al. 2020, arXiv:2005.00743, abstract",
       .paraphrase = "random alignment matrices perform quite competitively, and weights from interactions "
                     "between tokens are useful but not that important",
       .definition = measured + "random (an n x n matrix a head) and dense Synthesizer, minus softmax" + per_seed,
       .threshold = "the source says \"competitively\" and gives none: 0 and 0.1 bits are there for the reader",
       .expected = Ruling::measured,
       .because = "the source has larger models and other tasks"},
      [=, &recipe] {
        return recorded(
            values_of(
                values_of_pairs(recipe, models, {{"random", random_logits, softmax}, {"dense", dense_logits, softmax}}),
                {0, 0.1}),
            models);
      });
  recipe.judge({.text = "How many bits more a bidirectional model needs that is trained with Linformer, FNet or "
                        "quantised keys than one with softmax",
                .definition = measured +
                              "Linformer with r = 64, FNet, and VQ with 64 codes a head, minus softmax, in the "
                              "bidirectional model" +
                              per_seed,
                .threshold = "none is claimed",
                .expected = Ruling::measured,
                .because = "no source gives the number for models of this kind"},
               [=, &recipe] {
                 const auto values =
                     models.masked.each_lost({{"Linformer", linformer}, {"FNet", fourier}, {"VQ", quantised}}, softmax,
                                             recipe.error_rate(3 * models.seeds()));
                 return as_recorded(values_of(values), models.masked.seeds(), {"masked"});
               });
}

void write(Recipe& recipe) {
  auto in_masked = in_both;
  in_masked.insert(in_masked.end(), {linformer, fourier, quantised});
  const Models models{.causal = TrainedModels(recipe, "bytes", true, texts, in_both),
                      .masked = TrainedModels(recipe, "masked", false, texts, in_masked)};
  recipe.figure(
      "learning-curves", "Models trained with approximate attention",
      "Held-out bits of a byte during training of small byte-level models (2 layers of 4 heads of 32, n = 256), "
      "means over seeds with t intervals.",
      {models.causal.curves("causal: the next byte"), models.masked.curves("bidirectional: masked bytes")});
  judge_features(recipe, models);
  judge_truncation(recipe, models);
  judge_causality(recipe, models);
  judge_values(recipe, models);
}

const bool registered = add(
    RecipeEntry{.text = {.name = "learning-curves",
                         .summary = "Small models trained with approximate attention from the start",
                         .formula = "Which attention does a model learn best with?",
                         .reference = "Su 2021, kexue.fm/archives/8338; Katharopoulos et al. 2020, arXiv:2006.16236"},
                .write = write});

}  // namespace
}  // namespace attnbench::learning_curves_recipe
