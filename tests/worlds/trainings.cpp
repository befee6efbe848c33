// Worlds of recipes about trained models.
#include "tests/worlds/worlds.hpp"

namespace attnbench::worlds {
namespace {

using enum Ruling;

// Bits after training, by method: `by_method` plus a number of each seed and text, which differences cancel.
Numbers trained(std::function<double(const Asked&)> by_method) {
  return [by_method = std::move(by_method)](const Asked& a) -> Answer {
    if (a.metric == "bits_by_text") return by_method(a) + 0.01 * static_cast<double>(a.place);
    if (a.metric == "first_bits_by_text") return 2 + by_method(a) + 0.01 * static_cast<double>(a.place);
    return {};
  };
}

// Linear attention is `worse` bits above softmax, Reformer 0.5, and a window stays at `blind`.
Numbers copied(double worse, double blind) {
  return [=](const Asked& a) -> Answer {
    if (a.metric != "bits_by_text") return {};
    return a.name() == "local" ? blind : a.name() == "reformer" ? 0.5 : a.method("linear") ? worse : 0.0;
  };
}
const std::string as_well = "After 2000 steps a small model with linear attention (1 + elu) copies a word as well",
                  better = "After 2000 steps a small model with linear attention (1 + elu) copies a word better",
                  blind = "A model whose attention cannot reach the first word";
const bool copy_task = add({"copy-task",
                            copied(0.01, 3.3219),
                            {{as_well, holds, {0.01}}, {better, holds, {-0.49}}, {blind, holds, {3.3219}}}}) &&
                       add({"copy-task",
                            copied(0.75, 3.25),
                            {{as_well, refuted, {0.75}}, {better, refuted, {0.25}}, {blind, refuted, {3.25}}}}) &&
                       // 1 % of log2 10 is the bound, not 1 % of a bit or of softmax's loss
                       add({"copy-task", copied(0.03, 3.3219), {{as_well, holds, {0.03}}}}) &&
                       add({"copy-task", copied(0.04, 3.3219), {{as_well, refuted, {0.04}}}});

// Softmax needs `exact` bits, 1 + elu `elu`, the polynomial kernel `squares`, and others 1.
Numbers recalled(double exact, double elu, double squares) {
  return [=](const Asked& a) -> Answer {
    if (a.metric != "bits_by_text") return {};
    if (a.name() == "softmax") return exact;
    return a.method("linear") ? elu : a.name() == "polynomial" ? squares : 1.0;
  };
}
const std::string recalls = "After 1500 steps a small model with softmax recalls",
                  fixed_state = "After 1500 steps a small model with linear attention (1 + elu) recalls worse",
                  larger_state = "After 1500 steps a small model with linear attention recalls better if its state",
                  others_recall = "How many bits more a model needs to recall a value";
const bool associative_recall =
    add({"associative-recall",
         recalled(0.03, 1.78, 0.28),
         {{recalls, holds, {0.03}},
          {fixed_state, holds, {1.75}},
          {larger_state, holds, {-1.5}},
          {others_recall, measured, {0.97}}}}) &&
    add({"associative-recall",
         recalled(0.05, 0.06, 0.56),
         {{recalls, refuted, {0.05}}, {fixed_state, refuted, {0.01}}, {larger_state, refuted, {0.5}}}});

// Softmax needs 1 bit, exponentials 1 + e, 1 + elu 2, ReLU 3, the band 2 + b, polynomials 1.5, Synthesizers 1.25, and
// all others 4. In the bidirectional model all but softmax need `more` bits more.
Numbers learnt(double e, double b, double more) {
  return trained([=](const Asked& a) {
    const double bits = a.name() == "softmax"            ? 1
                        : a.name() == "truncated"        ? 2 + b
                        : a.name() == "polynomial"       ? 1.5
                        : a.name() == "synthesizer"      ? 1.25
                        : a.name() != "linear"           ? 4
                        : a.option("features") == "exp"  ? 1 + e
                        : a.option("features") == "relu" ? 3
                                                         : 2;
    // Masked bytes are half a bit easier for all: only losses to softmax may count.
    return a.causal() ? bits : bits - 0.5 + (a.name() == "softmax" ? 0 : more);
  });
}
const std::string exponentials =
                      "After 600 steps a small model trained with linear attention has fewer bits if its features",
                  band =
                      "After 600 steps a small model trained with linear attention has fewer bits if the matrix is cut",
                  causal = "After 600 steps linear attention loses fewer bits to softmax",
                  polynomial = "How many bits more a model needs that is trained with the polynomial kernel",
                  synthesizer = "How many bits more a model needs that is trained with a Synthesizer",
                  others = "How many bits more a bidirectional model needs";
const bool learning_curves = add({"learning-curves",
                                  learnt(0.5, -0.75, 0.125),
                                  {{exponentials, holds},
                                   {band, holds, {-0.75}},
                                   {causal, holds, {-0.125}},
                                   {polynomial, measured},
                                   {synthesizer, measured},
                                   {others, measured, {3.125}}}}) &&
                             add({"learning-curves", learnt(0.5, 0.75, 0), {{synthesizer, measured, {0.25}}}}) &&
                             // exponentials between the two other maps
                             add({"learning-curves",
                                  learnt(1.5, 0.75, -0.125),
                                  {{exponentials, depends}, {band, refuted, {0.75}}, {causal, refuted, {0.125}}}}) &&
                             add({"learning-curves", learnt(2.5, 0.75, 0), {{exponentials, refuted}}});

// Bits after training: softmax 1, Performer 1.5 or, redrawn, 1.5 + r, trigonometric 1.5 + t, linear 1.5 + l,
// others 3.
Numbers recovered(double r, double t, double l) {
  return trained([=](const Asked& a) {
    if (a.name() == "softmax") return 1.0;
    if (a.name() == "linear") return 1.5 + l;
    if (a.name() != "performer") return 3.0;
    return 1.5 + (a.option("features") == "trig" ? t : a.option("redraw") == "1" ? r : 0);
  });
}
const std::string values = "How many bits per byte a trained model loses with another attention",
                  redrawing = "Within 200 steps a trained model recovers further with Performer's positive features if",
                  signs = "Within 200 steps a trained model recovers further with Performer's positive features than",
                  approximates = "Within 200 steps a trained model recovers further with Performer, which approximates";
const bool transfer_and_recovery =
    add({"transfer-and-recovery",
         recovered(-0.25, 0.5, 1),
         {{values, measured}, {redrawing, holds, {-0.25}}, {signs, holds, {-0.75}}, {approximates, holds, {-1.25}}}}) &&
    add({"transfer-and-recovery",
         recovered(0.25, 0, 0),
         {{redrawing, refuted, {0.25}}, {signs, refuted, {0.25}}, {approximates, refuted, {0.25}}}});

}  // namespace
}  // namespace attnbench::worlds
