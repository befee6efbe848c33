// Rank against length and against the number of features, and the spectrum at one length: Su's first argument.
// methods.md C2, I: the rank of a method with F features is at most F; softmax is of full rank on generic data.
#include <fmt/format.h>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench::rank_recipe {
namespace {

constexpr Index features = 64;  // of each capped method at every length
const Specs capped{"performer:m=64", "linear", "vq:codes=64"}, exact{"softmax", "uniform"};

// All cells by purpose; statements and figures select from them.
struct Measured {
  Index n;        // of the judged matrices
  Specs budgets;  // values of Performer's m at that n
  bool smoke;
  std::vector<LawOrHead> inputs;
  Cells matrices, over_features, long_ones;
};

std::string with_m(const std::string& m) { return "performer:m=" + m; }
// The judged budget, 4 d; smoke runs have smaller ones only.
std::string judged_on(const LawOrHead& input, const Measured& all) {
  return all.smoke ? all.budgets.back() : std::to_string(4 * input.d);
}

Measured run(Recipe& recipe) {
  Measured all{.n = recipe.sized<Index>(64, 192, 512),
               .budgets = recipe.sized<Specs>({"16", "32"}, {"64", "128", "256"}, {"64", "128", "256", "512"}),
               .smoke = recipe.smoke(),
               .inputs = laws_and_heads({{"gaussian", "gaussian"}, {"gaussian, scale 0.5", "gaussian:scale=0.5"}},
                                        telling_heads_of_models(recipe))};
  const Specs laws{all.inputs[0].input, all.inputs[1].input};
  const auto everywhere = [&](const RunRequest& request) {
    return recipe.run(request) + run_on(recipe, request, telling_heads_of_models(recipe));
  };
  Specs methods = exact;
  methods.insert(methods.end(), capped.begin(), capped.end());
  RunRequest request{.experiment = "rank",
                     .methods = methods,
                     .inputs = laws,
                     .n = {all.n},
                     .causal = false,
                     .replicates = recipe.sized<Index>(2, texts)};
  const Cells judged = everywhere(request);
  request.methods.clear();
  for (const auto& m : all.budgets) request.methods.push_back(with_m(m));
  all.over_features = judged + everywhere(request);
  // For figures only, with the first Gaussian input and the last head of the byte-level model.
  request.methods = methods;
  request.inputs = {laws[0], telling_heads(recipe).back().input()};
  request.n = {all.n / 8, all.n / 4, all.n / 2};
  request.replicates = recipe.sized<Index>(2, 4);
  all.matrices = judged + recipe.run(request);
  // A rank from F factors is at most F by construction, so only the ranks of matrices can test the bound.
  request.experiment = "rank:spectrum=factored";
  request.methods = {"performer:m=64", "linear"};
  request.inputs = {laws[0]};
  request.n.clear();
  for (Index n = 2 * all.n; n <= all.n * recipe.sized<Index>(8, 8, 128); n *= 2) request.n.push_back(n);
  all.long_ones = recipe.run(request);
  return all;
}

Panel panel(const LawOrHead& input, const Cells& cells, const std::string& metric, const std::string& label) {
  return {.title = input.name,
          .cells = cells,
          .x = {"n"},
          .x_label = "sequence length n",
          .x_scale = "log2",
          .y = metric,
          .y_label = label,
          .y_scale = "log2"};
}

Panel over_features(const LawOrHead& input, const Measured& all, const std::string& metric, const std::string& label) {
  const Cells here = all.over_features.input(input.input);
  Specs shown{"softmax", "linear", "uniform"};
  for (const auto& m : all.budgets) shown.push_back(with_m(m));
  Panel one = panel(input, here.methods(shown), metric, label);
  one.title = fmt::format("{}, n = {}", input.name, all.n);
  one.x = {"m"};
  one.x_label = "features m";
  one.references = {"softmax", "linear", "uniform"};
  return one;
}

void draw(Recipe& recipe, const Measured& all) {
  const RealHead last = telling_heads(recipe).back();
  const LawOrHead &law = all.inputs[0], &small = all.inputs[1], head{last.name(), last.input()};
  const std::string numerical = "numerical rank", effective = "effective rank",
                    seen = " Heads are those of the project's byte-level model, seen without its causal mask.";
  const Cells of_law = all.matrices.input(law.input) + all.long_ones, of_head = all.matrices.input(head.input);
  recipe.headline(4, "Which matrix does it make?");
  recipe.figure("rank", "Rank against sequence length",
                "Numerical rank (singular values above sigma_1 n 2.2e-16, in double) and effective rank exp H(sigma / "
                "sum); bidirectional, d = 64, 95 % intervals over draws or texts. Methods with 64 features stop at 64; "
                "beyond the lengths of softmax the spectrum is from their factors." +
                    seen,
                {panel(law, of_law, "numerical_rank", numerical), panel(head, of_head, "numerical_rank", numerical),
                 panel(law, of_law, "effective_rank", effective), panel(head, of_head, "effective_rank", effective)});
  recipe.figure(
      "rank-over-features", "Rank against the number of features",
      "Performer from m = d on; dotted: methods without m; 95 % intervals over draws or texts. Every feature "
      "adds to the numerical rank; to the effective rank it adds noise as well as structure, and where "
      "softmax attention is nearly uniform (scale 0.5) the noise has more of it than the truth." +
          seen,
      {over_features(law, all, "numerical_rank", numerical), over_features(law, all, "effective_rank", effective),
       over_features(small, all, "effective_rank", effective), over_features(head, all, "effective_rank", effective)});
  std::vector<Panel> spectra;
  for (const LawOrHead& input : {law, small, head})
    spectra.push_back({.title = fmt::format("{}, n = {}", input.name, all.n),
                       .kind = "profile",
                       .cells = all.matrices.input(input.input).n(all.n),
                       .x_label = "index k / n",
                       .y = "cumulative_spectrum",
                       .y_label = "sum of the first k singular values / all",
                       .normalise_x = true});
  recipe.figure("spectrum", "Normalised cumulative spectrum",
                "Share of the singular values' sum in the first k; bidirectional, d = 64, 64 features or codes. A "
                "curve that rises at once is a matrix of low effective rank." +
                    seen,
                spectra);
}

Finding judge_bound(const Measured& all) {
  std::vector<Bounded> ranks;
  const auto add = [&](const std::string& method, const LawOrHead& input, double bound) {
    const Cells one = all.over_features.method(method).input(input.input);
    for (const auto& [replicate, rank] : one.scalar("numerical_rank"))
      ranks.push_back({fmt::format("{} on {}", method, input.name), rank, bound});
  };
  for (const LawOrHead& input : all.inputs) {
    for (const auto& method : capped) add(method, input, static_cast<double>(method == "linear" ? input.d : features));
    for (const auto& m : all.budgets) add(with_m(m), input, std::stod(m));
  }
  return all_at_most(ranks);
}

Finding judge_softmax(const Recipe& recipe, const Measured& all) {
  std::vector<Comparison> missing;
  for (const LawOrHead& input : all.inputs) {
    Samples less = all.matrices.method("softmax").input(input.input).n(all.n).scalar("numerical_rank");
    for (auto& [replicate, rank] : less) rank = static_cast<double>(all.n) - rank;
    missing.push_back({"n less the rank, " + input.name, median_of(less, recipe.error_rate(all.inputs.size()))});
  }
  return all_below(0.5, missing);
}

Finding judge_features(const Recipe& recipe, const Measured& all) {
  std::vector<Region> regions;
  for (const LawOrHead& input : all.inputs) {
    const Cells here = all.over_features.input(input.input);
    region(regions, input.part)
        .comparisons.push_back(
            {input.name,
             median_ratio(here.method(with_m(judged_on(input, all))).scalar("effective_rank"),
                          here.method("softmax").scalar("effective_rank"), recipe.error_rate(all.inputs.size()))});
  }
  return below_where(1, regions);
}

void write(Recipe& recipe) {
  const Measured all = run(recipe);
  draw(recipe, all);
  const std::string where = fmt::format(
      "normal queries and keys of standard deviation 1 and 0.5, n = {}, d = 64, {} draws, and heads seen without a "
      "causal mask (which alone gives full rank). {}",
      all.n, texts, heads_in_words(telling_heads_of_models(recipe), all.n, false));
  recipe.judge(
      {.text = "The rank of the attention matrix is at most the number of features with linear attention, and the "
               "number of codes with vector-quantised keys",
       .source =
           "Su 2021, kexue.fm/archives/8338, section 低秩问题, for linear attention; for vector-quantised keys our own",
       .quotation = "线性Attention矩阵的秩一定不超过$m$ (the rank of the linear attention matrix is certainly at "
                    "most m)",
       .definition = fmt::format("numerical rank (singular values above sigma_1 n 2.2e-16, sigma_1 the largest) of the "
                                 "matrix of every draw or text: linear attention with 1 + elu (d features), Performer "
                                 "with m = {} to {} features, and 64 codes; ",
                                 all.budgets.front(), all.budgets.back()) +
                     where,
       .threshold = "the number of features or codes, an identity of algebra: it is the code that is tested",
       .because = "a product of an n x m and an m x n matrix has rank m at most"},
      [=] { return judge_bound(all); });
  recipe.judge({.text = fmt::format("In double precision, at least half of the matrices of softmax attention of {} "
                                    "tokens without a mask are of full rank, on normal inputs and on heads of {}",
                                    all.n, three_models),
                .definition = "n less the numerical rank (singular values above sigma_1 n 2.2e-16, sigma_1 the "
                              "largest), the median over draws or texts, which must lie below on every input; " +
                              where,
                .threshold = "0.5: ranks are whole numbers, so at least half of the matrices are of rank n",
                .expected = Ruling::open,
                .because = "the exponential can raise the rank; how much of it rounding leaves is not known"},
               [=, &recipe] { return judge_softmax(recipe, all); });
  recipe.judge(
      {.text = "With m = 4 d features, Performer's attention matrix is of lower effective rank than that of softmax "
               "attention",
       .source = "Su 2021, kexue.fm/archives/8338, section 低秩问题",
       .quotation =
           "为了弥补秩的损失，所以一般要设置$m > d$，在Performer的实验中选择的是$m = 4d$ (to make up for the loss "
           "of rank one generally sets m > d; Performer's experiments chose m = 4d)",
       .definition =
           "effective rank of Performer's matrix with m = 4 d over that of softmax's, the median over the same draws "
           "or texts; the effective rank is exp(H), H the entropy of the singular values over their sum. That the "
           "source means the effective rank is our reading, since m > d bounds only the rank. Each law is judged, and "
           "each model, whose heads must all hold; " +
           where,
       .threshold = "1: equal ranks",
       .expected = Ruling::depends,
       .because = "where softmax is nearly uniform its effective rank is near 1, and the noise of the "
                  "features has more"},
      [=, &recipe] { return judge_features(recipe, all); });
}

const bool registered = add(RecipeEntry{
    .text = {.name = "rank",
             .summary = "Rank of the attention matrix against length and features",
             .formula = "How far is the rank of linear attention below that of softmax, and do more features close the "
                        "gap?",
             .reference = "Su 2021, kexue.fm/archives/8338; Wang et al. 2020, arXiv:2006.04768"},
    .write = write});

}  // namespace
}  // namespace attnbench::rank_recipe
