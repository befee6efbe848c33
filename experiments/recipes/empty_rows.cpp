// A similarity that is not negative is not enough: a row needs some that are above zero. methods.md C: ReLU leaves no
// weight where no channel is positive in the query and in a key. Of independent normal queries and n keys a channel is
// one with probability (1 - 2^-n) / 2, so that a row of d channels is empty with probability (1/2 + 2^-(n+1))^d.
#include <fmt/format.h>

#include <cmath>

#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const std::string relu = "linear:features=relu";
const Specs above_zero{"linear", "linear:features=relu,epsilon=0.001"};
const std::string experiment = "attention-error:matrix=false";
const std::string share_of_empty = "fraction_nonpositive_normalisers";

const std::string positive_law = "signs:positive=1";

const Description text{.name = "empty-rows",
                       .summary = "Rows that a non-negative similarity leaves without any weight",
                       .formula =
                           "It is enough that the similarity is non-negative for attention to be defined; the sum of a "
                           "row must be positive as well.",
                       .reference = "Katharopoulos et al. 2020, arXiv:2006.16236, section 3.1 (source 004)"};

Index length(RecipeSize size) { return size == RecipeSize::smoke ? 32 : 512; }

std::vector<Index> widths(RecipeSize size) {
  return size == RecipeSize::smoke ? std::vector<Index>{1, 16} : std::vector<Index>{1, 2, 3, 4, 6, 8, 16, 64};
}
// Where normal queries leave rows empty.
std::vector<Index> narrow(RecipeSize size) {
  return size == RecipeSize::smoke ? std::vector<Index>{1} : std::vector<Index>{1, 2, 3, 4};
}

double expected(Index d, Index n) {
  return std::pow(0.5 + std::exp2(-static_cast<double>(n + 1)), static_cast<double>(d));
}

std::vector<RunRequest> runs(RecipeSize size) {
  return {{.experiment = experiment,
           .methods = {relu, above_zero[0], above_zero[1]},
           .inputs = {"gaussian", positive_law},
           .n = {length(size)},
           .d = widths(size),
           .causal = false,
           .replicates = size == RecipeSize::smoke ? 2 : 20}};
}

std::vector<Figure> figures(RecipeSize size) {
  return {figure("empty-rows", text, "Rows without any weight",
                 fmt::format("n = {}, bidirectional; 95 % intervals over inputs. A row is empty when ReLU leaves its "
                             "query no positive channel, with probability 2^-d on normal queries, and never on "
                             "half-normal ones. elu + 1, the default of linear, is above zero and has none.",
                             length(size)),
                 {{.title = "normal and half-normal queries and keys",
                   .where = {{"experiment", experiment},
                             {"input", Specs{"gaussian", positive_law}},
                             {"n", length(size)},
                             {"causal", 0},
                             {"method", Specs{relu, "linear"}}},
                   .x = {"d"},
                   .x_label = "channels d",
                   .x_scale = "log2",
                   .y = share_of_empty,
                   .y_label = "share of rows without weight",
                   .series = {"method", "input"}}})};
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  const Index n = length(size);
  const auto empty = [&](const std::string& method, const std::string& input, Index d) {
    return results.scalar({{"method", method}, {"input", input}, {"d", d}}, share_of_empty);
  };
  std::vector<Comparison> off;
  Region normal{"normal queries and keys", {}}, positive{"half-normal queries and keys", {}};
  std::vector<Bounded> others;
  const double rate = share_of_error_rate(narrow(size).size());
  for (const Index d : narrow(size)) {
    const std::string what = fmt::format("d = {}", d);
    Samples difference = empty(relu, "gaussian", d);
    normal.comparisons.push_back({what, mean(difference, rate / 2)});
    positive.comparisons.push_back({what, mean(empty(relu, positive_law, d), rate / 2)});
    for (auto& [replicate, share] : difference) share -= expected(d, n);
    off.push_back({what, mean(difference, rate)});
    for (const auto& method : above_zero)
      for (const std::string& input : {std::string("gaussian"), positive_law})
        for (const auto& [replicate, share] : empty(method, input, d))
          others.push_back({fmt::format("{} on {}, {}", method, input, what), share, 0});
  }
  // Less than half of one row is none.
  return {
      below_where(0.5 / static_cast<double>(n),
                  {"A non-negative similarity leaves no row without weight (share of empty rows, ReLU)",
                   Verdict::Outcome::conditional},
                  {normal, positive}),
      all_contain(0, 0.05,
                  "On normal queries and keys ReLU leaves (1/2 + 2^-(n+1))^d of the rows empty (share less that)", off),
      all_at_most("With a similarity above zero, elu + 1 or ReLU with 0.001 added, no row is empty (share)", others)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
