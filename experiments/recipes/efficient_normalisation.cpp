// Whether Efficient attention differs from linear attention with exponentials only in where it normalises. With a
// softmax of q, e^k and then normalised rows there is no difference: the sum over the channels of a query is a factor
// of its row. The published method instead divides each channel of the keys by its sum over tokens: the same if and
// only if these sums are equal (methods.md C3). For independent keys they become equal as n grows; for real keys not.
#include <fmt/format.h>

#include "experiments/recipes/conventions.hpp"
#include "experiments/recipes/identity.hpp"
#include "experiments/recipes/real_heads.hpp"

namespace attnbench::efficient_normalisation_recipe {
namespace {

const std::string as_written = "linear:features=softmax-exp", distance = "relative_difference";

struct Compared {
  Convention convention;
  Cells gaussian, clustered, written, heads;
};

Compared run(Recipe& recipe, const Convention& convention) {
  RunRequest request{.experiment = fmt::format("agreement:[{}]", convention.of("linear:features=exp")),
                     .methods = {convention.of("efficient"), "uniform"},
                     .inputs = {"gaussian"},
                     .n = recipe.sized<std::vector<Index>>({32, 128}, {32, 64, 128, 256}, {64, 128, 256, 512, 1024}),
                     .causal = false,
                     .replicates = recipe.sized<Index>(2, 32)};
  Compared runs{.convention = convention, .gaussian = recipe.run(request)};
  request.inputs = {"clustered"};
  request.replicates = recipe.sized<Index>(2, 8);  // drawn, not judged
  runs.clustered = recipe.run(request);
  request.inputs = {"gaussian", "clustered"};
  request.methods = {convention.of(as_written)};
  request.replicates = 2;
  runs.written = recipe.run(request);
  request.methods = {convention.of("efficient"), "uniform"};
  request.n = {recipe.sized<Index>(64, 128, 1024)};
  request.replicates = recipe.sized<Index>(2, 18, texts);
  runs.heads = run_on(recipe, request, telling_heads_of_models(recipe));
  return runs;
}

// In units of the distance to the mean of V.
Estimate relative_distance(const Compared& one, const Cells& here, double error_rate) {
  return median_ratio(here.method(one.convention.of("efficient")).scalar(distance),
                      here.method("uniform").scalar(distance), error_rate);
}

void judge_as_written(Recipe& recipe, const std::vector<Compared>& all) {
  recipe.judge(
      {.text = "A softmax over the channels of a query, exponentials of a key and a normalisation of rows are linear "
               "attention with exponentials of both",
       .source = "Su 2021, kexue.fm/archives/8338, section 激活函数",
       .quotation = "在那种设计中有ϕ(q)=softmax(q),φ(k)=e^k，相比直接ϕ(x)=φ(x)=e^x只不过归一化的位置有所不同。 (In "
                    "that design phi(q) "
                    "= softmax(q), varphi(k) = e^k; compared with taking phi(x) = varphi(x) = e^x directly, only the "
                    "place of the normalisation differs.)",
       .definition =
           "|A' - A| / |A| (Frobenius) of the attention matrices on normal and clustered inputs, d = 64, "
           "bidirectional, raw q and k and q and k times d^-1/4: the design as the post writes it, which is not "
           "the published one",
       .threshold = "1e-12: an identity, to rounding",
       .because = "the sum over the channels of a query is a factor of its row, which the normalisation cancels"},
      [=] {
        Cells written;
        for (const auto& one : all) written = written + one.written;
        return identity(written, distance, 1e-12);
      });
}

void judge_published(Recipe& recipe, const Compared& one) {
  const auto heads = telling_heads_of_models(recipe);
  const double rate = recipe.error_rate(heads.size());
  recipe.judge(
      {.text = fmt::format("How far Efficient attention is from linear attention with exponentials, both on {}, on "
                           "heads of {}",
                           one.convention.name, three_models),
       .source = "Shen et al. 2018, arXiv:1812.01243, section 3.2; Su 2021, kexue.fm/archives/8338",
       .paraphrase = "the paper takes the softmax of each row of Q and of each column of K; the post says that the "
                     "design differs from exponentials of both in the place of the normalisation only",
       .definition = fmt::format(
           "|A' - A| (Frobenius) over |U - A|: A' is Efficient attention's matrix (softmax of each query over its "
           "channels, softmax of each channel of the keys over all tokens), A that of linear attention with exp "
           "features and U that of the mean of V. 0 is the same attention, 1 as far as average pooling. The paper "
           "takes raw Q and K. Bidirectional, since a softmax over all tokens has no causal form. {}",
           heads_in_words(heads, one.heads.all().front().asked.problem.shape.nk, false)),
       .threshold = "no source gives one: 0.1, 0.25 and 0.5 are there for the reader",
       .expected = Ruling::measured,
       .because = "the two are the same only where the channels of keys have equal sums of exponentials"},
      [=] {
        std::vector<Comparison> comparisons;
        for (const RealHead& head : heads)
          comparisons.push_back({head.name(), relative_distance(one, one.heads.input(head.input()), rate)});
        return values_of(comparisons, {0.1, 0.25, 0.5});
      });
}

void judge_rate(Recipe& recipe, const std::vector<Compared>& all) {
  const Index shortest = recipe.sized<Index>(32, 32, 64), longest = recipe.sized<Index>(128, 256, 1024);
  const double rate = recipe.error_rate(2 * conventions.size());
  recipe.judge(
      {.text = "On independent normal keys the difference between Efficient attention as published and linear "
               "attention with exponentials falls about as n^-1/2",
       .definition = fmt::format(
           "A' is Efficient attention's matrix with its softmax of each channel of the keys over all tokens, A that of "
           "linear attention with exp features. One exponent for each replicate: log of |A' - A| / |A| (Frobenius) at "
           "n = {1} over that at n = {0}, over log({1} / {0}); medians over {2} inputs. Normal q and k, d = 64, "
           "bidirectional, raw q and k and q and k times d^-1/4, which must both hold",
           shortest, longest, all.front().gaussian.all().front().replicates),
       .threshold = "between -3/4 and -1/4: half way to 1/n and to no fall at all",
       .because = "the sums of a channel over tokens are means of independent numbers, which scatter as n^-1/2"},
      [=] {
        std::vector<Comparison> comparisons;
        for (const auto& one : all) {
          const Cells curve = one.gaussian.method(one.convention.of("efficient"));
          comparisons.push_back(
              {one.convention.name,
               median_of(exponents_between(curve.n(shortest).scalar(distance), curve.n(longest).scalar(distance),
                                           static_cast<double>(longest) / static_cast<double>(shortest)),
                         rate)});
        }
        return all_between(-0.75, -0.25, comparisons);
      });
}

void write(Recipe& recipe) {
  std::vector<Compared> all;
  std::vector<Panel> panels;
  for (const Convention& convention : conventions) {
    all.push_back(run(recipe, convention));
    for (const auto& [law, cells] : {std::pair{"gaussian", all.back().gaussian}, {"clustered", all.back().clustered}})
      panels.push_back({.title = fmt::format("{}, {}", law, convention.name),
                        .cells = cells,
                        .x = {"n"},
                        .x_label = "sequence length n",
                        .x_scale = "log2",
                        .y = distance,
                        .y_label = "|A' - A| over that of the mean of V",
                        .y_scale = "log10",
                        .ratio_to = "uniform"});
  }
  recipe.figure("efficient-normalisation", "Distance of Efficient attention to linear attention with exponentials",
                "d = 64, bidirectional; geometric means over inputs (32 gaussian ones, 8 clustered ones) with 95 % "
                "intervals, in units of the distance "
                "of the mean of V, which is 1. Above on raw q and k, below on q and k times d^-1/4.",
                panels);
  judge_as_written(recipe, all);
  for (const auto& one : all) judge_published(recipe, one);
  judge_rate(recipe, all);
}

const bool registered =
    add(RecipeEntry{.text = {.name = "efficient-normalisation",
                             .summary = "Efficient attention against linear attention with exponentials",
                             .formula = "Does Efficient attention differ from linear attention with exponentials of "
                                        "queries and keys in more than the place of its normalisation?",
                             .reference = "Shen et al. 2018, arXiv:1812.01243; Su 2021, kexue.fm/archives/8338"},
                    .write = write});

}  // namespace
}  // namespace attnbench::efficient_normalisation_recipe
