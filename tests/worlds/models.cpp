// Worlds of recipes about the loss of a model whose attention is replaced.
#include "tests/worlds/worlds.hpp"

namespace attnbench::worlds {
namespace {

using enum Ruling;

// A method that loses 1 bit in the first layer and `last` in the last one; other layers lose 0.25, and all together 5.
Numbers by_layer(double last) {
  return of("excess_bits", [last](const Asked& a) -> Answer {
    const std::string replaced = a.option("replaced");
    return replaced == "all" ? 5 : replaced == "0" ? 1 : replaced == "3" ? last : 0.25;
  });
}
const std::string later_layers = "Replacing attention in the last layer";
const bool which_layers_matter =
    add({"which-layers-matter",
         by_layer(0.5),
         {{later_layers, holds, {-0.5}},
          {"By how many bits per byte the loss of a method in all layers", measured, {3}}}}) &&
    add({"which-layers-matter", by_layer(3), {{later_layers, refuted, {2}}}});

// The best kernel loses `kernel` bits and the best window 0.5; on even texts it is one method of each kind, on odd ones
// another. All other methods but one lose 10 bits.
Numbers best_of_kinds(double kernel) {
  return of("excess_bits", [kernel](const Asked& a) -> Answer {
    const bool even = a.replicate % 2 == 0;
    if (a.name() == "performer") return (a.option("features") == "trig") == even ? kernel : 8.0;
    if (a.name() == (even ? "local" : "strided")) return 0.5;
    return a.name() == "bigbird" ? 0.25 : 10.0;
  });
}
const std::string kernels = "In place of attention in this project's trained byte-level model, and at equal FLOPs";
const bool score_speed =
    add({"score-speed", best_of_kinds(2), {{kernels, refuted, {1.5}}}}) &&
    add({"score-speed", best_of_kinds(0.375), {{kernels, holds, {-0.125}}}}) &&
    add({"score-speed",
         of("excess_bits", [](const Asked&) { return 0.5; }),
         {{"How many bits per byte this project's trained byte-level model loses", measured, {0.5}}}});

// The place of a head from 0, in the two ways in which cells name it.
double place_of(const Asked& a) {
  const std::string replaced = a.option("replaced");
  if (!replaced.empty()) return 3 * std::stod(replaced.substr(0, 1)) + std::stod(replaced.substr(2));
  return 3 * a.number("layer") + a.number("head");
}

// The bits that a head loses rise with its place and with the method. Errors rise with both, and the effective rank
// with the place alone, or both fall.
Numbers predicted(double sign) {
  return [sign](const Asked& a) -> Answer {
    const double method = a.name() == "uniform" ? 0.4 : a.name() == "linear" ? 0.3 : a.name() == "local" ? 0.2 : 0.1;
    if (a.metric == "excess_bits") return 1 + place_of(a) + method;
    if (a.metric == "relative_output_error") return 100 + sign * (place_of(a) + method);
    if (a.metric == "effective_rank") return 100 + sign * place_of(a);
    return {};
  };
}
const std::string output_error = "The larger the error of a replaced head's output",
                  higher_rank = "Of each method, the heads whose exact attention has the higher effective rank";
const bool what_predicts_loss =
    add({"what-predicts-loss",
         predicted(1),
         {{output_error, holds, {1}},
          {higher_rank, holds, {1}},
          {"How strongly each measure of a head is correlated", measured}}}) &&
    add({"what-predicts-loss", predicted(-1), {{output_error, refuted, {-1}}, {higher_rank, refuted, {-1}}}});

}  // namespace
}  // namespace attnbench::worlds
