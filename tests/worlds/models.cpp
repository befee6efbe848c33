// Worlds of recipes about the loss of a model whose attention is replaced.
#include "tests/worlds/worlds.hpp"

namespace attnbench::worlds {
namespace {

using enum Ruling;

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
                  higher_rank = "With each of local:window=16, top-k:k=4, linear, uniform, the byte-level model loses";
const bool what_predicts_loss =
    add({"what-predicts-loss",
         predicted(1),
         {{output_error, holds, {1}},
          {higher_rank, holds, {1}},
          {"How strongly errors of a replaced head are correlated", measured},
          {"How strongly properties of a head's exact attention are correlated", measured}}}) &&
    add({"what-predicts-loss", predicted(-1), {{output_error, refuted, {-1}}, {higher_rank, refuted, {-1}}}});

}  // namespace
}  // namespace attnbench::worlds
