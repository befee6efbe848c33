// The steps by which Su (kexue.fm/archives/9862) goes from vector quantisation to the Performer and to softmax. Each
// step is compared with the expression that it should equal (methods.md D):
//   exp(Q C^T) (Delta^T V) is softmax on quantised keys            D1    codes = all values that keys take: softmax
//   a mixture of width sigma -> 0 is the nearest code              D3
//   exp(-|k - w|^2/2) for exp(w.k - |k|^2/2)                       D5    equal if all |w| are equal; Gaussian w give
//                                                                        softmax(q.k/2 - |k|^2/4)
//   its softmax over codes w                                       D6    softmax(q.k/2) for Gaussian w, half the logit
#include <fmt/format.h>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench::vq_identities_recipe {
namespace {

const std::string post = "Su 2023, kexue.fm/archives/9862", on_norms = post + ", section 似曾相识";
const std::string equal_norms = "orthogonal-fixed-norm", gaussian_norms = "orthogonal";
const std::string densities = "performer-vq:projection=iid",
                  over_codes = "performer-vq:form=softmax-over-codes,projection=iid";
constexpr double rounding = 1e-12;

Index replicates(const Recipe& recipe) { return recipe.sized<Index>(2, 32); }

std::vector<Bounded> bounded(const std::string& what, const Samples& samples, double bound) {
  std::vector<Bounded> all;
  for (const auto& [replicate, value] : samples) all.push_back({what, value, bound});
  return all;
}

void judge_quantised_keys(Recipe& recipe, Index n) {
  const Cells cell = recipe.run({.experiment = "agreement",
                                 .methods = {"vq:codes=16"},
                                 .inputs = {"clustered:spread=0"},
                                 .n = {n},
                                 .causal = false,
                                 .replicates = replicates(recipe)});
  recipe.judge(
      {.text = "exp(Q C^T) (Delta^T V), with its rows normalised, is softmax attention to quantised keys Delta C",
       .source = post + ", section 前情回顾",
       .quotation = "exp(QK̂^T)V = exp(QC^TΔ^T)V = exp(QC^T)Δ^TV = exp(QC^T)(Δ^TV)",
       .definition =
           fmt::format("|A' - A| / |A| (Frobenius) of vector quantisation with a codebook C of 16 codes, Delta the "
                       "one-hot code of each key, against softmax attention, on queries and keys that take 16 values "
                       "alone, so that keys are their own codes; n = {}, d = 64, no mask, every input",
                       n),
       .threshold = "1e-12: an identity, to rounding",
       .because = "the matrix product is associative"},
      [=] { return all_at_most(bounded("|A' - A| / |A|", cell.scalar("relative_difference"), rounding)); });
}

Panel judge_mixture(Recipe& recipe, Index n) {
  using Widths = std::vector<std::string>;
  const auto widths =
      recipe.sized<Widths>({"0.5", "0.0001"}, {"2", "1", "0.5", "0.25", "0.1", "0.03", "0.01", "0.001", "0.0001"});
  const Cells all = recipe.run({.experiment = "agreement:[vq:codes=16]",
                                .methods = {"soft-vq:codes=16"},
                                .inputs = {"gaussian", "clustered", telling_heads(recipe).back().input()},
                                .n = {n},
                                .causal = false,
                                .sweep = {{"sigma", widths}},
                                .replicates = replicates(recipe)});
  recipe.judge(
      {.text = "At width sigma = 0.0001, attention with soft vector quantisation, a softmax over codes of each key's "
               "log densities, is that with the nearest codes",
       .source = on_norms,
       .quotation =
           "而softmax的极限就是one hot，所以这不正好对应着Transformer-VQ的Δ矩阵？ (And the limit of softmax is "
           "one hot, so does this not just correspond to Transformer-VQ's matrix Delta?)",
       .definition =
           fmt::format("the largest |A'_ij - A_ij| of soft vector quantisation, which spreads a key k over codes c by "
                       "the softmax of log pi_c - |k - c|^2 / (2 sigma^2), pi_c the share of the keys that the "
                       "codebook was made from on code c, against hard vector quantisation with the same 16 codes; "
                       "normal and clustered inputs and a head of this project's byte-level model, n = {}, d = 64, no "
                       "mask, every input or text. The source says that the softmax tends to one hot",
                       n),
       .threshold = "1e-6: at that width a key is between two codes with probability below 1e-6",
       .because = "a softmax whose logits are scaled by 1 / sigma^2 tends to one hot"},
      [=] {
        std::vector<Bounded> differences;
        for (const RecipeCell& cell : all.all()) {
          const std::string input = cell.asked.input.spec();
          if (cell.asked.method.text("sigma") != "0.0001") continue;
          const Cells here = all.input(input).where({{"sigma", 0.0001}});
          for (const Bounded& one : bounded(input, here.scalar("largest_difference"), 1e-6)) differences.push_back(one);
        }
        return all_at_most(differences);
      });
  return {.title = "a mixture of width sigma, and the nearest code",
          .cells = all,
          .x = {"sigma"},
          .x_label = "width sigma",
          .x_scale = "log10",
          .y = "largest_difference",
          .y_label = "max |A' - A|, A of hard VQ",
          .y_scale = "log10",
          .interval = "median",
          .series = {"input"}};
}

Panel judge_norms(Recipe& recipe, Index n) {
  const auto sizes = recipe.sized<std::vector<Index>>({4, 16}, {4, 16, 64});
  const auto with = [&](const std::string& projection) {
    return recipe.run({.experiment = "agreement:[performer:m=64,projection=" + projection + "]",
                       .methods = {"performer-vq:m=64,projection=" + projection},
                       .inputs = {"gaussian:scale=0.5"},
                       .n = {n},
                       .d = sizes,
                       .causal = false,
                       .replicates = replicates(recipe)});
  };
  const Cells equal = with(equal_norms), nearly = with(gaussian_norms);
  const std::string measured = fmt::format(
      "|A' - A| / |A| (Frobenius) of the attention with features exp(w.q) of queries and exp(-|k - w|^2/2) of keys "
      "against the Performer's with the same 64 orthogonal vectors w, normal q and k of standard deviation 0.5, n = "
      "{}, d = {} to {}, no mask",
      n, sizes.front(), sizes.back());
  const std::string quotation =
      "如果假设ω_1,ω_2,⋯,ω_m的模长都相等（参考JL引理），那么k的指数都减去‖ω_i‖^2/2也不会影响结果。 (If we assume that "
      "the norms of "
      "omega_1, ..., omega_m are all equal, cf. the JL lemma, then subtracting |omega_i|^2/2 from the exponents of k "
      "does not change the result either.)";
  recipe.judge(
      {.text =
           "Where all random vectors w have one norm, attention with key features exp(-|k - w|^2/2) is the Performer's",
       .source = on_norms,
       .quotation = quotation,
       .definition = measured + "; |w| = sqrt(d), every input and draw",
       .threshold = "1e-12: an identity, to rounding",
       .because = "a common factor cancels in the normalisation"},
      [=] {
        std::vector<Bounded> all;
        for (const Index d : sizes)
          for (const Bounded& one :
               bounded(fmt::format("d = {}", d), equal.where({{"d", d}}).scalar("relative_difference"), rounding))
            all.push_back(one);
        return all_at_most(all);
      });
  recipe.judge(
      {.text = "How far attention with key features exp(-|k - w|^2/2) is from the Performer's for Gaussian vectors w, "
               "whose norms vary",
       .source = on_norms,
       .quotation = quotation,
       .definition = measured + "; norms of Gaussian vectors, medians over inputs and draws",
       .threshold = "none in the source, which assumes equal norms; the values are reported with the counts "
                    "below 0.1 and 0.5",
       .expected = Ruling::measured,
       .because = "the standard deviation of |w|^2/2 is sqrt(d/2), so the distance rises with d"},
      [=, &recipe] {
        std::vector<Comparison> all;
        for (const Index d : sizes)
          all.push_back({fmt::format("d = {}", d), median_of(nearly.where({{"d", d}}).scalar("relative_difference"),
                                                             recipe.error_rate(sizes.size()))});
        return values_of(all, {0.1, 0.5});
      });
  return {.title = "densities at codes, and the Performer",
          .cells = equal + nearly,
          .x = {"d"},
          .x_label = "d",
          .x_scale = "log2",
          .y = "relative_difference",
          .y_label = "|A' - A| / |A|, A of the Performer",
          .y_scale = "log10",
          .interval = "median"};
}

std::vector<Panel> judge_limits(Recipe& recipe) {
  using Budgets = std::vector<std::string>;
  const auto budgets = recipe.sized<Budgets>({"64", "1024"}, {"256", "1024", "4096", "16384"},
                                             {"256", "1024", "4096", "16384", "65536"});
  const auto against = [&](const std::string& experiment, const std::string& method) {
    return recipe.run({.experiment = experiment,
                       .methods = {method},
                       .inputs = {"gaussian"},
                       .n = {64},
                       .d = {4},
                       .causal = false,
                       .sweep = {{"m", budgets}},
                       .replicates = replicates(recipe)});
  };
  const Cells tilted = against("tilted-softmax:logits=0.5,key_norms=-0.25", densities),
              half = against("tilted-softmax:logits=0.5", over_codes);
  const auto nearer = [&recipe, last = budgets.back()](const Cells& cells, const char* of, const char* over) {
    const Cells most = cells.where({{"m", std::stoi(last)}});
    return all_below(1, {{"m = " + last, median_ratio(most.scalar(of), most.scalar(over), recipe.error_rate(1))}});
  };
  const std::string measured = fmt::format(
      "|A' - L| / |L| over |A' - A| / |A| (Frobenius), A' the attention with {} Gaussian vectors w, A = softmax(q.k), "
      "normal q and k, d = 4, n = 64, no mask, median over inputs and draws",
      budgets.back());
  recipe.judge({.text = fmt::format("With {} Gaussian vectors w and key features exp(-|k - w|^2/2), attention is "
                                    "nearer to softmax(q.k/2 - |k|^2/4) than to softmax(q.k)",
                                    budgets.back()),
                .definition = measured + "; L = softmax(q.k/2 - |k|^2/4), the limit for many vectors",
                .threshold = "1: nearer to that law than to softmax",
                .because = "the Gaussian integral of exp(q.w) exp(-|k - w|^2/2) over w ~ N(0, I)"},
               [=] { return nearer(tilted, "difference_to_tilted", "difference_to_softmax"); });
  recipe.judge(
      {.text = fmt::format("With {} Gaussian codes w and key features softmax over w of -|k - w|^2/2, attention is "
                           "nearer to softmax(q.k/2) than to softmax(q.k)",
                           budgets.back()),
       .source = on_norms,
       .quotation =
           "当然，上述结果更多的是一种形象的类比而不是等价性 (Of course the above is more a vivid analogy than an "
           "equivalence)",
       .definition = measured + "; L = softmax(q.k/2), the limit for many codes. The source calls its relation to "
                                "softmax attention an analogy; the statement is our own",
       .threshold = "1: nearer to half the logits than to the logits",
       .because = "the codes' own normalisation takes half of the logit away; the source writes a "
                  "proportionality and calls it an analogy"},
      [=] { return nearer(half, "difference_to_tilted", "difference_to_softmax"); });
  Panel to_softmax{.title = "many Gaussian codes, d = 4: distance to softmax(q.k)",
                   .cells = tilted + half,
                   .x = {"m"},
                   .x_label = "codes m",
                   .x_scale = "log2",
                   .y = "difference_to_softmax",
                   .y_label = "|A' - A| / |A|  (Frobenius)",
                   .y_scale = "log10",
                   .interval = "median"};
  Panel to_tilted = to_softmax;
  to_tilted.title = "the same: to softmax(q.k/2 - |k|^2/4) and softmax(q.k/2)";
  to_tilted.y = "difference_to_tilted";
  to_tilted.y_label = "|A' - L| / |L|  (Frobenius)";
  return {to_softmax, to_tilted};
}

void write(Recipe& recipe) {
  const Index n = recipe.sized<Index>(64, 256, 1024);
  judge_quantised_keys(recipe, n);
  std::vector<Panel> panels{judge_mixture(recipe, n), judge_norms(recipe, n)};
  for (const Panel& panel : judge_limits(recipe)) panels.push_back(panel);
  recipe.figure("vq-identities", "Four steps from vector quantisation to softmax",
                fmt::format("Differences of attention matrices with the same codebook or the same random vectors: "
                            "medians over inputs and draws with 95 % intervals; no mask, n = {}, below 64. The first "
                            "two steps are exact (the second with equal norms). The last two are not: codes tend to "
                            "another attention than softmax.",
                            n),
                panels);
}

const bool registered = add(
    RecipeEntry{.text = {.name = "vq-identities",
                         .summary = "From vector quantisation to the Performer, step by step",
                         .formula = "Which steps from vector quantisation to the Performer and to softmax are exact?",
                         .reference = post},
                .write = write});

}  // namespace
}  // namespace attnbench::vq_identities_recipe
