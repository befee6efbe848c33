// Codes against random features at equal cost. methods.md D, A1: the error of VQ comes from the change of logits when
// keys are quantised, which is small for clustered keys; that of positive features is exp(|q + k|^2) / m for any keys.
#include <fmt/format.h>

#include "experiments/recipes/field.hpp"
#include "experiments/recipes/real_heads.hpp"
#include "harness/runner/match.hpp"

namespace attnbench::vq_against_performer_recipe {
namespace {

constexpr Index share = 4;  // judged budgets: softmax's FLOPs over this

void write(Recipe& recipe) {
  const Index n = recipe.sized<Index>(64, 128, 1024);
  const auto shares = recipe.sized<std::vector<Index>>({share}, {8, share, 2}, {16, 8, share, 2});
  const std::vector<std::string> clustered{"clustered:spread=0.1", "clustered:spread=0.5"};
  const auto heads = telling_heads_of_models(recipe);
  std::vector<LawOrHead> laws;
  for (const auto& law : {std::string("gaussian"), std::string("ar1"), clustered[0], clustered[1]})
    laws.push_back({law, law});
  const std::vector<LawOrHead> inputs = laws_and_heads(laws, heads);

  const RunRequest request{.experiment = "attention-error:matrix=false",
                           .methods = {"uniform"},
                           .inputs = inputs_of(laws),
                           .n = {n},
                           .causal = false,
                           .replicates = recipe.sized<Index>(2, texts)};
  const Cells null = recipe.run(request) + run_on(recipe, request, heads);
  // On the laws and on the heads of each model, at that share of what softmax takes there.
  const auto at_share = [&](const std::string& method, Index one_over) {
    RunRequest one = request;
    one.methods = {method};
    one.match = Match{Match::Cost::flops, softmax_flops(n) / static_cast<double>(one_over)};
    Cells cells = recipe.run(one);
    for (const auto& of_model : by_model(heads)) {
      Shape shape = of_model.front().shape(n);
      shape.mask.causal = false;
      one.match = Match{Match::Cost::flops, softmax_flops(shape) / static_cast<double>(one_over)};
      cells = cells + run_on(recipe, one, of_model);
    }
    return cells;
  };
  Cells all = null, codes, features;  // the latter two at the judged share
  for (const Index one_over : shares) {
    const Cells of_codes = at_share("vq", one_over), of_features = at_share("performer", one_over);
    if (one_over == share) {
      codes = of_codes;
      features = of_features;
    }
    all = all + of_codes + of_features;
  }

  recipe.figure(
      "vq-against-performer", "Vector-quantised keys against random features",
      fmt::format("n = {}, d = dv = 64, no mask; budgets up to 1/2 of softmax's FLOPs. Dotted: the mean of V. "
                  "The codebook is learnt from other tokens of the same law or from another text. Heads are those of "
                  "the byte-level model.",
                  n),
      errors_against_flops(all, inputs_of(laws_and_heads(laws, telling_heads(recipe)))));

  const auto over = [=, &recipe](const Cells& other, const std::vector<LawOrHead>& chosen) {
    std::vector<Region> regions;
    for (const LawOrHead& one : chosen)
      region(regions, one.part)
          .comparisons.push_back({one.within(), median_ratio(codes.input(one.input).scalar("relative_output_error"),
                                                             other.input(one.input).scalar("relative_output_error"),
                                                             recipe.error_rate(chosen.size()))});
    return regions;
  };
  const std::string measured = fmt::format(
      "relative Frobenius error of the output of vector-quantised keys at 1/4 of softmax's FLOPs over that of {{}}, "
      "the median over {} inputs and draws; n = {}, d = 64, no mask, also on heads. The codebook is learnt beforehand "
      "by k-means of other keys: another draw of the law, "
      "around the "
      "same centres where there are centres, or another text. Learning it is not counted as FLOPs, finding the nearest "
      "code of each key is; Performer learns nothing. Inputs: ",
      request.replicates, n);
  const std::string everywhere =
                        "normal, AR(1), around 16 random centres with 0.1 and 0.5 of an entry's standard deviation "
                        "within a cluster, and heads; a model holds if each of its heads does. " +
                        heads_in_words(heads, n, false),
                    positive = "Performer's positive features with orthogonal vectors at as many FLOPs";
  recipe.judge(
      {.text = "At a quarter of softmax's FLOPs, attention with keys quantised by a codebook that was learnt "
               "beforehand errs less than Performer's positive features, where keys lie around 16 centres",
       .definition = fmt::format(fmt::runtime(measured), positive) +
                     "around 16 random centres, with 0.1 and 0.5 of an entry's standard deviation within a cluster",
       .threshold = equal_errors,
       .because = "quantising clustered keys moves their logits little, and random features do not use the "
                  "clusters"},
      [=] {
        return errs_less_where(over(features, {laws[2], laws[3]}));
      });
  recipe.judge({.text = "At a quarter of softmax's FLOPs, attention with keys quantised by a codebook that was "
                        "learnt beforehand errs less than Performer's positive features on each of several inputs",
                .definition = fmt::format(fmt::runtime(measured), positive) + everywhere,
                .threshold = equal_errors,
                .expected = Ruling::open,
                .because = "nothing is known beforehand"},
               [=] { return errs_less_where(over(features, inputs)); });
  recipe.judge(
      {.text = "At a quarter of softmax's FLOPs, attention with vector-quantised keys errs less than the mean of V",
       .definition = fmt::format(fmt::runtime(measured), "the mean of V, which looks at no key") + everywhere,
       .threshold = equal_errors,
       .expected = Ruling::open,
       .because = "nothing is known beforehand"},
      [=] { return errs_less_where(over(null, inputs)); });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "vq-against-performer",
                             .summary = "Codes of keys against random features, at equal FLOPs",
                             .formula = "At equal FLOPs, does attention to a codebook err less than random features?",
                             .reference = "Su 2023, kexue.fm/archives/9862; Lingle 2023, arXiv:2309.16354"},
                    .write = write});

}  // namespace
}  // namespace attnbench::vq_against_performer_recipe
