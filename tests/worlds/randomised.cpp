// Worlds of recipes on random features from the inputs' own laws.
#include "tests/worlds/worlds.hpp"

namespace attnbench::worlds {
namespace {

using enum Ruling;

// The errors of the methods, and of LARA on inputs other than a model's head.
struct Errors {
  double performer = 1, lara = 0.8, eva = 0.5, randomised = 0.2, lara_elsewhere = lara;
};

Numbers errors(const Errors& e) {
  return [e](const Asked& a) -> Answer {
    if (a.metric != "relative_output_error") return {};
    const std::string name = a.name();
    if (name == "performer") return e.performer;
    if (name == "eva") return e.eva;
    if (name == "randomised") return e.randomised;
    return a.input("gaussian") ? e.lara_elsewhere : e.lara;
  };
}

const std::string lara = "LARA errs less than Performer", eva = "EVA errs less than LARA",
                  randomised = "Randomised attention errs less than LARA",
                  over_eva = "Randomised attention errs less than EVA";

const bool ra_lara_eva =
    add({"ra-lara-eva",
         errors({}),
         {{lara, holds, {0.8}}, {eva, holds, {0.625}}, {randomised, holds, {0.25}}, {over_eva, holds, {0.4}}}}) &&
    add({"ra-lara-eva",
         errors({.performer = 0.4, .eva = 1.6, .randomised = 3.2}),
         {{lara, refuted, {2}}, {eva, refuted, {2}}, {randomised, refuted, {4}}, {over_eva, refuted, {2}}}}) &&
    add({"ra-lara-eva", errors({.lara_elsewhere = 1.2}), {{lara, depends}, {eva, holds}, {randomised, holds}}});

}  // namespace
}  // namespace attnbench::worlds
