// Worlds of the recipe about heads of pretrained models.
#include "tests/worlds/worlds.hpp"

namespace attnbench::worlds {
namespace {

using enum Ruling;

// The mean of V errs by 2 everywhere. Trigonometric features err by `minilm` times that on MiniLM and by half of it on
// Whisper; every other method by four times. The effective rank is a quarter of n.
Numbers best_is_trig(double minilm) {
  return [minilm](const Asked& a) -> Answer {
    if (a.metric == "effective_rank") return a.n() / 4;
    if (a.metric != "relative_output_error") return {};
    if (a.name() == "uniform") return 2;
    if (a.option("features") != "trig" || a.option("transform") != "full") return 8;
    return 2 * (a.option("model") == "minilm" ? minilm : 0.5);
  };
}
const std::string errs_less = "On captured heads of MiniLM and of Whisper, some random-feature",
                  factor = "By what factor the best random-feature estimator errs",
                  rank = "How large a share of n the effective rank of softmax attention is";
const bool pretrained_heads =
    add({"pretrained-heads",
         best_is_trig(0.5),
         {{errs_less, holds, {0.5}}, {factor, measured, {0.5}}, {rank, measured, {0.25}}}}) &&
    add({"pretrained-heads", best_is_trig(1.5), {{errs_less, depends}}}) &&
    add({"pretrained-heads",
         of("relative_output_error", [](const Asked& a) { return a.name() == "uniform" ? 2 : 3; }),
         {{errs_less, refuted, {1.5}}, {factor, measured, {1.5}}}});

}  // namespace
}  // namespace attnbench::worlds
