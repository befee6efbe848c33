// Worlds of recipes about methods that are, or tend to, another one, and about depth.
#include <cmath>

#include "tests/worlds/worlds.hpp"

namespace attnbench::worlds {
namespace {

using enum Ruling;

// As sampling noise falls: with the square root of the number of samples, or not at all.

Numbers maps(double off) {
  return [off](const Asked& a) -> Answer {
    if (a.metric == "largest_kernel_difference") {
      const double x = a.number("length");
      return 1 - (1 + x) * std::exp(-x) + off;
    }
    if (a.metric != "relative_difference") return {};
    if (a.input("signs:positive=0")) return 0;
    return a.name() == "uniform" ? 4 : 1;
  };
}
const std::string pointwise = "1 + elu(x) is exp(x) for x <= 0";
const bool elu_against_exp =
    add({"elu-against-exp",
         maps(0),
         {{pointwise, holds, {0}},
          {"How far linear attention with 1 + elu is from that with exponentials, with raw", measured, {0.25}},
          {"How far linear attention with 1 + elu is from that with exponentials, with q and k times",
           measured,
           {0.25}},
          {"How far linear attention with 1 + elu is from that with exponentials on raw", measured, {0.25}}}}) &&
    add({"elu-against-exp", maps(1e-9), {{pointwise, refuted, {1e-9}}}});

// Errors grow in proportion to the layer.
const bool error_propagation =
    add({"error-propagation",
         [](const Asked& a) -> Answer {
           if (a.metric == "output_error") return 1 + static_cast<double>(a.place);
           if (a.metric != "final_output_error") return {};
           if (a.name() == "uniform") return 6;
           return a.option("features") == "trig" ? 4 : a.option("projection") == "iid" ? 8 : 2;
         },
         {{"With an approximation of attention in every layer", holds, {0.25, 0.25, 0.25, 0.125, 0.125}},
          {"With trigonometric features in every causal layer", holds, {0.5}},
          {"By what factor the error of the hidden state after 4 layers of the trained", measured, {0.25}},
          {"By what factor the error of the hidden state after 4 layers of the untrained", measured, {0.25}},
          {"By what factor the error of the hidden state after 8 layers of random weights", measured, {0.25}},
          {"How large the error of the hidden state after 4 layers of the trained", measured, {3}},
          {"How large the error of the hidden state after 4 layers of the untrained", measured, {3}},
          {"How large the error of the hidden state after 8 layers of random weights", measured, {3}}}}) &&
    add({"error-propagation",
         of("output_error",
            [](const Asked& a) {
              const auto layer = static_cast<double>(a.place);
              return a.name() == "uniform" ? 4 - layer / 4 : 1 + layer;  // one method's error falls
            }),
         {{"With an approximation of attention in every layer", refuted}}});

// A residual that starts at a half and falls at that order.
double fallen(double order, size_t layer) { return std::pow(0.5, std::pow(order, static_cast<double>(layer))); }
double halved(size_t layer) { return std::pow(0.5, 1 + static_cast<double>(layer)); }
bool alone(const Asked& a) { return a.option("skip") == "false" && a.option("feed_forward") == "false"; }

const bool mixers_depth =
    add({"mixers-depth",
         [](const Asked& a) -> Answer {
           if (a.metric == "final_residual") return 0.125;
           if (a.metric == "residual_composite") return halved(a.place);
           return {};
         },
         {{"How much of the differences between tokens is left after 8 layers of random", measured, {0.25}},
          {"Through layers of random Synthesizer mixing alone", holds, {1}},
          {"How much of the differences between tokens is left after 8 layers of FNet", measured, {0.25}}}}) &&
    add({"mixers-depth",
         of("residual_composite", [](const Asked& a) { return fallen(3, a.place); }),
         {{"Through layers of random Synthesizer mixing alone", refuted, {3}}}});

const std::string doubly = "Without mask and positions, layers of softmax attention alone",
                  below_two = "With a causal mask or rotary positions";
const bool rank_collapse =
    add({"rank-collapse",
         [](const Asked& a) -> Answer {
           const bool sharp = a.cell.problem.logit_scale == 16;
           if (a.metric == "residual_composite") {
             const bool fast = sharp ? a.replicate % 2 == 0 : a.input("gaussian") && !a.causal();
             return fast ? fallen(3, a.place) : halved(a.place);
           }
           if (a.metric != "final_residual") return {};
           if (sharp) return a.replicate % 4 == 0 ? 0.1 : 0.4;
           return alone(a) ? 0.1 : 0.5;
         },
         {{doubly, holds, {3}},
          {below_two, holds, {1}},
          {"In what share of draws softmax attention alone", measured, {0.5, 0.25}},
          {"By what factor layers of softmax attention alone change the relative residual of the tokens: random layers "
           "without a mask",
           measured,
           {0.2}},
          {"By what factor layers of softmax attention alone change the relative residual of the tokens: random layers "
           "with logits times 16",
           measured,
           {0.8}},
          {"By what factor layers of softmax attention alone change the relative residual of the tokens: random layers "
           "with a causal mask",
           measured,
           {0.2}},
          {"By what factor layers of softmax attention alone change the relative residual of the tokens: the untrained",
           measured,
           {0.2, 0.2}},
          {"By what factor layers of softmax attention alone change the relative residual of the tokens: the trained",
           measured,
           {0.2, 0.2}},
          {"After layers of softmax attention with skip connections and MLPs", holds, {0.5}}}}) &&
    add({"rank-collapse",
         of("residual_composite", [](const Asked& a) { return fallen(a.causal() ? 4 : 1.5, a.place); }),
         {{doubly, not_seen}, {below_two, refuted}}});

}  // namespace
}  // namespace attnbench::worlds
