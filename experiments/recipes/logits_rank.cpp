// The rank of the logits and of their softmax, and the error of a head whose logits have lower rank. methods.md I8:
// rank(Q K^T) <= d, and the exponential raises generic logits to full rank. This holds even at d = 1: exp(q_i k_j) of
// distinct q and k is strictly totally positive, so its exact rank is n, and its numerical rank is low. It can also
// lower the rank: exp(log u v^T) = u v^T goes from 2 to 1 (tests/recipes/rank_facts_test.cpp).
#include <fmt/format.h>

#include "experiments/recipes/field.hpp"
#include "experiments/recipes/real_heads.hpp"

namespace attnbench::logits_rank_recipe {
namespace {

const std::string of_logits = "rank:of=logits,by_index=false", of_attention = "rank:by_index=false";
const Specs laws{"gaussian", "gaussian:scale=0.5"};

struct Ranks {
  Index n;
  std::vector<Index> key_sizes;
  Cells cells;

  Samples of(const std::string& experiment, const std::string& law, Index d) const {
    return cells.where({{"experiment", experiment}, {"input", law}, {"d", d}}).scalar("numerical_rank");
  }
};

void judge_ranks(Recipe& recipe, const Ranks& ranks) {
  const std::string where =
      fmt::format("Gaussian Q and K with entries of standard deviation 1 and 0.5, n = {}, d = {}, no mask, {} draws",
                  ranks.n, fmt::join(ranks.key_sizes, ", "), texts);
  recipe.judge(
      {.text = "The rank of Q K^T is at most the key size d",
       .source = "Su 2021, kexue.fm/archives/8338, section 低秩问题",
       .quotation = "$\\boldsymbol{Q}\\boldsymbol{K}^{\\top}$的秩不超过$d$ (the rank of Q K^T is at most d)",
       .definition =
           "numerical rank of Q K^T (singular values above n 2.2e-16 times the largest) of every draw, and d; " + where,
       .threshold = "d, an identity of algebra: it is the code that is tested",
       .because = "a product of an n x d and a d x n matrix has rank d at most"},
      [=] {
        std::vector<Bounded> all;
        for (const Index d : ranks.key_sizes)
          for (const auto& law : laws)
            for (const auto& [replicate, rank] : ranks.of(of_logits, law, d))
              all.push_back({fmt::format("{}, d = {}", law, d), rank, static_cast<double>(d)});
        return all_at_most(all);
      });
  const double rate = recipe.error_rate(laws.size() * ranks.key_sizes.size());
  recipe.judge(
      {.text = "On Gaussian inputs the matrix of softmax attention has a rank above the key size d, at every d",
       .source = "Su 2021, kexue.fm/archives/8338, section 低秩问题",
       .quotation = "一个矩阵如果每个元素取指数的话，那么新矩阵的秩是可能增加的！ (if the exponential of every entry "
                    "of a matrix is taken, the rank of the new matrix can increase!)",
       .definition = "d over the numerical rank of the attention matrix (singular values above n 2.2e-16 times the "
                     "largest), a lower bound of its rank, the median over draws; " +
                     where,
       .threshold = "1: equal ranks. The source says \"can\": exp takes the rank of log(u v^T) from 2 to 1",
       .because = "generic logits become full"},
      [=] {
        std::vector<Comparison> all;
        for (const Index d : ranks.key_sizes)
          for (const auto& law : laws) {
            Samples ratio = ranks.of(of_attention, law, d);
            for (auto& [replicate, rank] : ratio) rank = static_cast<double>(d) / rank;
            all.push_back({fmt::format("{}, d = {}", law, d), median_of(ratio, rate)});
          }
        return all_below(1, all);
      });
  recipe.judge(
      {.text = fmt::format(
           "In double precision the matrix of softmax attention on Gaussian inputs has the full rank n = {}", ranks.n),
       .definition = fmt::format(
           "n less the numerical rank (the number of singular values above n 2.2e-16 times the largest), at each key "
           "size d = {}; Gaussian Q and K with entries of standard deviation 1, no mask, the median over {} draws",
           fmt::join(ranks.key_sizes, ", "), texts),
       .threshold = "0.5: ranks are whole numbers, so at least half of the matrices are of rank n",
       .expected = Ruling::depends,
       .because = "d = 1 is of rank n exactly, with singular values that fall faster than rounding shows"},
      [=] {
        std::vector<Region> regions;
        for (const Index d : ranks.key_sizes) {
          Samples missing = ranks.of(of_attention, laws[0], d);
          for (auto& [replicate, rank] : missing) rank = static_cast<double>(ranks.n) - rank;
          regions.push_back({fmt::format("d = {}", d), {{"", median_of(missing, rate)}}, static_cast<double>(d)});
        }
        return below_where(0.5, regions, "d");
      });
}

void draw_ranks(Recipe& recipe, const Ranks& ranks) {
  std::vector<Panel> panels;
  for (const auto& [metric, label] :
       {std::pair{"numerical_rank", "numerical rank"}, std::pair{"effective_rank", "effective rank"}})
    for (const auto& law : laws)
      panels.push_back({.title = law == "gaussian" ? "gaussian" : "gaussian, scale 0.5",
                        .cells = ranks.cells.input(law),
                        .x = {"d"},
                        .x_label = "key size d",
                        .x_scale = "log2",
                        .y = metric,
                        .y_label = label,
                        .y_scale = "log2",
                        .series = {"of"}});
  recipe.figure("logits-rank", "Rank of the logits and of their softmax",
                fmt::format("n = {}, bidirectional; 95 % intervals over {} draws. The logits' rank is d. Their softmax "
                            "is of rank n exactly; drawn is what double precision has of it, singular values above "
                            "sigma_1 n 2.2e-16.",
                            ranks.n, texts),
                panels);
}

Ranks run_ranks(Recipe& recipe) {
  Ranks ranks{.n = recipe.sized<Index>(48, 128, 512),
              .key_sizes =
                  recipe.sized<std::vector<Index>>({1, 16}, {1, 2, 3, 4, 8, 16, 64}, {1, 2, 3, 4, 5, 6, 8, 16, 32, 64}),
              .cells = {}};
  for (const auto& experiment : {of_logits, of_attention})
    ranks.cells = ranks.cells + recipe.run({.experiment = experiment,
                                            .methods = {"softmax"},
                                            .inputs = laws,
                                            .n = {ranks.n},
                                            .d = ranks.key_sizes,
                                            .causal = false,
                                            .replicates = recipe.sized<Index>(2, texts)});
  return ranks;
}

// Compares heads whose logits are truncated to a rank with the same heads unchanged.
void bottleneck(Recipe& recipe) {
  const std::vector<RealHead> heads = telling_heads_of_models(recipe);
  const Index n = recipe.sized<Index>(64, 128, 512);
  const auto ranks =
      recipe.sized<std::vector<Index>>({1, 16, 32}, {1, 2, 4, 8, 16, 32, 48}, {1, 2, 4, 8, 16, 24, 32, 48, 56});
  RunRequest request{
      .experiment = "logits-of-rank", .methods = {"softmax"}, .n = {n}, .replicates = recipe.sized<Index>(2, texts)};
  Cells truncated;
  std::vector<Panel> panels;
  for (const auto& of_model : by_model(heads)) {
    const Index d = of_model.front().shape(n).d;
    std::vector<std::string> below_d;
    for (const Index rank : ranks)
      if (rank < d) below_d.push_back(std::to_string(rank));
    request.sweep = {{"rank", below_d}};
    const Cells cells = run_on(recipe, request, of_model);
    truncated = truncated + cells;
    panels.push_back({.title = of_model.front().part(),
                      .cells = cells,
                      .x = {"rank"},
                      .x_label = fmt::format("rank of the logits (all of them: {})", d),
                      .x_scale = "log2",
                      .y = "relative_output_error",
                      .y_label = "|A_r V - A V| / |A V|  (Frobenius)",
                      .y_scale = "log10",
                      .interval = "median",
                      .references = {"uniform"}});
  }
  request.experiment = "attention-error:matrix=false";
  request.methods = {"uniform"};
  request.sweep.clear();
  const Cells null = run_on(recipe, request, heads);
  for (Panel& panel : panels)
    for (const RealHead& head : heads)
      if (head.part() == panel.title) panel.cells = panel.cells + null.input(head.input());
  recipe.figure("low-rank-bottleneck", "Attention of heads whose logits are truncated to a rank",
                fmt::format("The logits are replaced by their best approximation of that rank in the Frobenius norm; "
                            "medians with 95 % intervals; dotted: the mean of V. {}.",
                            heads_in_words(heads, n)),
                panels);

  const std::string measured = fmt::format(
      "relative Frobenius error of the output of softmax attention when the logits before the mask are replaced by "
      "their best approximation of rank r in the Frobenius norm, which is what queries and keys of r channels could "
      "hold of them, without any training at that key size. {}",
      heads_in_words(heads, n));
  const auto error = [=](const RealHead& head, Index rank) {
    return truncated.input(head.input()).where({{"rank", rank}}).scalar("relative_output_error");
  };
  recipe.judge(
      {.text = "With logits cut to rank r, heads of " + three_models + " err less than the mean of V",
       .source = "Bhojanapalli et al. 2020, arXiv:2002.07028, section 2.1",
       .paraphrase = "decreasing the projection size below a certain threshold introduces a bottleneck; the "
                     "paper proves that some attention matrices cannot be had, and gives no error",
       .definition = measured + fmt::format(". Over the error of the mean of V, at each r = {} that is below the key "
                                            "size d. A rank holds where every head errs less than the mean of V",
                                            fmt::join(ranks, ", ")),
       .threshold = "the mean of V, which takes no logits at all. " + equal_errors,
       .expected = Ruling::open,
       .because = "the paper says that there is a threshold, and not where it is for logits of a trained model"},
      [=, &recipe] {
        const double rate = recipe.error_rate(heads.size() * ranks.size());
        std::vector<Region> regions;
        for (const Index rank : ranks) {
          regions.push_back({fmt::format("r = {}", rank), {}, static_cast<double>(rank)});
          for (const RealHead& head : heads)
            if (rank < head.shape(n).d)
              regions.back().comparisons.push_back(
                  {head.name(),
                   median_ratio(error(head, rank), null.input(head.input()).scalar("relative_output_error"), rate)});
        }
        return below_where(1, regions, "r", equal_within);
      });
  recipe.judge(
      {.text = "How much the output of heads of " + three_models + " errs when their logits keep half of their rank",
       .source = "Bhojanapalli et al. 2020, arXiv:2002.07028, section 2.1",
       .paraphrase = "decreasing the projection size below a certain threshold introduces a bottleneck",
       .definition = measured + ". At r = d / 2, a number a head. The paper's threshold is a key size of n, above d",
       .threshold = "the paper has no bound on the error: the errors are given, with the counts below 0.01, 0.1 "
                    "and 0.5",
       .expected = Ruling::measured,
       .because = "the paper gives no error"},
      [=, &recipe] {
        std::vector<Comparison> all;
        for (const RealHead& head : heads)
          all.push_back({head.name(), median_of(error(head, head.shape(n).d / 2), recipe.error_rate(heads.size()))});
        return values_of(all, {0.01, 0.1, 0.5});
      });
}

void write(Recipe& recipe) {
  const Ranks ranks = run_ranks(recipe);
  draw_ranks(recipe, ranks);
  judge_ranks(recipe, ranks);
  bottleneck(recipe);
}

const bool registered = add(RecipeEntry{
    .text = {.name = "logits-rank",
             .summary = "The softmax raises the rank of the logits, and what a head loses with it",
             .formula = "How far does softmax raise the rank of Q K^T, and how much of that rank does a head need?",
             .reference = "Su 2021, kexue.fm/archives/8338; Bhojanapalli et al. 2020, arXiv:2002.07028"},
    .write = write});

}  // namespace
}  // namespace attnbench::logits_rank_recipe
