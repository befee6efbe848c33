// Worlds of recipes about methods that are, or tend to, another one, and about depth.
#include <cmath>

#include "tests/worlds/worlds.hpp"

namespace attnbench::worlds {
namespace {

using enum Ruling;

// As sampling noise falls: with the square root of the number of samples, or not at all.
const std::string widths = "Gaussians of width 1/8, 1/4 or 1/2 around the codes";
const bool code_width = add({"code-width",
                             of("distance", [](const Asked& a) { return 1 / std::sqrt(a.number("samples")); }),
                             {{widths, holds, {0.125}}}}) &&
                        add({"code-width", of("distance", [](const Asked&) { return 0.1; }), {{widths, refuted, {1}}}});

Numbers normalised(double as_written, double power) {
  return of("relative_difference", [=](const Asked& a) -> Answer {
    if (a.name() == "uniform") return 4 * std::pow(a.n(), power);
    return a.name() == "efficient" ? std::pow(a.n(), power) : as_written;
  });
}
const std::string written = "A softmax over the channels of a query",
                  rate = "On independent normal keys the difference";
const bool efficient_normalisation =
    add({"efficient-normalisation",
         normalised(1e-13, -0.5),
         {{written, holds, {1e-13}},
          {"How far Efficient attention is from linear attention with exponentials, both on raw", measured, {0.25}},
          {"How far Efficient attention is from linear attention with exponentials, both on q and k times",
           measured,
           {0.25}},
          {rate, holds, {-0.5}}}}) &&
    add({"efficient-normalisation", normalised(1e-11, -1), {{written, refuted, {1e-11}}, {rate, refuted, {-1}}}});

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

Numbers twice(double even, double complex) {
  return [=](const Asked& a) -> Answer {
    if (a.metric == "to_even_part") return even;
    if (a.metric == "complex_to_reversal") return complex;
    return {};
  };
}
const std::string even_part = "FNet's mixing applied twice", reversal = "The complex Fourier transform over tokens";
const bool fnet_twice =
    add({"fnet-twice", twice(1e-13, 2e-13), {{even_part, holds, {1e-13}}, {reversal, holds, {2e-13}}}}) &&
    add({"fnet-twice", twice(1e-11, 2e-11), {{even_part, refuted, {1e-11}}, {reversal, refuted, {2e-11}}}});

// Without its key's factor a Performer tends to the tilted softmax, with it to softmax.
Numbers tending(double power, double rounding) {
  return [=](const Asked& a) -> Answer {
    const bool simplified = a.option("features") == "simplified";
    if (a.metric == "relative_difference") return rounding;
    if (a.metric == "difference_to_tilted") return simplified ? std::pow(a.number("m"), power) : 1;
    if (a.metric == "difference_to_softmax") return simplified ? 1 : std::pow(a.number("m"), power);
    if (a.metric == "tilted_to_softmax") return 0.3;
    return {};
  };
}
const std::string of_queries = "Without the factor exp(-|q|^2/2) of queries",
                  of_keys =
                      "Where all keys have one norm, "
                      "the attention of positive",
                  tends = "Positive random features tend to";
const bool key_norms =
    add({"key-norms",
         tending(-0.5, 1e-13),
         {{of_queries, holds, {1e-13}},
          {of_keys, holds, {1e-13}},
          {"How far leaving out the factor exp(-|k|^2/2) of keys moves the attention of infinitely many positive "
           "features on heads",
           measured,
           {0.3}},
          {"How far leaving out the factor exp(-|k|^2/2) of keys moves the attention of infinitely many positive "
           "features on normal",
           measured,
           {0.3}},
          {tends, holds, {-0.5}}}}) &&
    add({"key-norms",
         tending(-1, 1e-11),
         {{of_queries, refuted, {1e-11}}, {of_keys, refuted, {1e-11}}, {tends, refuted, {-1}}}});

Numbers reading(double of_random, double of_dense, double any) {
  return [=](const Asked& a) -> Answer {
    const bool dense = a.option("kind").find("dense") != std::string::npos;
    if (a.name() != "synthesizer") return 1;
    if (a.metric == "change_by_queries") return dense ? of_dense : of_random;
    if (a.metric == "change_by_keys") return any;
    return {};
  };
}
const std::string random_reads = "The output of Random Synthesizer", dense_reads = "The output of Dense Synthesizer",
                  none_reads = "The outputs of four variants";
const bool synthesizer_input =
    add({"synthesizer-input",
         reading(0, 0.5, 0),
         {{random_reads, holds, {0}}, {dense_reads, holds, {-0.5}}, {none_reads, holds, {0}}}}) &&
    add({"synthesizer-input",
         reading(1e-9, 0.05, 1e-9),
         {{random_reads, refuted, {1e-9}}, {dense_reads, refuted, {-0.05}}, {none_reads, refuted, {1e-9}}}});

// ReLU has no gradient for negative entries, and elu + 1 has one for each.
Numbers zeros(double of_elu, double of_relu) {
  return [=](const Asked& a) -> Answer {
    if (a.metric == "negative_entries") return 0.5;
    if (a.metric != "zero_gradients") return {};
    return a.option("features") == "relu" ? of_relu : of_elu;
  };
}
const std::string who_has_none = "ReLU features set the gradients of all negative entries";
const bool zero_gradients =
    add({"zero-gradients",
         zeros(0, 0.75),
         {{who_has_none, holds}, {"How large a share of the entries of the gradients", measured, {0.75}}}}) &&
    add({"zero-gradients", zeros(0.01, 0.75), {{who_has_none, refuted, {0.01}}}}) &&
    add({"zero-gradients", zeros(0, 0.25), {{who_has_none, refuted, {0.25}}}}) &&
    add({"zero-gradients",
         [](const Asked& a) { return zeros(a.option("model") == "minilm" ? 0.01 : 0, 0.75)(a); },
         {{who_has_none, refuted, {0.01}}}});

// Gaussian codes tend to the tilted softmax: half as far from it as from softmax.
Numbers identical(double rounding, double narrow, double tilted) {
  return [=](const Asked& a) -> Answer {
    if (a.metric == "largest_difference") return a.option("sigma") == "0.0001" ? narrow : 0.5;
    if (a.metric == "difference_to_tilted") return tilted;
    if (a.metric == "difference_to_softmax") return 2;
    if (a.metric != "relative_difference") return {};
    return a.name() == "performer-vq" && a.option("projection") == "orthogonal" ? 0.2 : rounding;
  };
}
const std::string quantised = "exp(Q C^T) (Delta^T V), with its rows normalised", narrow = "At width sigma = 0.0001",
                  equal_norms = "Where all random vectors w have one norm", densities = "With 16384 Gaussian vectors w",
                  over_codes = "With 16384 Gaussian codes w";
const bool vq_identities = add({"vq-identities",
                                identical(1e-13, 1e-7, 1),
                                {{quantised, holds, {1e-13}},
                                 {narrow, holds, {1e-7}},
                                 {equal_norms, holds, {1e-13}},
                                 {"How far attention with key features exp(-|k - w|^2/2)", measured, {0.2}},
                                 {densities, holds, {0.5}},
                                 {over_codes, holds, {0.5}}}}) &&
                           add({"vq-identities",
                                identical(1e-11, 1e-5, 4),
                                {{quantised, refuted, {1e-11}},
                                 {narrow, refuted, {1e-5}},
                                 {equal_norms, refuted, {1e-11}},
                                 {densities, refuted, {2}},
                                 {over_codes, refuted, {2}}}});

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
          {"By what factor orthogonal vectors in place of independent", measured, {0.25}},
          {"How large the error of the hidden state after all layers", measured, {3}}}}) &&
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
                  below_three = "With a causal mask or rotary positions";
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
          {below_three, holds, {1}},
          {"In what share of draws softmax attention alone", measured, {0.5, 0.25}},
          {"By what factor layers of softmax attention alone change", measured, {0.2, 0.2, 0.8, 0.2, 0.2, 0.2, 0.2}},
          {"Through layers of softmax attention, tokens stay farther", holds, {0.2}}}}) &&
    add({"rank-collapse",
         of("residual_composite", [](const Asked& a) { return fallen(a.causal() ? 4 : 1.5, a.place); }),
         {{doubly, refuted}, {below_three, refuted}}});

}  // namespace
}  // namespace attnbench::worlds
