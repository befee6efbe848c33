// Worlds of recipes about sampled keys.
#include <cmath>

#include "tests/worlds/worlds.hpp"

namespace attnbench::worlds {
namespace {

using enum Ruling;

bool synthetic(const Asked& a) { return a.input("gaussian"); }

// Errors that are so many times their closed forms, with that share of bias in them. Closed forms are 1, of value norms
// and of strata of the oracle others. Errors of value norms are multiplied by `scatter` and divided by it in turns.
struct Errors {
  double factor = 1, bias = 0, strata = 0.9, norms = 0.5, norms_on_head = 0.5, scatter = 1;
};

const std::string strata = "Stratified draws from",
                  norms = "At equal numbers of draws, rows from keys drawn by the norms";

// The shares of missed promises over delta, of rows that draw: of the whole method, of its draws alone, and by the
// one-sided quantile. Half of the rows of the head draw.
struct Missed {
  double whole = 1.2, on_head = 2.4, alone = 3, one_sided = 2;
};

Numbers missed(const Missed& m) {
  return [m](const Asked& a) -> Answer {
    if (a.metric == "drawing_rows") return synthetic(a) ? 1 : 0.5;
    if (a.metric != "missed") return {};
    if (a.option("quantile") == "one-sided") return a.number("delta") * m.one_sided;
    return a.number("delta") * (a.option("top") == "0" ? m.alone : synthetic(a) ? m.whole : m.on_head);
  };
}

const std::string promised = "A denominator of vAttention is off", published = "By the one-sided quantile";

const bool vattention_coverage = add({"vattention-coverage",
                                      missed({}),
                                      {{promised, holds, {1.2}},
                                       {"On normal queries and keys, with a base sample of 64", measured, {3}},
                                       {"On normal queries and keys, with a base sample of 512", measured, {3}},
                                       {"On a head of this project's", measured, {1.5}},
                                       {published, holds, {2}}}}) &&
                                 add({"vattention-coverage", missed({.on_head = 2.6}), {{promised, depends}}}) &&
                                 add({"vattention-coverage",
                                      missed({.whole = 1.3, .on_head = 2.6, .one_sided = 1}),
                                      {{promised, not_seen, {1.3}}, {published, refuted, {1}}}});

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
         {{drawn, not_seen}, {collided, not_seen, {2}}, {broadly, not_seen, {1}}}}) &&
    add({"magicpig-against-top-k", against_top_k({.oracle_elsewhere = 2}), {{drawn, depends}}});

// Errors that are so many times those of a uniform sample of as many keys, and of one method so many more times, and
// the bits that a model loses. All but samples and coresets read 8 keys.
struct Chosen {
  double over_uniform = 0.5, hashed = over_uniform, bits = 0.5;
};

// The denominator with keys that count twice and without, and errors with each departure of published code.
struct Slips {
  double twice = 1.2, once = 0.9, factor = 1.5;
};

const std::string twice = "HyperAttention's estimate of the denominator",
                  once = "vAttention's estimate of the denominator";

}  // namespace
}  // namespace attnbench::worlds
