// Worlds of recipes on coresets.
#include <cmath>

#include "tests/worlds/worlds.hpp"

namespace attnbench::worlds {
namespace {

using enum Ruling;

Numbers thinned(double by_kernel, double by_coins) {
  return of("relative_output_error", [=](const Asked& a) -> Answer {
    if (a.name() == "uniform") return 1;
    return std::pow(a.number("keep"), a.option("halving") == "coin" ? by_coins : by_kernel);
  });
}
const std::string few = "In two and four dimensions the error of attention to a coreset of kernel halving",
                  coins = "The error of attention to a uniform coreset falls",
                  many = "With what exponent the error of attention to a coreset of kernel halving",
                  factor = "By what factor a coreset of kernel halving errs less";
const bool coreset_slopes =
    add({"coreset-slopes",
         thinned(-1, -0.5),
         {{few, holds, {-1}}, {coins, holds, {-0.5}}, {many, measured, {-1}}, {factor, measured}}}) &&
    add({"coreset-slopes", thinned(-0.5, -0.75), {{few, refuted, {-0.5}}, {coins, refuted, {-0.75}}}}) &&
    // A bound of 1 / keep in two dimensions alone.
    add({"coreset-slopes",
         [](const Asked& a) -> Answer { return thinned(a.d() == 2 ? -1 : -0.5, -0.5)(a); },
         {{few, refuted}, {coins, holds, {-0.5}}}});

const std::string bends = "For queries and keys on a sphere WildCat's error falls by a larger factor",
                  exact = "WildCat is exact up to rounding", certified = "No weight of WildCat errs by more",
                  kept = "The residual that WildCat's algorithm keeps",
                  share = "How large a share of WildCat's rows has a denominator";
const bool wildcat_rank =
    add({"wildcat-rank",
         [](const Asked& a) -> Answer {
           const double r = a.number("r");
           if (a.metric == "relative_output_error") return a.option("spread") == "0" ? 1e-12 : std::exp(-r / 8);
           if (a.metric == "bound_ratio") return 0.5;
           if (a.metric == "fraction_nonpositive_normalisers") return 0.25;
           return 1 / r;  // both residuals
         },
         {{bends, holds},
          {exact, holds, {1e-12}},
          {certified, holds, {0.5}},
          {kept, holds, {0}},
          {share, measured, {0.25}}}}) &&
    add({"wildcat-rank",
         [](const Asked& a) -> Answer {
           const double r = a.number("r");
           if (a.metric == "relative_output_error") return a.option("spread") == "0" ? 1e-7 : 1 / std::log(r);
           if (a.metric == "bound_ratio") return r > 8 ? 2 : 0.5;
           return a.metric == "residual_share" ? 0.25 : 0.5;
         },
         {{bends, refuted}, {exact, refuted, {1e-7}}, {certified, refuted}, {kept, refuted, {0.25}}}});

}  // namespace
}  // namespace attnbench::worlds
