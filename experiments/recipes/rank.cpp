// Rank against length and against the number of features, and the spectrum at one length: source 000's first argument.
// methods.md C2, I: the rank of a method with F features is at most F; softmax is of full rank on generic data.
#include <fmt/format.h>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

constexpr Index features = 64;  // of each capped method at every length
const Specs capped{"performer:m=64", "linear", "vq:codes=64"}, exact{"softmax", "uniform"};
const Specs laws{"gaussian", "gaussian:scale=0.5"};

const Description text{.name = "rank",
                       .summary = "Rank of the attention matrix against length and features",
                       .formula =
                           "The rank of linear attention is at most its number of features, while softmax attention is "
                           "of full rank; with m = 4 d features and more the gap closes.",
                       .reference = "Su 2021, kexue.fm/archives/8338; Wang et al. 2020, arXiv:2006.04768"};

// The matrices themselves are taken up to this length, where features are swept as well; softmax up to twice of it, and
// methods with factors, whose spectra take no matrix, farther. A rank from F factors is at most F by construction: the
// bound is judged on matrices.
Index dense(RecipeSize size) { return size == RecipeSize::smoke ? 64 : 512; }
Index farthest(RecipeSize size) { return dense(size) * (size == RecipeSize::full ? 128 : 8); }

Specs budgets(RecipeSize size) {
  if (size == RecipeSize::smoke) return {"16", "32"};
  return {"64", "128", "256", "512"};  // d, 2 d, 4 d, 8 d
}

Specs all_methods() {
  Specs all = exact;
  all.insert(all.end(), capped.begin(), capped.end());
  return all;
}

Specs all_inputs(RecipeSize size) {
  Specs all = laws;
  for (const auto& head : inputs_of(telling_heads(size))) all.push_back(head);
  return all;
}

std::string with_m(const std::string& m) { return "performer:m=" + m; }

std::vector<RunRequest> runs(RecipeSize size) {
  const Index n = dense(size), replicates = size == RecipeSize::full ? 10 : size == RecipeSize::quick ? 3 : 2;
  const RunRequest on_laws{.experiment = "rank",
                           .methods = all_methods(),
                           .inputs = laws,
                           .n = {n / 8, n / 4, n / 2, n},
                           .causal = false,
                           .replicates = replicates};
  RunRequest drawn = on_laws, given = on_laws, over_m = on_laws, longer = on_laws, factored = on_laws;
  drawn.inputs = given.inputs = inputs_of(telling_heads(size));
  drawn.methods = {"performer:m=64", "vq:codes=64"};
  given.methods = {"softmax", "uniform", "linear"};
  given.replicates = 1;
  over_m.inputs = all_inputs(size);
  over_m.methods = {"performer", "softmax"};
  over_m.n = {n};
  over_m.sweep = {{"m", budgets(size)}};
  over_m.replicates = 2 * replicates;
  longer.methods = {"softmax"};
  longer.n = {2 * n};
  RunRequest longer_heads = longer;
  longer_heads.inputs = given.inputs;
  longer_heads.replicates = 1;
  factored.experiment = "rank:spectrum=factored";
  factored.methods = {"performer:m=64", "linear"};
  factored.n.clear();
  for (Index length = 2 * n; length <= farthest(size); length *= 2) factored.n.push_back(length);
  return {on_laws, drawn, given, over_m, longer, longer_heads, factored};
}

nlohmann::json matrices_of(const std::string& input) {
  return {{"experiment", "rank"}, {"of", "attention"},      {"d", 64}, {"logit_scale", 1}, {"input", input},
          {"causal", 0},          {"method", all_methods()}};
}

Panel panel(const std::string& title, const std::string& input, const std::string& metric, const std::string& label) {
  return {.title = title,
          .where = matrices_of(input),
          .x = {"n"},
          .x_label = "sequence length n",
          .x_scale = "log2",
          .y = metric,
          .y_label = label,
          .y_scale = "log2"};
}

Panel over_features(const std::string& title, const std::string& input, RecipeSize size, const std::string& metric,
                    const std::string& label) {
  Panel one = panel(title, input, metric, label);
  one.where["method"] = {"performer"};
  one.where["n"] = dense(size);
  one.x = {"m"};
  one.x_label = "features m";
  one.references = {"softmax", "linear", "uniform"};
  return one;
}

Panel spectrum(const std::string& title, const std::string& input, Index n) {
  Panel one{.title = title,
            .kind = "profile",
            .where = matrices_of(input),
            .x_label = "index k / n",
            .y = "cumulative_spectrum",
            .y_label = "sum of the first k singular values / all",
            .normalise_x = true};
  one.where["n"] = n;
  return one;
}

