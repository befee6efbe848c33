// Worlds of recipes about the estimates of kernels.
#include <cmath>

#include "tests/worlds/worlds.hpp"

namespace attnbench::worlds {
namespace {

using enum Ruling;

bool orthogonal(const Asked& a) { return a.option("projection") == "orthogonal"; }
bool trigonometric(const Asked& a) { return a.option("features") == "trig"; }
// Maps without a closed form are compared by measured errors.
bool of_softmax(const Asked& a) { return a.metric == "softmax_mse_theory" || a.metric == "softmax_mse"; }

// Trigonometric features err least at small angles and hyperbolic ones at large angles; all others twice as much.
const bool estimator_zoo =
    add({"estimator-zoo",
         [](const Asked& a) -> Answer {
           if (!of_softmax(a)) return {};
           const bool small = a.number("angle") < 1.5;
           if (trigonometric(a) && orthogonal(a)) return small ? 1 : 2;
           if (a.option("features") == "hyperbolic") return small ? 2 : 1;
           return 2;
         },
         {{"At equal numbers of features no compared", holds}, {"At equal work no compared", holds}}}) &&
    add({"estimator-zoo",
         [](const Asked& a) -> Answer {
           if (!of_softmax(a)) return {};
           if (trigonometric(a) && orthogonal(a)) return 1;
           return a.option("features") == "hyperbolic" ? 2 : 3;
         },
         {{"At equal numbers of features no compared", depends}, {"At equal work no compared", depends}}});

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
