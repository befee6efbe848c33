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
  std::vector<std::string> inputs{"gaussian", "ar1", clustered[0], clustered[1]};
  for (const auto& head : inputs_of(telling_heads(recipe))) inputs.push_back(head);

  const RunRequest request{.experiment = "attention-error:matrix=false",
                           .methods = {"uniform"},
                           .inputs = inputs,
                           .n = {n},
                           .causal = false,
                           .replicates = recipe.sized<Index>(2, texts)};
  const Cells null = recipe.run(request);
  Cells all = null, codes, features;  // the latter two at the judged share
  for (const Index one_over : shares) {
    RunRequest at_share = request;
    at_share.match = Match{Match::Cost::flops, softmax_flops(n) / static_cast<double>(one_over)};
    at_share.methods = {"vq"};
    const Cells of_codes = recipe.run(at_share);
    at_share.methods = {"performer"};
    const Cells of_features = recipe.run(at_share);
    if (one_over == share) {
      codes = of_codes;
      features = of_features;
    }
    all = all + of_codes + of_features;
  }

  recipe.figure(
      "vq-against-performer", "Vector-quantised keys against random features",
      fmt::format("n = {}, d = dv = 64, no mask; budgets up to 1/2 of softmax's FLOPs. Dotted: the mean of V. "
                  "The codebook is learnt from other tokens of the same law or from another text.",
                  n),
      errors_against_flops(all, inputs));

  const auto name = [](const std::string& input) {
    for (const RealHead& head : all_heads())
      if (head.input() == input) return head.name();
    return input;
  };
  const auto over = [=, &recipe](const Cells& other, const std::vector<std::string>& chosen) {
    std::vector<Region> regions;
    for (const auto& input : chosen)
      regions.push_back(
          {name(input),
           {{"", median_ratio(codes.input(input).scalar("relative_output_error"),
                              other.input(input).scalar("relative_output_error"), recipe.error_rate(chosen.size()))}}});
    return regions;
  };
  const std::string measured = fmt::format(
      "relative Frobenius error of the output of vector-quantised keys at 1/4 of softmax's FLOPs over that of {{}}, "
      "the median over {} inputs and draws (texts, on heads of this project's byte-level model); n = {}, d = 64, no "
      "mask, also on heads. The codebook is learnt beforehand by k-means of other keys: another draw of the law, "
      "around the "
      "same centres where there are centres, or another text. Learning it is not counted as FLOPs, finding the nearest "
      "code of each key is; Performer learns nothing. Inputs: ",
      null.all().front().replicates, n);
  const std::string everywhere =
                        "normal, AR(1), around 16 random centres with 0.1 and 0.5 of an entry's standard deviation "
                        "within a cluster, and heads",
                    positive = "Performer's positive features with orthogonal vectors at as many FLOPs";
  recipe.judge(
      {.text = "At a quarter of softmax's FLOPs, attention with keys quantised by a codebook that was learnt "
               "beforehand errs less than Performer's positive features, where keys lie around 16 centres",
       .definition = fmt::format(fmt::runtime(measured), positive) +
                     "around 16 random centres, with 0.1 and 0.5 of an entry's standard deviation within a cluster",
       .threshold = equal_errors,
       .because = "quantising clustered keys moves their logits little, and random features do not use the "
                  "clusters"},
      [=] { return errs_less_where(over(features, clustered)); });
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
