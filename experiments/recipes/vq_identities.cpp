// The steps by which source 001 goes from vector quantisation to the Performer and to softmax, each against what it is
// said to equal (methods.md D):
//   exp(Q C^T) (Delta^T V) is softmax on quantised keys            D1    codes = all values that keys take: softmax
//   a mixture of width sigma -> 0 is the nearest code              D3
//   exp(-|k - w|^2/2) for exp(w.k - |k|^2/2)                       D5    the same if all |w| are; Gaussian w tilt it to
//                                                                        softmax(q.k/2 - |k|^2/4)
//   its softmax over codes w                                       D6    softmax(q.k/2) for Gaussian w, half the logit
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;
using Outcome = Verdict::Outcome;

const std::string with_softmax = "agreement", with_codes = "agreement:[vq:codes=16]";
const std::string few_keys = "clustered:spread=0";  // of 16 values
const std::string equal_norms = "orthogonal-fixed-norm", gaussian_norms = "orthogonal";
const std::string densities = "performer-vq:projection=iid",
                  over_codes = "performer-vq:form=softmax-over-codes,projection=iid";
const std::string half_tilted = "tilted-softmax:logits=0.5,key_norms=-0.25", half = "tilted-softmax:logits=0.5";

const Description text{.name = "vq-identities",
                       .summary = "From vector quantisation to the Performer, step by step",
                       .formula =
                           "Attention to quantised keys is exp(Q C^T) (Delta^T V); Delta is the limit of a softmax; "
                           "and the Performer is the same with densities of keys at random codes of nearly equal norm, "
                           "so that it is proportional to a softmax.",
                       .reference = "Su 2023, kexue.fm/archives/9862"};

Specs widths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {"0.5", "0.0001"};
  return {"2", "1", "0.5", "0.25", "0.1", "0.03", "0.01", "0.001", "0.0001"};
}
std::vector<Index> key_sizes(RecipeSize size) {
  if (size == RecipeSize::smoke) return {4, 16};
  return {4, 16, 64};
}
Specs budgets(RecipeSize size) {
  if (size == RecipeSize::smoke) return {"64", "1024"};
  if (size == RecipeSize::quick) return {"256", "1024", "4096", "16384"};
  return {"256", "1024", "4096", "16384", "65536"};
}
Index length(RecipeSize size) { return size == RecipeSize::smoke ? 64 : size == RecipeSize::quick ? 256 : 1024; }
Index replicates(RecipeSize size) { return size == RecipeSize::smoke ? 2 : size == RecipeSize::quick ? 6 : 20; }

std::string performer(const std::string& projection) { return "performer:m=64,projection=" + projection; }
std::string as_codes(const std::string& projection) { return "performer-vq:m=64,projection=" + projection; }
std::string with_performer(const std::string& projection) { return "agreement:[" + performer(projection) + "]"; }

Specs mixture_inputs(RecipeSize size) { return {"gaussian", "clustered", telling_heads(size).back().input()}; }

std::vector<RunRequest> runs(RecipeSize size) {
  const RunRequest quantised{.experiment = with_softmax,
                             .methods = {"vq:codes=16"},
                             .inputs = {few_keys},
                             .n = {length(size)},
                             .causal = false,
                             .replicates = replicates(size)};
  RunRequest mixture = quantised;
  mixture.experiment = with_codes;
  mixture.methods = {"soft-vq:codes=16"};
  mixture.inputs = mixture_inputs(size);
  mixture.sweep = {{"sigma", widths(size)}};
  std::vector<RunRequest> all{quantised, mixture};
  for (const auto& projection : {equal_norms, gaussian_norms}) {
    RunRequest read_as_codes = quantised;
    read_as_codes.experiment = with_performer(projection);
    read_as_codes.methods = {as_codes(projection)};
    read_as_codes.inputs = {"gaussian:scale=0.5"};
    read_as_codes.d = key_sizes(size);
    all.push_back(read_as_codes);
  }
  for (const auto& [experiment, method] : {std::pair{half_tilted, densities}, {half, over_codes}}) {
    RunRequest limit = quantised;
    limit.experiment = experiment;
    limit.methods = {method};
    limit.inputs = {"gaussian"};
    limit.n = {64};
    limit.d = {4};
    limit.sweep = {{"m", budgets(size)}};
    all.push_back(limit);
  }
  return all;
}

std::vector<Figure> figures(RecipeSize size) {
  const Panel mixture{.title = "a mixture of width sigma, and the nearest code",
                      .where = {{"experiment", with_codes}, {"input", mixture_inputs(size)}, {"causal", 0}},
                      .x = {"sigma"},
                      .x_label = "width sigma",
                      .x_scale = "log10",
                      .y = "largest_difference",
                      .y_label = "max |A' - A|, A of hard VQ",
                      .y_scale = "log10",
                      .series = {"input"}};
  const Panel norms{.title = "densities at codes, and the Performer",
                    .where = {{"experiment", {with_performer(equal_norms), with_performer(gaussian_norms)}},
                              {"method", {as_codes(equal_norms), as_codes(gaussian_norms)}}},
                    .x = {"d"},
                    .x_label = "d",
                    .x_scale = "log2",
                    .y = "relative_difference",
                    .y_label = "|A' - A| / |A|, A of the Performer",
                    .y_scale = "log10"};
  Panel to_softmax{.title = "many Gaussian codes, d = 4: distance to softmax(q.k)",
                   .where = {{"experiment", {half_tilted, half}}, {"method", {densities, over_codes}}, {"d", 4}},
                   .x = {"m"},
                   .x_label = "codes m",
                   .x_scale = "log2",
                   .y = "difference_to_softmax",
                   .y_label = "|A' - A| / |A|  (Frobenius)",
                   .y_scale = "log10"};
  Panel to_tilted = to_softmax;
  to_tilted.title = "the same: to softmax(q.k/2 - |k|^2/4) and softmax(q.k/2)";
  to_tilted.y = "difference_to_tilted";
  to_tilted.y_label = "|A' - L| / |L|  (Frobenius)";
  return {figure("vq-identities", text, "Four steps from vector quantisation to softmax",
                 fmt::format("Differences of attention matrices, with the same codebook or the same random vectors, "
                             "and 95 % intervals over inputs and draws; bidirectional, n = {}, below 64. The first two "
                             "steps are exact (with equal norms); the last two are not: what codes tend to is not "
                             "softmax attention.",
                             length(size)),
                 {mixture, norms, to_softmax, to_tilted})};
}

