// Performer's Theorem 4: the number of random features needed for a given error does not depend on the number of
// tokens. With m fixed, the greatest error of an entry of exp(q.k) over all n^2 pairs must then stay bounded as n
// grows, and the error of the output must not grow. Queries and keys are on a sphere, so that their norms are bounded.
#include <fmt/format.h>

#include <cmath>

#include "experiments/recipes/closed_forms.hpp"
#include "experiments/recipes/field.hpp"

namespace attnbench::length_independence_recipe {
namespace {

const std::string trig = "performer:features=trig,m=64", positive = "performer:m=64";
const std::vector<std::string> both{trig, positive};
const std::string sphere = "sphere:radius=2";
// The dimensions for the error of entries: n^2 pairs cover a sphere of few dimensions at small n, one of many at large.
const std::vector<Index> entry_widths{3, 4, 8}, output_widths{3, 8};
const std::string paper = "Choromanski et al. 2020, arXiv:2009.14794 (v4), section 3, Theorem 4 and the text before it";
const std::string claim =
    "In general, m depends on the dimensionality d of the embeddings, radius R of the ball where all queries/keys live "
    "and precision parameter epsilon (see: Appendix F.6 for additional discussion), but does not depend on input "
    "sequence length L.";

Panel panel(const std::string& title, const Cells& cells, const std::string& metric, const std::string& label) {
  return {.title = title,
          .cells = cells,
          .x = {"n"},
          .x_label = "sequence length n",
          .x_scale = "log2",
          .y = metric,
          .y_label = label,
          .y_scale = "log10",
          .interval = "median",
          .series = {"method", "d"}};
}

// The factor of features that the longest length needs to reach the error of the middle one: errors fall as m^-1/2, so
// it is the square of the ratio of errors. It is divided by the factor of a bound that sums over n tokens, ln n.
std::vector<Region> features_over_union_bound(const Recipe& recipe, const Cells& cells,
                                              const std::vector<std::string>& methods, const std::vector<Index>& widths,
                                              const std::string& metric, Index from, Index to) {
  const double asked = std::log(static_cast<double>(to)) / std::log(static_cast<double>(from));
  std::vector<Region> regions;
  for (const Index d : widths) {
    regions.push_back({.name = fmt::format("d = {}", d), .comparisons = {}, .coordinate = static_cast<double>(d)});
    for (const auto& method : methods) {
      const Cells curve = cells.method(method).where({{"d", d}});
      Samples features = quotients(curve.n(to).scalar(metric), curve.n(from).scalar(metric));
      for (auto& [replicate, ratio] : features) ratio = ratio * ratio / asked;
      regions.back().comparisons.push_back(
          {method, median_of(features, recipe.error_rate(methods.size() * widths.size()))});
    }
  }
  return regions;
}

void write(Recipe& recipe) {
  const auto of_entries = recipe.sized<std::vector<Index>>({32, 64}, {64, 256, 512}, {64, 256, 1024, 4096});
  const auto of_outputs = recipe.sized<std::vector<Index>>({32, 64}, {64, 256, 1024}, {64, 256, 1024, 4096, 16384});
  const RunRequest request{.experiment = "kernel-entries",
                           .methods = both,
                           .inputs = {sphere},
                           .n = of_entries,
                           .d = entry_widths,
                           .causal = false,
                           .replicates = recipe.sized(2, 128)};
  RunRequest outputs = request;
  outputs.experiment = "attention-error:matrix=false";
  outputs.methods.push_back("uniform");
  outputs.n = of_outputs;
  outputs.d = output_widths;
  const Cells entries = recipe.run(request), output = recipe.run(outputs);
  recipe.figure("length-independence", "Errors of random features with m fixed, against the length",
                "m = 64 orthogonal vectors, queries and keys uniform on a sphere of radius 2 before the scaling "
                "by d^-1/4, bidirectional; medians over inputs and draws. Left: the greatest error of an entry of "
                "exp(q.k), before rows are normalised. Right: the error of the output; uniform is the mean of V.",
                {panel("entries of exp(q.k)", entries, "greatest_error", "max |K'_ij - exp(q_i.k_j)|"),
                 panel("output", output, "relative_output_error", "|A'V - AV| / |AV|  (Frobenius)")});

  const auto counted = [&](const std::string& of, Index from, Index to, const std::string& widths) {
    const double none = std::log(static_cast<double>(from)) / std::log(static_cast<double>(to));
    return fmt::format(
        "the square of the ratio of {0} at n = {2} to that at n = {1}, divided by ln {2} / ln {1}: {3:.2f} means "
        "no growth, 1 growth as ln n. Errors fall as m^-1/2, so that the square says how many times as many features "
        "the longer sequence takes for the same error. m = 64 orthogonal vectors, {4}, queries and keys uniform on a "
        "sphere of radius 2 before their scaling by d^-1/4, no mask; medians over {5} inputs and draws",
        of, from, to, none, widths, request.replicates);
  };
  const std::string reason =
      "1: growth as ln n, what a bound asks that adds up the failures of n tokens. Slower growth is less than what "
      "Theorem 4 claims, no growth at all: the theorem says nothing of how the error climbs until n^2 pairs fill the "
      "spheres. " +
      fmt::format("Intervals that hold 1 and lie within a factor of {:g} of it count as growth as ln n", equal_within);
  const auto entry_pair = std::pair{of_entries[of_entries.size() - 2], of_entries.back()};
  const std::string measured = counted("max |K'_ij - exp(q_i.k_j)| over all pairs (greatest_error of kernel-entries)",
                                       entry_pair.first, entry_pair.second, "d = 3, 4 and 8");
  const auto rule = [=, &recipe](const std::string& method) {
    return [=, &recipe] {
      return below_where(1,
                         features_over_union_bound(recipe, entries, {method}, entry_widths, "greatest_error",
                                                   entry_pair.first, entry_pair.second),
                         "d", equal_within);
    };
  };
  recipe.judge({.text = "With queries and keys on a sphere, the number of trigonometric features that a given greatest "
                        "error of an entry of exp(q.k) takes grows more slowly than ln n",
                .source = paper,
                .quotation = claim,
                .definition = measured,
                .threshold = reason,
                .expected = Ruling::open,
                .because = "the supremum over the two spheres bounds the error at any n; in few dimensions the pairs "
                           "come near to it, in many the error may climb still"},
               rule(trig));
  recipe.judge(
      {.text = "With queries and keys on a sphere, the number of positive features that a given greatest error of an "
               "entry of exp(q.k) takes grows more slowly than ln n",
       .definition = measured + ". Performer's Theorem 4 is of trigonometric features",
       .threshold = reason,
       .expected = Ruling::open,
       .because = "the supremum exists as well, and is at pairs that point along one projection vector: in many "
                  "dimensions few pairs come near to it"},
      rule(positive));
  const auto output_pair = std::pair{of_outputs[of_outputs.size() - 3 + (of_outputs.size() < 3)], of_outputs.back()};
  recipe.judge({.text = "With queries and keys on a sphere, the number of positive or trigonometric features that a "
                        "given error of the attention output takes grows more slowly than ln n",
                .definition = counted("the relative Frobenius error of the normalised output (attention-error)",
                                      output_pair.first, output_pair.second, "d = 3 and 8") +
                              ". A width d holds where both kinds of features do. Performer's Theorem 4 is of entries",
                .threshold = reason,
                .because = "normalisers are averages over n entries with the errors of the theorem"},
               [=, &recipe] {
                 return below_where(
                     1,
                     features_over_union_bound(recipe, output, both, output_widths, "relative_output_error",
                                               output_pair.first, output_pair.second),
                     "d", equal_within);
               });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "length-independence",
                             .summary = "Error at a fixed number of features, against the length",
                             .formula = "Does the number of random features that a given error takes depend on the "
                                        "length of the sequence?",
                             .reference = "Choromanski et al. 2020, arXiv:2009.14794, Theorem 4"},
                    .write = write});

}  // namespace
}  // namespace attnbench::length_independence_recipe
