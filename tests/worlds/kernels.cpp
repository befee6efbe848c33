// Worlds of recipes about the estimates of kernels.
#include <cmath>

#include "tests/worlds/worlds.hpp"

namespace attnbench::worlds {
namespace {

using enum Ruling;

// Measured errors that are so many times their closed forms.
Numbers on_closed_forms(double factor) {
  return [factor](const Asked& a) -> Answer {
    if (a.metric == "relative_mse") return 2 * factor;
    if (a.metric == "relative_mse_theory") return 2;
    return {};
  };
}

bool orthogonal(const Asked& a) { return a.option("projection") == "orthogonal"; }
bool trigonometric(const Asked& a) { return a.option("features") == "trig"; }

const bool kernel_mse =
    add({"kernel-mse", on_closed_forms(1), {{"With independent projection vectors the mean squared", holds, {1}}}}) &&
    add({"kernel-mse",
         on_closed_forms(1.5),
         {{"With independent projection vectors the mean squared", refuted, {1.5}}}});

const bool orthogonal_gain =
    add({"orthogonal-gain",
         [](const Asked& a) -> Answer {
           if (a.metric == "relative_mse_theory") return 3;
           if (a.metric != "relative_mse") return {};
           if (!a.input("pair:length=1,angle=3.141592653589793") &&
               !a.input("pair:length=1.8708286933869707,angle=3.141592653589793"))
             return 3;
           const bool near = a.number("length") < 1.5;
           return orthogonal(a) ? (near ? 1 : 4) : 2;
         },
         {{"Where draws can estimate them, the mean squared errors of random features", holds, {1}},
          {"By closed forms, at q = k orthogonal and simplex", holds},
          {"At m = d = 4, orthogonal vectors reduce", depends, {0.5, 2}}}});

Numbers gains(double gain, double bound) {
  return [=](const Asked& a) -> Answer {
    if (a.metric == "orthogonal_gain") return gain;
    if (a.metric == "orthogonal_gain_bound") return bound;
    return {};
  };
}
const std::string theorem_2 = "At q = k and m = d, positive features with orthogonal vectors err less";
const bool orthogonality_bound = add({"orthogonality-bound", gains(2, 1), {{theorem_2, holds, {1}}}}) &&
                                 add({"orthogonality-bound", gains(1, 2), {{theorem_2, refuted, {2}}}});

// Trigonometric features err twice as much at as many vectors, and three times as much at as many features.
const bool performer_fig2 = add({"performer-fig2",
                                 [](const Asked& a) -> Answer {
                                   if (a.metric == "relative_mse") return on_closed_forms(1)(a);
                                   if (a.metric != "relative_mse_theory") return {};
                                   if (a.cell.experiment.integer("draws") > 64) return 2;  // the slice
                                   return !trigonometric(a) ? 1 : a.option("count") == "features" ? 3 : 2;
                                 },
                                 {{"Where draws can estimate them, the mean squared errors of positive", holds, {1}},
                                  {"By closed forms, positive features with independent vectors err less than "
                                   "trigonometric ones at equal numbers of projection",
                                   holds,
                                   {2}},
                                  {"By closed forms, positive features with independent vectors err less than "
                                   "trigonometric ones at equal numbers of features",
                                   holds,
                                   {3}}}});

// Trigonometric features err least at small angles and hyperbolic ones at large angles; all others twice as much.
const bool estimator_zoo =
    add({"estimator-zoo",
         [](const Asked& a) -> Answer {
           if (a.metric != "softmax_mse_theory") return {};
           const bool small = a.number("angle") < 1.5;
           if (trigonometric(a) && orthogonal(a)) return small ? 1 : 2;
           if (a.option("features") == "hyperbolic") return small ? 2 : 1;
           return 2;
         },
         {{"At equal numbers of features no compared", holds}, {"At equal work no compared", holds}}}) &&
    add({"estimator-zoo",
         of("softmax_mse_theory",
            [](const Asked& a) -> Answer {
              if (trigonometric(a) && orthogonal(a)) return 1;
              return a.option("features") == "hyperbolic" ? 2 : 3;
            }),
         {{"At equal numbers of features no compared", depends}, {"At equal work no compared", depends}}});

const std::string unbiased = "At |q| = |k| = 0.5, random features of";
const bool png_kernels =
    add({"png-kernels", of("relative_bias", [](const Asked&) { return 0; }), {{unbiased, holds, {0}}}}) &&
    add({"png-kernels", of("relative_bias", [](const Asked&) { return -0.2; }), {{unbiased, refuted, {-0.2}}}});

Numbers regularised(double ratio, double bias) {
  return [=](const Asked& a) -> Answer {
    if (a.metric == "regularised_ratio") return ratio;
    if (a.metric == "relative_bias") return bias;
    return {};
  };
}
const std::string at_most = "The regularised softmax kernel SMREG is at most",
                  at_least =
                      "The regularised softmax "
                      "kernel is at least",
                  without_bias = "At q = k and |q + k| = 1, positive";
const bool regularised_softmax =
    add({"regularised-softmax",
         regularised(0.9, 0),
         {{at_most, holds, {0.9}}, {at_least, holds}, {without_bias, holds, {0}}}}) &&
    add({"regularised-softmax",
         regularised(0.1, 0.1),
         {{at_most, holds, {0.1}}, {at_least, refuted}, {without_bias, refuted, {0.1}}}}) &&
    add({"regularised-softmax", regularised(1.1, 0), {{at_most, refuted, {1.1}}}});

const bool sign_fix = add({"sign-fix",
                           [](const Asked& a) -> Answer {
                             const bool raw = a.option("sign_fix") == "false";
                             if (a.metric == "relative_bias")
                               return !raw ? 0 : a.option("direction") == "ones" ? -0.1 : 0.1;
                             if (a.metric == "relative_mse") return raw ? 1 : 2;
                             return {};
                           },
                           {{"With the Q of a Householder QR factorisation", holds, {-0.1}},
                            {"With the signs of R's diagonal divided out", holds, {0}},
                            {"Positive features have a lower mean squared error", holds, {0.5}}}}) &&
                      add({"sign-fix",
                           of("relative_bias", [](const Asked&) { return 0.1; }),
                           {{"With the Q of a Householder QR factorisation", refuted, {0.1}},
                            {"With the signs of R's diagonal divided out", refuted, {0.1}}}});

const bool unbiased_projections =
    add({"unbiased-projections",
         of("softmax_bias",
            [](const Asked& a) -> Answer {
              if (a.option("length") != "0.5") return {};
              if (a.option("sign_fix") == "false") return 0.2;
              if (a.option("norms") == "sqrt-d" || a.option("projection") == "hadamard") return -0.1;
              if (a.option("norms") == "same-block") return a.option("direction") == "axis" ? 0.1 : -0.1;
              return 0;
            }),
         {{"At d = m = 4 and q = k, positive features are unbiased with independent", holds, {0}},
          {"At d = m = 4 and q = k, positive features with the directions of LAPACK's", refuted, {0.2}},
          {"At d = m = 4 and q = k, positive features underestimate", holds, {-0.1}},
          {"At d = m = 4 and q = k along e1, positive features overestimate", holds, {0.1}}}});

const bool trig_sign = add({"trig-sign",
                            [](const Asked& a) -> Answer {
                              if (a.metric == "fraction_nonpositive_normalisers")
                                return trigonometric(a) && a.number("scale") >= 1 ? 0.1 : 0;
                              if (a.metric == "fraction_negative") return trigonometric(a) ? 0.05 : 0;
                              if (a.metric == "relative_mse") return trigonometric(a) ? 4 : 2;
                              if (a.metric == "relative_mse_theory") return trigonometric(a) ? 4 : 2;
                              return {};
                            },
                            {{"At Gaussian queries and keys of large scale", depends, {0, 0, 0, 0.1, 0.1}},
                             {"How large a share of attention weights trigonometric", measured, {0.05}},
                             {"With 8 features each, d = 4", holds, {2}},
                             {"At |q + k|^2 = 0.545", holds, {1}}}});

const bool published_bugs = add({"published-bugs",
                                 [](const Asked& a) -> Answer {
                                   const bool published = !a.method("performer") &&
                                                          !a.method("performer:features=relu") &&
                                                          !a.method("reformer:chunk=32");
                                   const bool in_float = a.cell.problem.shape.precision == Precision::f32;
                                   if (a.metric == "relative_bias") return 0.2;
                                   if (a.metric == "relative_output_error") return published ? 3 : 1.5;
                                   if (a.metric == "relative_output_difference")
                                     return in_float ? 0.005 : published ? 0.1 : 2;
                                   return {};
                                 },
                                 {{"Each of eight ways in which published libraries", refuted, {0.2}},
                                  {"By what factor departures of published libraries", measured, {2}},
                                  {"With 1e-4, the default of performer-pytorch", holds, {0.05}},
                                  {"In float, subtracting the maximum of W x", holds, {0.005}}}}) &&
                            add({"published-bugs",
                                 of("relative_bias", [](const Asked&) { return 0; }),
                                 {{"Each of eight ways in which published libraries", holds, {0}}}});

// A pair collides as often as the law says, or less.
Numbers collisions(double rate, double law, double of_long) {
  return [=](const Asked& a) -> Answer {
    if (a.metric == "collision_rate") return a.option("direction") == "axis" && a.number("length") > 1 ? of_long : rate;
    if (a.metric == "collision_rate_theory") return law;
    return {};
  };
}
const std::string law_of_hash = "Reformer's hash puts two vectors", of_length = "Reformer's hash does not depend on";
const bool lsh_collisions =
    add({"lsh-collisions", collisions(0.5, 0.5, 0.5), {{law_of_hash, holds, {0}}, {of_length, holds, {0}}}}) &&
    add({"lsh-collisions",
         collisions(0.5, 0.75, 0.25),
         {{law_of_hash, refuted, {-0.25}}, {of_length, refuted, {0.25}}}});

}  // namespace
}  // namespace attnbench::worlds