Verdict judge_quantised(const Results& results) {
  std::vector<Bounded> all;
  for (const auto& [replicate, value] :
       results.scalar({{"experiment", with_softmax}, {"input", few_keys}}, "relative_difference"))
    all.push_back({fmt::format("|A' - A| / |A|, input {}", replicate), value, 1e-12});
  return all_at_most(
      "exp(Q C^T) (Delta^T V), normalised, is softmax attention to quantised keys: exactly softmax where keys take no "
      "more values than there are codes",
      all);
}

Verdict judge_mixture(const Results& results, RecipeSize size) {
  std::vector<Bounded> all;
  for (const auto& input : mixture_inputs(size))
    for (const auto& [replicate, value] :
         results.scalar({{"experiment", with_codes}, {"sigma", std::stod(widths(size).back())}, {"input", input}},
                        "largest_difference"))
      all.push_back({"max |A' - A| on " + input, value, 1e-6});
  return all_at_most(
      fmt::format("The softmax over codes of a key's log densities tends to the nearest code as their width goes to 0: "
                  "at sigma = {} attention is that of hard vector quantisation",
                  widths(size).back()),
      all);
}

Samples between(const Results& results, const std::string& projection, Index d) {
  return results.scalar({{"experiment", with_performer(projection)}, {"method", as_codes(projection)}, {"d", d}},
                        "relative_difference");
}

Verdict judge_equal_norms(const Results& results, RecipeSize size) {
  std::vector<Bounded> all;
  for (const Index d : key_sizes(size))
    for (const auto& [replicate, value] : between(results, equal_norms, d))
      all.push_back({fmt::format("|A' - A| / |A| at d = {}", d), value, 1e-12});
  return all_at_most("With random vectors w of one norm, exp(-|k - w|^2/2) as features of keys is the Performer", all);
}

Verdict judge_nearly_equal_norms(const Results& results, RecipeSize size) {
  std::vector<Comparison> comparisons;
  std::vector<std::string> words;
  for (const Index d : key_sizes(size)) {
    comparisons.push_back({fmt::format("d = {}", d),
                           mean(between(results, gaussian_norms, d), share_of_error_rate(key_sizes(size).size()))});
    words.push_back(fmt::format("{:.2f} at d = {}", comparisons.back().estimate.value, d));
  }
  Verdict verdict =
      all_below(0.1,
                {"The norms of Gaussian vectors are near enough to each other for exp(-|k - w|^2/2) to be the "
                 "Performer's features within a tenth (the standard deviation of |w|^2/2 is sqrt(d/2))",
                 Outcome::fail},
                comparisons);
  verdict.numbers += fmt::format("; |A' - A| / |A| is {}", fmt::join(words, ", "));
  return verdict;
}

// Distance to what theory says over distance to softmax, with most codes.
Verdict nearer_to_theory(const Results& results, RecipeSize size, const Statement& statement,
                         const std::string& experiment, const std::string& method) {
  const auto difference = [&](const std::string& metric) {
    return results.scalar({{"experiment", experiment}, {"method", method + ",m=" + budgets(size).back()}}, metric);
  };
  Verdict verdict = all_below(
      1, statement,
      {{"m = " + budgets(size).back(),
        ratio(difference("difference_to_tilted"), difference("difference_to_softmax"), share_of_error_rate(1))}});
  verdict.numbers = "distance to it over distance to softmax(q.k): " + verdict.numbers;
  return verdict;
}

// What the source ends with, by how much nearer it is to softmax than to half the logits.
Verdict judge_proportional(const Results& results, RecipeSize size) {
  const auto difference = [&](const std::string& metric) {
    return results.scalar({{"experiment", half}, {"method", over_codes + ",m=" + budgets(size).back()}}, metric);
  };
  Verdict verdict = all_below(
      1, {"The softmax over Gaussian codes tends to softmax attention, rather than to softmax(q.k/2)", Outcome::fail},
      {{"m = " + budgets(size).back(),
        ratio(difference("difference_to_softmax"), difference("difference_to_tilted"), share_of_error_rate(1))}});
  verdict.numbers = "distance to softmax(q.k) over distance to softmax(q.k/2): " + verdict.numbers;
  return verdict;
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  return {judge_quantised(results),
          judge_mixture(results, size),
          judge_equal_norms(results, size),
          judge_nearly_equal_norms(results, size),
          nearer_to_theory(results, size,
                           "With Gaussian vectors w and features exp(-|k - w|^2/2) of keys, attention tends to "
                           "softmax(q.k/2 - |k|^2/4)",
                           half_tilted, densities),
          judge_proportional(results, size)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
