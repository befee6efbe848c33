// vAttention's promise on denominators, as a test of coverage by both quantiles. methods.md S.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/recipes/closed_forms.hpp"
#include "harness/figures/looks.hpp"

namespace attnbench::vattention_coverage_recipe {
namespace {

const std::string real_head = "model:layer=2,head=0", two_sided = "two-sided", one_sided = "one-sided";
const std::vector<std::string> deltas{"0.05", "0.1", "0.2"};

constexpr Index small_base = 64, large_base = 512;

// At the smaller eps most rows of a trained head ask for more draws than there are keys, and draw nothing.
const std::string eps = "0.1", eps_on_head = "0.3";

std::string method(const std::string& quantile, Index base, const std::string& of = eps) {
  return fmt::format("vattention:eps={},sinks=1,window=0,top=0,base={},quantile={}", of, base, quantile);
}
std::string experiment(const std::string& of, Index rows) {
  return fmt::format("denominator-coverage:eps={},rows={}", of, rows);
}

using Interval = Estimate (*)(const Samples&, double error_rate);

// How often the cells of a quantile miss, over their delta: one comparison for each delta.
std::vector<Comparison> over_delta(const Recipe& recipe, const Cells& cells, const std::string& quantile, Index base,
                                   Interval interval = mean) {
  std::vector<Comparison> all;
  for (const std::string& delta : deltas) {
    const Cells one = cells.where({{"quantile", quantile}, {"base", base}, {"delta", std::stod(delta)}});
    Samples shares = one.scalar("missed");
    for (auto& [replicate, share] : shares) share /= std::stod(delta);
    all.push_back({name_of(one), interval(shares, recipe.error_rate(deltas.size()))});
  }
  return all;
}

void write(Recipe& recipe) {
  RunRequest request{
      .experiment = experiment(eps, recipe.sized(64, 128, 256)),
      .methods = {method(two_sided, small_base), method(two_sided, large_base), method(one_sided, large_base)},
      .inputs = {"gaussian"},
      .n = {recipe.sized<Index>(1024, 4096)},
      .d = {16},
      .sweep = {{"delta", deltas}},
      .replicates = recipe.sized<Index>(2, replicates_for_means, 8 * replicates_for_means)};
  RunRequest on_head = request;
  on_head.inputs = {real_head};
  on_head.experiment = experiment(eps_on_head, recipe.sized(64, 128, 256));
  on_head.methods = {method(two_sided, small_base, eps_on_head),
                     method(one_sided, small_base, eps_on_head)};  // too few keys for the other base sample
  on_head.n = {recipe.sized<Index>(512, 1024)};
  on_head.d = {};
  on_head.replicates = recipe.sized<Index>(2, 32);  // texts that the model has heads of
  const Cells synthetic = recipe.run(request), head = recipe.run(on_head);

  recipe.headline(11, "How often does a promised denominator miss?");
  const auto panel = [](const std::string& title, const Cells& cells) {
    return Panel{.title = title, .cells = cells, .x = {"delta"}, .y = "missed"};
  };
  recipe.figure("vattention-coverage", "Missed promises of vAttention",
                "Share of rows with |D'/D - 1| > eps over the delta of the promise, among rows that draw keys, by the "
                "two-sided quantile of the normal law and by the one-sided one.",
                {panel("normal q and k, logits of standard deviation 1", synthetic),
                 panel(printed_spec("inputs", real_head), head)});

  const std::string measured = fmt::format(
      "{}, {} inputs of normal q and k, n = {}, d = 16, delta = {}; no window and "
      "no largest logits",
      request.experiment, request.replicates, request.n[0], fmt::join(deltas, ", "));
  const std::string source = "Desai et al. 2025, arXiv:2510.05688, abstract";
  recipe.judge(
      {.text = "A denominator from vAttention's draws is off by more than eps with probability delta at most",
       .source = source,
       .quotation = "we introduce vAttention, the first practical sparse attention mechanism with user-specified "
                    "$(\\epsilon, \\delta)$ guarantees on approximation accuracy (thus, verified).",
       .definition =
           "the share of rows with |D'/D - 1| > eps (missed) over delta, by the two-sided quantile and a base "
           "sample of 64 keys, the mean over inputs; " +
           measured,
       .threshold = "1.25: the quantile is that of a normal law with a known standard deviation",
       .expected = Ruling::open,
       .because = "the base sample is small, and exponentials of normal logits are skewed: their standard deviation is "
                  "underestimated in most rows"},
      [=, &recipe] { return all_below(1.25, over_delta(recipe, synthetic, two_sided, small_base)); });
  recipe.judge(
      {.text = "With a base sample of 512 keys the denominator is off by more than eps with probability delta at most",
       .definition = "missed over delta by the two-sided quantile, the mean over inputs; " + measured,
       .threshold = "1.25, as for 64 keys",
       .because =
           "the standard deviation is then known to some percent, and sums of hundreds of draws are near normal"},
      [=, &recipe] { return all_below(1.25, over_delta(recipe, synthetic, two_sided, large_base)); });
  recipe.judge(
      {.text =
           "By the one-sided quantile of the authors' library, a denominator is off by more than eps about twice as "
           "often as delta",
       .definition =
           "missed over delta by the one-sided quantile and a base sample of 512 keys, the mean over inputs; " +
           measured,
       .threshold = "1.5 to 2.5",
       .because = "errors of both signs beyond the one-sided quantile have probability delta each"},
      [=, &recipe] { return all_between(1.5, 2.5, over_delta(recipe, synthetic, one_sided, large_base)); });
  recipe.judge(
      {.text = "On a trained head a denominator from vAttention's draws is off by more than eps with probability "
               "delta at most",
       .definition = "missed over delta by the two-sided quantile and a base sample of 64 keys, the median over " +
                     std::to_string(on_head.replicates) + " texts; " + on_head.experiment + " on " + real_head,
       .threshold = "1.25, as for normal q and k",
       .expected = Ruling::open,
       .because = "nothing is known of the tails of its logits"},
      [=, &recipe] { return all_below(1.25, over_delta(recipe, head, two_sided, small_base, median_of)); });
}

const bool registered = add(RecipeEntry{
    .text = {.name = "vattention-coverage",
             .summary = "Promised denominators: how often they miss",
             .formula = "Is the denominator of vAttention off by more than eps as rarely as delta says, and twice as "
                        "often by the one-sided quantile?",
             .reference = "Desai et al. 2025, arXiv:2510.05688"},
    .write = write});

}  // namespace
}  // namespace attnbench::vattention_coverage_recipe