std::vector<Figure> figures(RecipeSize size) {
  const RealHead head = telling_heads(size).back();
  const std::string real = "real head (" + head.name() + ")", at_n = ", n = " + std::to_string(dense(size));
  const std::string numerical = "numerical rank", effective = "effective rank";
  return {
      figure("rank", text, "Rank against sequence length",
             "Numerical rank (singular values above sigma_1 n 2.2e-16, in double) and effective rank exp H(sigma / "
             "sum); bidirectional, d = 64, 95 % intervals over inputs and draws. Methods with 64 features stop at "
             "64; what is longer than 1024 is from their factors. The real heads are those of the byte-level "
             "transformer, seen "
             "bidirectionally.",
             {panel("gaussian", "gaussian", "numerical_rank", numerical),
              panel(real, head.input(), "numerical_rank", numerical),
              panel("gaussian", "gaussian", "effective_rank", effective),
              panel(real, head.input(), "effective_rank", effective)}),
      figure("rank-over-features", text, "Rank against the number of features",
             "Performer from m = d to m = 8 d; dotted: methods without m. Every feature adds to the numerical rank; "
             "what it adds to the effective rank is noise as well as structure, and where softmax attention is "
             "nearly uniform (scale 0.5) the noise has more of it than the truth.",
             {over_features("gaussian" + at_n, "gaussian", size, "numerical_rank", numerical),

              over_features("gaussian" + at_n, "gaussian", size, "effective_rank", effective),
              over_features("gaussian, scale 0.5", "gaussian:scale=0.5", size, "effective_rank", effective),
              over_features(real, head.input(), size, "effective_rank", effective)}),
      figure("spectrum", text, "Normalised cumulative spectrum",
             "Share of the singular values' sum in the first k. A curve that rises at once is a matrix of low "
             "effective rank.",
             {spectrum("gaussian" + at_n, "gaussian", dense(size)),
              spectrum("gaussian, scale 0.5" + at_n, "gaussian:scale=0.5", dense(size)),
              spectrum(real + at_n, head.input(), dense(size))})};
}

// Every matrix of a method with features against their number.
Verdict judge_bound(const Results& results, RecipeSize size) {
  std::vector<Bounded> all;
  const auto add = [&](const std::string& method, const std::string& input, Index n, double bound) {
    for (const auto& [replicate, rank] :
         results.scalar({{"method", method}, {"input", input}, {"n", n}}, "numerical_rank"))
      all.push_back({fmt::format("{} on {}, n = {}", method, input, n), rank, bound});
  };
  for (const auto& input : all_inputs(size)) {
    for (const auto& method : capped) add(method, input, dense(size), features);
    for (const auto& m : budgets(size)) add(with_m(m), input, dense(size), std::stod(m));
  }
  return all_at_most(
      "The rank of linear attention and of vector quantisation is at most the number of features or codes", all);
}

Verdict judge_softmax(const Results& results, RecipeSize size) {
  std::vector<Region> regions;
  for (const auto& input : all_inputs(size)) {
    Region region{input, {}};
    for (const auto& [replicate, rank] :
         results.scalar({{"method", "softmax"}, {"input", input}, {"n", 2 * dense(size)}}, "numerical_rank"))
      region.comparisons.push_back({"", certain(static_cast<double>(2 * dense(size)) - rank)});
    regions.push_back(region);
  }
  Verdict verdict =
      below_where(0.5,
                  {fmt::format("Softmax attention is of full rank in double precision at n = {}", 2 * dense(size)),
                   Verdict::Outcome::ambiguous},
                  regions);
  verdict.numbers = "n less the numerical rank at " + verdict.numbers;
  return verdict;
}

// A region an input: the effective rank over that of softmax, for every m.
Verdict judge_features(const Results& results, RecipeSize size) {
  const Specs inputs = all_inputs(size);
  const double rate = share_of_error_rate(inputs.size() * budgets(size).size());
  std::vector<Region> regions;
  for (const auto& input : inputs) {
    const auto effective = [&](const std::string& method) {
      return results.scalar({{"method", method}, {"input", input}, {"n", dense(size)}}, "effective_rank");
    };
    Region region{input, {}};
    const Samples truth = effective("softmax");
    for (const auto& m : budgets(size)) {
      region.comparisons.push_back({"m = " + m, ratio_of(effective(with_m(m)), truth, rate)});
    }
    regions.push_back(region);
  }
  Verdict verdict = below_where(1,
                                // Where softmax is nearly uniform the noise of the features has more rank than it.
                                {fmt::format("Performer's effective rank is below that of softmax attention for every "
                                             "m from {} to {}",
                                             budgets(size).front(), budgets(size).back()),
                                 Verdict::Outcome::conditional},
                                regions);
  verdict.numbers = "effective rank over that of softmax at " + verdict.numbers;
  return verdict;
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  return {judge_bound(results, size), judge_softmax(results, size), judge_features(results, size)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
