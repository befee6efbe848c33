// Worlds of recipes about sampled keys.
#include <cmath>

#include "tests/worlds/worlds.hpp"

namespace attnbench::worlds {
namespace {

using enum Ruling;

bool value_norms(const Asked& a) { return a.option("law") == "value-norm"; }
bool oracle(const Asked& a) { return a.option("law") == "oracle"; }
bool synthetic(const Asked& a) { return a.input("gaussian"); }

// Errors that are so many times their closed forms, with that share of bias in them. Closed forms are 1, of value norms
// and of strata of the oracle others. Errors of value norms are multiplied by `scatter` and divided by it in turns.
struct Errors {
  double factor = 1, bias = 0, strata = 0.9, norms = 0.5, norms_on_head = 0.5, scatter = 1;
};

Numbers errors(const Errors& e) {
  return [e](const Asked& a) -> Answer {
    const bool of_strata = oracle(a) && a.option("stratified") == "true";
    const double form = of_strata ? e.strata : !value_norms(a) ? 1 : synthetic(a) ? e.norms : e.norms_on_head;
    if (a.metric == "row_mse_theory") return form;
    const double scatter = !value_norms(a) ? 1 : a.replicate % 2 == 0 ? e.scatter : 1 / e.scatter;
    if (a.metric == "row_mse") return e.factor * form * scatter;
    if (a.metric == "row_bias2") return e.bias * e.factor * form;
    if (a.metric == "numerator_mse" || a.metric == "denominator_mse") return 3 * e.factor;
    if (a.metric == "numerator_mse_theory" || a.metric == "denominator_mse_theory") return 3;
    return {};
  };
}

const std::string no_bias = "A row from keys that are drawn from the softmax row itself",
                  strata = "Stratified draws from", exact = "Rows that are drawn from the softmax row",
                  sums = "Numerators and denominators of rows", first_order = "At the largest s",
                  norms = "At equal numbers of draws, rows from keys drawn by the norms";

const bool sampling_laws =
    add({"sampling-laws",
         errors({}),
         {{no_bias, holds, {0}},
          {strata, holds, {0.9}},
          {exact, holds, {1}},
          {sums, holds, {1}},
          {first_order, holds, {1}},
          {norms, holds, {0.5}}}}) &&
    add({"sampling-laws",
         errors({.factor = 1.5, .bias = 0.1, .strata = 1.2, .norms = 2, .norms_on_head = 2}),
         {{no_bias, refuted, {0.1}},
          {strata, refuted, {1.2}},
          {exact, refuted, {1.5}},
          {sums, refuted, {1.5}},
          {first_order, refuted, {1.5}},
          {norms, refuted, {2}}}}) &&
    add({"sampling-laws", errors({.norms_on_head = 2}), {{norms, depends}}}) &&
    // Intervals that hold 1 are equal errors within a factor of 1.05, and undecided beyond it.
    add({"sampling-laws", errors({.norms = 1, .norms_on_head = 1, .scatter = 1.04}), {{norms, refuted}}}) &&
    add({"sampling-laws", errors({.norms = 1, .norms_on_head = 1, .scatter = 1.06}), {{norms, open}}}) &&
    add({"sampling-laws", errors({.factor = 0.7}), {{exact, refuted, {0.7}}, {first_order, refuted, {0.7}}}});

// The shares of missed promises over delta: by each quantile, with a small base sample, and on the head.
struct Missed {
  double two_sided = 1.02, one_sided = 2, small_base = 1.2, on_head = 1.1;
};

Numbers missed(const Missed& m) {
  return of("missed", [m](const Asked& a) -> Answer {
    const double by_two_sided = !synthetic(a) ? m.on_head : a.option("base") == "64" ? m.small_base : m.two_sided;
    const double over_delta = a.option("quantile") == "one-sided" ? m.one_sided : by_two_sided;
    return a.number("delta") * over_delta;
  });
}

const std::string promised = "A denominator from vAttention's draws", large_base = "With a base sample of 512 keys",
                  published = "By the one-sided quantile", on_head = "On a trained head a denominator";

const bool vattention_coverage =
    add({"vattention-coverage",
         missed({}),
         {{promised, holds, {1.2}}, {large_base, holds, {1.02}}, {published, holds, {2}}, {on_head, holds, {1.1}}}}) &&
    add({"vattention-coverage",
         missed({.two_sided = 1.4, .one_sided = 1, .small_base = 1.5, .on_head = 1.6}),
         {{promised, refuted, {1.5}},
          {large_base, refuted, {1.4}},
          {published, refuted, {1}},
          {on_head, refuted, {1.6}}}});

// Errors of keys drawn from the softmax row over those of as many of the largest logits, where a head has no entropy,
// and their growth with it; and MagicPIG's over those at its keys, which lie between the sizes.
struct Sampled {
  double oracle = 0.5, growth = -1, magicpig = 0.5, oracle_elsewhere = oracle;
};

Numbers against_top_k(const Sampled& s) {
  return [s](const Asked& a) -> Answer {
    const double entropy = (6 * a.number("layer") + a.number("head")) / 100;
    if (a.metric == "relative_entropy") return entropy;
    if (a.metric == "keys_read") return a.name() == "magicpig" ? 8 : a.name() == "top-k" ? a.number("k") : 1;
    if (a.metric != "relative_output_error") return {};
    if (a.name() == "top-k") return 1 / a.number("k");
    if (a.name() == "magicpig") return s.magicpig / 8;
    return (a.option("model").empty() ? s.oracle : s.oracle_elsewhere) * std::exp(s.growth * entropy) / a.number("s");
  };
}

const std::string drawn = "Keys drawn from the softmax row", collided = "MagicPIG errs less",
                  broadly = "The more broadly a head attends";

const bool magicpig_against_top_k =
    add({"magicpig-against-top-k",
         against_top_k({}),
         {{drawn, holds}, {collided, holds, {0.5}}, {broadly, holds, {-1}}}}) &&
    add({"magicpig-against-top-k",
         against_top_k({.oracle = 3, .growth = 1, .magicpig = 2}),
         {{drawn, refuted}, {collided, refuted, {2}}, {broadly, refuted, {1}}}}) &&
    add({"magicpig-against-top-k", against_top_k({.oracle_elsewhere = 2}), {{drawn, depends}}});

// Errors that are so many times those of a uniform sample of as many keys, and of one method so many more times, and
// the bits that a model loses. All but samples and coresets read 8 keys.
struct Chosen {
  double over_uniform = 0.5, hashed = over_uniform, bits = 0.5;
};

Numbers at_equal_keys(const Chosen& c) {
  return [c](const Asked& a) -> Answer {
    const bool thinned = a.name() == "thinformer" || a.name() == "wildcat";
    const double keys = thinned                 ? a.number(a.name() == "wildcat" ? "r" : "keep")
                        : a.name() == "sampled" ? a.number("s")
                                                : 8;
    if (a.metric == "keys_read") return keys;
    if (a.metric == "excess_bits") return c.bits;
    if (a.metric != "relative_output_error") return {};
    const bool null = a.name() == "sampled" && a.option("law") == "uniform";
    return (null ? 1 : a.name() == "hyper" ? c.hashed : c.over_uniform) / keys;
  };
}

const std::string choosing = "Methods that choose or weigh keys", bits_lost = "How many bits per byte this project's";

const bool quality_at_equal_keys =
    add({"quality-at-equal-keys", at_equal_keys({}), {{choosing, holds, {0.5}}, {bits_lost, measured, {0.5}}}}) &&
    add({"quality-at-equal-keys",
         at_equal_keys({.over_uniform = 2, .bits = 0.005}),
         {{choosing, refuted, {2}}, {bits_lost, measured, {0.005}}}}) &&
    add({"quality-at-equal-keys", at_equal_keys({.hashed = 2}), {{choosing, depends}}});

// The denominator with keys that count twice and without, and errors with each departure of published code.
struct Slips {
  double twice = 1.2, once = 0.9, factor = 1.5;
};

Numbers slips(const Slips& s) {
  return [s](const Asked& a) -> Answer {
    const auto is = [&](const char* option, const char* value) { return a.option(option) == value; };
    if (a.metric == "mean_ratio") return is("mask_own", "false") ? s.twice : is("collapsed", "true") ? s.once : 1;
    if (a.metric != "relative_output_error") return {};
    const bool departs = is("mask_own", "false") || is("probabilities", "authors") || is("epsilon", "0.0001") ||
                         is("collapsed", "true") || is("strided", "true") || is("noise", "false") ||
                         is("weights", "over-queries") || is("sizes", "false") || is("overlapping", "true") ||
                         is("ridge", "0.1") || is("fixed_scale", "true");
    return departs ? s.factor / 4 : 0.25;
  };
}

const std::string twice = "HyperAttention's estimate of the denominator",
                  once = "vAttention's estimate of the denominator", every_s_th = "Thinformer errs as little",
                  departures = "By what factor departures of published code from papers on sampled";

const bool sampling_slips = add({"sampling-slips",
                                 slips({}),
                                 {{twice, refuted, {1.2}},
                                  {once, refuted, {0.9}},
                                  {every_s_th, refuted, {1.5}},
                                  {departures, measured, {1.5}}}}) &&
                            add({"sampling-slips",
                                 slips({.twice = 1, .once = 1, .factor = 1}),
                                 {{twice, holds, {1}}, {once, holds, {1}}, {every_s_th, holds, {1}}}});

}  // namespace
}  // namespace attnbench::worlds
