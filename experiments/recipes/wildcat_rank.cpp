// WildCat's error against the size r of its coreset, where it is exact, and its certificate (methods.md E7). The paper
// promises an error that falls faster than any power for bounded inputs; in the logarithms of a figure such a curve
// bends down. Keys on a sphere are bounded. Repeated keys take few values, and then r of them span all.
#include <fmt/format.h>

#include <cmath>

#include "harness/runner/recipe.hpp"

namespace attnbench::wildcat_rank_recipe {
namespace {

const std::string bounded = "sphere", repeated = "clustered:clusters=16,spread=0", normal = "gaussian";
constexpr double rounding = 1e-8;          // of weights whose equations have a condition number of up to 1e8
constexpr double inverse_rounding = 1e-6;  // of a residual by an inverse: residuals down to 1e-10 make it as large

std::string wildcat(Index r, bool clip = true) { return fmt::format("wildcat:r={}{}", r, clip ? "" : ",clip=false"); }

void write(Recipe& recipe) {
  const auto sizes = recipe.sized<std::vector<Index>>({4, 8, 16}, {8, 16, 32, 64, 128}, {8, 16, 32, 64, 128, 256});
  const Index n = recipe.sized<Index>(64, 1024, 4096), replicates = recipe.sized<Index>(2, 32);
  std::vector<std::string> methods, unclipped;
  for (const Index r : sizes) {
    methods.push_back(wildcat(r));
    unclipped.push_back(wildcat(r, false));
  }
  const auto request = [=](const std::string& experiment, const std::vector<std::string>& of, const std::string& input,
                           std::vector<Index> d, Index keys) {
    return RunRequest{.experiment = experiment,
                      .methods = of,
                      .inputs = {input},
                      .n = {keys},
                      .d = std::move(d),
                      .causal = false,
                      .replicates = replicates};
  };
  const Cells errors = recipe.run(request("attention-error:matrix=false", methods, bounded, {4}, n)),
              exact = recipe.run(request("attention-error:matrix=false", methods, repeated, {16}, n)),
              rows = recipe.run(request("attention-error:matrix=false", unclipped, normal, {2, 4, 16, 64}, n)),
              certified =
                  recipe.run(request("coreset-certificate", unclipped, bounded, {4}, recipe.sized<Index>(64, 512))) +
                  recipe.run(request("coreset-certificate", unclipped, normal, {16}, recipe.sized<Index>(64, 512)));

  const auto panel = [](std::string title, const Cells& cells, std::string y, std::string label) {
    return Panel{.title = std::move(title),
                 .cells = cells,
                 .x = {"r"},
                 .x_label = "keys in the coreset, r",
                 .x_scale = "log2",
                 .y = std::move(y),
                 .y_label = std::move(label),
                 .y_scale = "log10",
                 .interval = "median"};
  };
  const std::string error_label = "|A'V - AV| / |AV|  (Frobenius)";
  recipe.figure("wildcat-rank", "WildCat's error against the size of its coreset",
                fmt::format("n = {}, bidirectional; medians with 95 % intervals over {} inputs, each with a coreset of "
                            "its own. Left: queries and keys uniform on a sphere, d = 4. Middle: keys that take 16 "
                            "values, d = 16. Right: the trace of the residual over that of the kernel, which "
                            "certifies the weights.",
                            n, replicates),
                {panel("on a sphere", errors, "relative_output_error", error_label),
                 panel("16 values", exact, "relative_output_error", error_label),
                 panel("certificate", certified, "residual_share", "residual trace / trace of h")});

  const std::string error = fmt::format(
      "the relative Frobenius error of the output, draw by draw, n = {}, bidirectional, medians over {} inputs", n,
      replicates);
  const size_t last = sizes.size() - 1;
  recipe.judge(
      {.text =
           fmt::format("For queries and keys on a sphere WildCat's error falls by a larger factor from r = {} to {} "
                       "than from r = {} to {}: it bends down in logarithms",
                       sizes[last - 1], sizes[last], sizes[0], sizes[1]),
       .source = "Schroeder and Mackey 2026, arXiv:2602.10056, abstract",
       .quotation = "given bounded inputs, WildCat approximates exact attention with super-polynomial "
                    "$O(n^{-\\sqrt{\\log(\\log(n))}})$ error decay while running in near-linear $O(n^{1+o(1)})$ time.",
       .definition =
           error + fmt::format(": e({1}) / e({0}) over e({3}) / e({2}), with e(r) the error with r keys; d = 4",
                               sizes[last - 1], sizes[last], sizes[0], sizes[1]),
       .threshold = "1: a power of r falls by the same factor at every doubling",
       .because = "the eigenvalues of the kernel of bounded keys fall faster than any power"},
      [=, &recipe] {
        const auto e = [&](Index r) { return errors.method(wildcat(r)).scalar("relative_output_error"); };
        return all_below(1, {{"d = 4", median_ratio(quotients(e(sizes[last]), e(sizes[last - 1])),
                                                    quotients(e(sizes[1]), e(sizes[0])), recipe.error_rate(1))}});
      });
  recipe.judge(
      {.text = "WildCat is exact up to rounding where the keys take at most r values",
       .definition =
           fmt::format("the relative Frobenius error of the output in each of {} draws, for each r of at least "
                       "16; keys at 16 centres, normal q, d = 16, n = {}, bidirectional, in double",
                       replicates, n),
       .threshold =
           fmt::format("{:g}: the weights solve equations whose condition number is 1e8 at most here", rounding),
       .because = "r keys span the space of all, and Nystroem's approximation of a kernel of rank r is the kernel"},
      [=] {
        std::vector<Bounded> all;
        for (const Index r : sizes)
          if (r >= 16)
            for (const auto& [replicate, value] : exact.method(wildcat(r)).scalar("relative_output_error"))
              all.push_back({fmt::format("r = {}, draw {}", r, replicate), value, rounding});
        return all_at_most(all);
      });
  recipe.judge(
      {.text = "No weight of WildCat errs by more than its certificate, which costs no n x n matrix, allows",
       .definition = fmt::format(
           "the greatest error of a weight, |exp(q.k) - K'|, over exp(tau^2 |q|^2 / 2) times the root of the key's "
           "residual, in each of {} draws; q and k on a sphere, d = 4, and normal, d = 16, n = {}, in double. "
           "Residuals "
           "below 1e-10 of the kernel count as 1e-10",
           replicates, recipe.sized<Index>(64, 512)),
       .threshold = "1, and 1e-6 for rounding",
       .because = "the inequality of Cauchy and Schwarz in the space of the kernel"},
      [=] {
        std::vector<Bounded> all;
        for (const Cells& one : certified.one_by_one())
          for (const auto& [replicate, value] : one.scalar("bound_ratio"))
            all.push_back(
                {fmt::format("{}, draw {}", one.all().front().asked.method.spec(), replicate), value, 1 + 1e-6});
        return all_at_most(all);
      });
  recipe.judge({.text = "The residual that WildCat's algorithm keeps is the residual of its coreset",
                .definition = fmt::format(
                    "|t - t'| over the trace of h, t the trace of the residual as pivoted Cholesky subtracts "
                    "it and t' the same by the inverse of h_SS, in each of {} draws; inputs as above",
                    replicates),
                .threshold = fmt::format("{:g}: the inverse of h_SS has a condition number of up to 1e10 here",
                                         inverse_rounding),
                .because = "both are h less its Nystroem approximation"},
               [=] {
                 std::vector<Bounded> all;
                 for (const Cells& one : certified.one_by_one()) {
                   const Samples kept = one.scalar("residual_share"), direct = one.scalar("residual_share_direct");
                   for (const auto& [replicate, value] : kept)
                     if (const auto other = direct.find(replicate); other != direct.end())
                       all.push_back({fmt::format("{}, draw {}", one.all().front().asked.method.spec(), replicate),
                                      std::abs(value - other->second), inverse_rounding});
                 }
                 return all_at_most(all);
               });
  recipe.judge(
      {.text = "How large a share of WildCat's rows has a denominator that is not positive",
       .source = "Schroeder and Mackey 2026, arXiv:2602.10056",
       .paraphrase = "weights of a coreset may be negative, and each output is clipped to the range of the values",
       .definition = fmt::format("rows whose weights do not sum to more than zero, over all rows, without clipping; "
                                 "normal q, k and v, n = {}, d = 2, 4, 16 and 64, r = {} to {}; medians over {} inputs",
                                 n, sizes.front(), sizes.back(), replicates),
       .threshold = "none: the paper clips the output and states no share",
       .expected = Ruling::measured,
       .because = "the source gives no threshold"},
      [=, &recipe] {
        std::vector<Comparison> shares;
        for (const Cells& one : rows.one_by_one()) {
          const Cell cell = one.all().front().asked;
          shares.push_back({fmt::format("d = {}, r = {}", cell.problem.shape.d, cell.method.integer("r")),
                            median_of(one.scalar("fraction_nonpositive_normalisers"), recipe.error_rate(rows.size()))});
        }
        return values_of(shares, {0.001});
      });
}

const bool registered = add(
    RecipeEntry{.text = {.name = "wildcat-rank",
                         .summary = "WildCat: the error against the size of the coreset, and its certificate",
                         .formula = "How fast does the error of WildCat fall with its coreset, and where is it exact?",
                         .reference = "Schroeder and Mackey 2026, arXiv:2602.10056"},
                .write = write});

}  // namespace
}  // namespace attnbench::wildcat_rank_recipe
