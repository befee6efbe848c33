// Worlds of the recipe about matched moments and quadrature nodes.
#include "tests/worlds/worlds.hpp"

namespace attnbench::worlds {
namespace {

using enum Ruling;

// Errors of each ensemble, closed forms and measured ones alike, and the bias of moment matching.
struct Errors {
  double bias = -0.01, factor = 1, matched = 0.5, nodes = 0.8, fastfood = 0.9;
};

Numbers errors(const Errors& e) {
  return [e](const Asked& a) -> Answer {
    const std::string projection = a.option("projection");
    if (a.metric == "softmax_bias") return e.bias;
    if (a.metric == "target_bias") return projection == "moment-matched" ? -0.9 : -0.3;
    if (a.metric == "relative_mse") return 2 * e.factor;
    if (a.metric == "relative_mse_theory") return 2;
    if (a.metric != "softmax_mse" && a.metric != "softmax_mse_theory") return {};
    if (projection == "moment-matched") return e.matched;
    if (projection == "gauss-hermite") return e.nodes;
    return projection == "fastfood" ? e.fastfood : 1;
  };
}

const std::string bias = "The kernel estimate from moment-matched vectors", forms = "Where draws can estimate them",
                  matched = "At equal m moment-matched vectors", nodes = "At equal m draws of Gauss-Hermite nodes",
                  fastfood = "Fastfood's error is at most", below = "How far below exp(q.k)";

const bool quadrature_and_moments =
    add({"quadrature-and-moments",
         errors({}),
         {{bias, refuted, {-0.01}},
          {forms, holds, {1}},
          {matched, holds, {0.5}},
          {nodes, holds, {0.8}},
          {fastfood, holds, {0.9}},
          {below, measured}}}) &&
    add({"quadrature-and-moments",
         errors({.bias = 0, .factor = 1.5, .matched = 2, .nodes = 1.3, .fastfood = 1.5}),
         {{bias, holds, {0}},
          {forms, refuted, {1.5}},
          {matched, refuted, {2}},
          {nodes, refuted, {1.3}},
          {fastfood, refuted, {1.5}}}});

}  // namespace
}  // namespace attnbench::worlds
