// Which ensembles of projection vectors keep positive features unbiased. Every row must be marginally N(0, I):
// directions from the Haar measure (methods.md B4) and norms of chi_d, independent of the directions (J1) and not all
// sqrt(d) (B3). Here |q + k| = 1 and d = m = 4, along (1, ..., 1) and along e1: the two differ if rows are not
// isotropic.
#include <fmt/format.h>

#include "experiments/recipes/closed_forms.hpp"

namespace attnbench::unbiased_projections_recipe {
namespace {

struct Ensemble {
  std::string spec, name;
};
using Ensembles = std::vector<Ensemble>;
const Ensembles right{{"performer:m=4,projection=iid", "independent"},
                      {"performer:m=4", "orthogonal, Haar directions and chi norms"},
                      {"performer:m=4,projection=simplex", "simplex"},
                      {"performer:m=4,projection=antithetic", "antithetic"},
                      {"performer:m=4,projection=sobol", "scrambled Sobol"},
                      {"performer:m=4,projection=halton", "shifted Halton"}};
const Ensembles raw_qr{{"performer:m=4,sign_fix=false", "directions of a raw QR factor"}};
const Ensembles equal_norms{{"performer:m=4,norms=sqrt-d", "all norms sqrt(d)"},
                            {"performer:m=4,projection=hadamard", "products of Hadamard matrices"}};
const Ensembles same_norms{{"performer:m=4,norms=same-block", "norms of the rows that QR began with"}};

struct Direction {
  std::string word, name;
};
const Direction ones{"ones", "(1, ..., 1)"}, axis{"axis", "e1"};
const std::vector<Direction> directions{ones, axis};
const std::string judged = "0.5";  // |q + k| = 1

std::string input(const std::string& direction, const std::string& length) {
  return fmt::format("pair:direction={},length={}", direction, length);
}

std::vector<std::string> specs(const std::vector<Ensembles>& groups) {
  std::vector<std::string> all;
  for (const Ensembles& group : groups)
    for (const Ensemble& one : group) all.push_back(one.spec);
  return all;
}

void draw(Recipe& recipe, const Cells& cells) {
  std::vector<Panel> panels;
  for (const auto& [word, along] : directions)
    for (const auto& [title, methods] :
         {std::pair{"right laws", specs({right})}, {"wrong laws", specs({raw_qr, same_norms, equal_norms})}})
      panels.push_back({.title = fmt::format("{}, q + k along {}", title, along),
                        .cells = cells.where({{"direction", word}}).methods(methods),
                        .x = {"length"},
                        .x_label = "length |q| = |k|, half of |q + k|",
                        .y = "softmax_bias",
                        .y_label = "bias  E K'/exp(q.k) - 1"});
  recipe.figure("unbiased-projections", "Bias of positive features, by the law of their projection vectors",
                "d = m = 4, q = k; means with 95 % intervals over 64 replicates of draws.", panels);
}

const std::string defined =
    "the mean over draws of the estimate of exp(q.k) over exp(q.k), less 1 (kernel-error, softmax_bias), at d = m = 4 "
    "only, q = k, |q + k| = 1, mean over 64 replicates of draws, ";

void judge_all(Recipe& recipe, const Cells& cells) {
  const auto biases = [=, &recipe](const Ensembles& ensembles, const std::vector<Direction>& along) {
    std::vector<Comparison> all;
    for (const Ensemble& ensemble : ensembles)
      for (const auto& [word, name] : along)
        all.push_back({fmt::format("{}, q + k along {}", ensemble.name, name),
                       mean(cells.input(input(word, judged)).method(ensemble.spec).scalar("softmax_bias"),
                            recipe.error_rate(ensembles.size() * along.size()))});
    return all;
  };
  recipe.judge(
      {.text = "At d = m = 4 and q = k, positive features are unbiased with independent, orthogonal, simplex, "
               "antithetic, Sobol and Halton vectors that are N(0, I) one by one",
       .source =
           "Choromanski et al. 2020, arXiv:2009.14794, section 2.4, for orthogonal vectors; for the others our own",
       .quotation = "This can be done while maintaining unbiasedness whenever isotropic distributions D are "
                    "used (i.e. in particular in all kernels we considered so far) by the standard "
                    "Gram-Schmidt orthogonalization procedure (see (Choromanski et al., 2017) for details).",
       .definition = defined + "along (1, ..., 1) and along e1. Sobol and Halton sequences are randomised",
       .threshold = "0, which every interval must hold, with intervals narrower than +-0.05: a third of the "
                    "bias that raw QR factors have",
       .because = "an average of terms that are unbiased one by one is unbiased"},
      [=] { return all_contain(0, 0.05, biases(right, directions)); });
  recipe.judge(
      {.text = "At d = m = 4 and q = k, positive features with the directions of LAPACK's QR factor, without sign "
               "correction, are unbiased",
       .source = "google-research, performer/fast_attention/tensorflow/fast_attention.py (commit 0c1bbe5f), "
                 "create_projection_matrix, which transposes the Q of tf.linalg.qr as it is",
       .quotation = "each projection vector has direction chosen uniformly at random and either deterministic "
                    "length \\sqrt{d} or length taken from the \\chi(d) distribution (in the latter case "
                    "marginal distributions of the projections are d-dimensional Gaussian vectors with "
                    "associated identity covariance matrix)",
       .definition = defined +
                     "along (1, ..., 1) and along e1, with the rows of Q from Householder QR as it is, times norms of "
                     "chi(d). The docstring claims uniform directions, from which unbiased estimates would follow",
       .threshold = "0, which both intervals must hold, with intervals narrower than +-0.05",
       .expected = Ruling::refuted,
       .because = "Householder QR gives the first entries of Q one sign (Mezzadri 2007): directions are not "
                  "uniform"},
      [=] { return all_contain(0, 0.05, biases(raw_qr, directions)); });
  recipe.judge({.text = "At d = m = 4 and q = k, positive features underestimate exp(q.k) with vectors whose norms are "
                        "all sqrt(d), of Haar directions or of Hadamard products",
                .definition = defined + "along (1, ..., 1) and along e1. Hadamard products: sqrt(d) times rows of a "
                                        "product of three orthogonal Hadamard matrices with random signs",
                .threshold = "0: an unbiased estimator has no sign",
                .because = "norms sqrt(d) estimate the kernel of Theorem 1, which is below exp(q.k) everywhere; "
                           "three Hadamard products are close to it"},
               [=] { return all_below(0, biases(equal_norms, directions)); });
  recipe.judge(
      {.text = "At d = m = 4 and q = k along e1, positive features overestimate exp(q.k) with norms taken from the "
               "Gaussian rows that QR began with",
       .definition = defined + "along e1; the rows of Q, with its signs corrected, times the norms of the Gaussian "
                               "rows that Q was made of. Along (1, ..., 1) the bias vanishes at this d",
       .threshold = "0: an unbiased estimator has no sign",
       .because = "the norms depend on Q"},
      [=] { return all_above(0, biases(same_norms, {axis})); });
}

void write(Recipe& recipe) {
  Cells all;
  for (const auto& length : recipe.sized<std::vector<std::string>>({judged}, {"0.25", judged, "0.75"}))
    all = all + recipe.run({.experiment = draws_of_a_pair(length == judged ? recipe.sized<Index>(64, 512, 6144)
                                                                           : recipe.sized<Index>(64, 64, 6144)),
                            .methods = specs({right, raw_qr, same_norms, equal_norms}),
                            .inputs = {input(ones.word, length), input(axis.word, length)},
                            .n = {1},
                            .d = {4},
                            .replicates = recipe.sized<Index>(2, replicates_for_means)});
  draw(recipe, all);
  judge_all(recipe, all);
}

const bool registered =
    add(RecipeEntry{.text = {.name = "unbiased-projections",
                             .summary = "Which orthogonal projections keep positive features unbiased",
                             .formula = "Which laws of projection vectors keep positive features unbiased, and do "
                                        "those of published code?",
                             .reference = "Choromanski et al. 2020, arXiv:2009.14794, section 2.4"},
                    .write = write});

}  // namespace
}  // namespace attnbench::unbiased_projections_recipe
