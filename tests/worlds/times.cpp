// Worlds of recipes about time and about counted work.
#include <cmath>

#include "tests/worlds/worlds.hpp"

namespace attnbench::worlds {
namespace {

using enum Ruling;

// Seconds that grow as a power of n, of each method its own.
using Power = std::function<double(const Asked&)>;
Answer grown(const Asked& a, double power) { return 1e-6 * std::pow(a.n(), power); }
Numbers seconds(Power power) {
  return of("seconds", [power = std::move(power)](const Asked& a) { return grown(a, power(a)); });
}
bool materialised(const Asked& a) { return a.option("form") == "materialised"; }
bool formed(const Asked& a) { return a.option("window") == "65536"; }

// Speedups that reach 1 at that n, in proportion to n.
Numbers overtaking(std::function<double(const Asked&)> at) {
  return of("speedup", [at = std::move(at)](const Asked& a) { return a.n() / at(a); });
}
// The n of equal FLOPs: as many as features of linear attention, and twice as many as those of Performer.
double equal_flops(const Asked& a) { return a.name() == "linear" ? a.d() : 2 * a.number("m"); }
const std::string overtake = "On one CPU thread, linear attention and Performer overtake",
                  rule_of_16d = "On one CPU thread, Performer with four times as many",
                  rule_of_18d = "On one CPU thread, too, Performer with four times";
const bool crossover =
    add({"crossover", overtaking([](const Asked& a) { return 1.5 * equal_flops(a); }), {{overtake, holds, {1.5}}}}) &&
    add({"crossover", overtaking([](const Asked& a) { return 2.5 * equal_flops(a); }), {{overtake, refuted, {2.5}}}}) &&
    add({"crossover", overtaking([](const Asked& a) { return 16 * a.d(); }), {{rule_of_16d, holds, {1}}}}) &&
    add({"crossover", overtaking([](const Asked& a) { return 8 * a.d(); }), {{rule_of_16d, refuted, {0.5}}}}) &&
    add({"crossover",
         overtaking([](const Asked& a) { return 0.25 * 18 * a.d() * std::log(a.d()); }),
         {{rule_of_18d, refuted, {0.25}}}});

// A step of recomputation takes 2000 times as long as one of linear attention, one over a cache twice as long.
const bool decode = add({"decode",
                         [](const Asked& a) -> Answer {
                           if (a.metric == "growth") return 1.1;
                           if (a.metric == "speedup") return a.n() / 500;
                           if (a.metric != "seconds" || a.name() != "softmax")
                             return a.metric == "seconds" ? Answer(1) : Answer();
                           return a.option("cache") == "false" ? 2000 : 2;
                         },
                         {{"On one CPU thread, a decoding step with a state of constant size", holds, {1.1}},
                          {"From which position on a decoding step", measured, {500}},
                          {"On one CPU thread, the linear attention of one head generates 3,072", holds, {2000}},
                          {"On one CPU thread, the linear attention of one head gains more",
                           holds,
                           {2000 / 13.2, 2000 / 191.8, 2 / 1.3, 2 / 1.6}},
                          {"How many times faster the linear attention of one head", measured, {2000, 2000, 2, 2}}}}) &&
                    add({"decode",
                         [](const Asked& a) -> Answer {
                           if (a.metric == "growth") return 1.2;
                           if (a.metric == "speedup") return a.n() / 16;  // before the first position
                           return seconds([](const Asked& b) { return b.option("cache") == "false" ? 2.0 : 1.5; })(a);
                         },
                         {{"On one CPU thread, a decoding step with a state of constant size", refuted, {1.2}},
                          {"From which position on a decoding step", measured, {128}},
                          {"On one CPU thread, the time of a softmax decoding step that computes", holds},
                          {"With which power of the position", measured, {1.5}}}});

const std::string first_product = "On one CPU thread, the time of linear attention that multiplies keys",
                  whole_matrix = "On one CPU thread, the time of linear attention that forms",
                  either_order = "Linear attention gives the same output whether";
const bool linear_reassociates =
    add({"linear-reassociates",
         [](const Asked& a) -> Answer {
           if (a.metric == "relative_output_difference") return 1e-13;
           return seconds([](const Asked& b) { return formed(b) ? 2 : 1; })(a);
         },
         {{either_order, holds, {1e-13}}, {first_product, holds}, {whole_matrix, holds}}}) &&
    add({"linear-reassociates",
         [](const Asked& a) -> Answer {
           if (a.metric == "relative_output_difference") return 1e-11;
           return seconds([](const Asked& b) { return formed(b) ? 1 : 2; })(a);
         },
         {{either_order, refuted, {1e-11}}, {first_product, refuted}, {whole_matrix, refuted}}});

// A larger k gains half as much, and a fourfold n four times as much.
const bool linformer_table3 =
    add({"linformer-table3",
         [](const Asked& a) -> Answer {
           if (a.metric == "speedup") return a.n() / a.number("r");
           if (a.metric == "peak_bytes") return materialised(a) ? 6 : 2;
           return {};
         },
         {{"On one CPU thread, Linformer's speed-up over softmax attention shrinks", holds, {0.5}},
          {"On one CPU thread, Linformer's speed-up over softmax attention grows", holds, {0.25}},
          {"By what factor Linformer's attention needs less memory", measured, {3}}}});

Power table1(double of_transformer, double of_others) {
  return [=](const Asked& a) { return a.name() == "softmax" ? of_transformer : of_others; };
}
const std::string of_transformer = "On one CPU thread, the time of softmax attention that keeps",
                  of_linear = "On one CPU thread, the time of Nystroemformer, Linformer", of_memory = "Memory grows as";
const bool nystromformer_table1 =
    add({"nystromformer-table1",
         [](const Asked& a) -> Answer {
           if (a.metric == "peak_bytes") return grown(a, table1(2, 1)(a));
           return seconds(table1(2, 1))(a);
         },
         {{of_transformer, holds}, {of_linear, holds}, {of_memory, holds}}}) &&
    add({"nystromformer-table1",
         [](const Asked& a) -> Answer {
           if (a.metric == "peak_bytes") return grown(a, table1(1, 1)(a));
           return seconds(table1(1, 2))(a);
         },
         {{of_transformer, refuted}, {of_linear, refuted}, {of_memory, refuted, {1}}}}) &&
    add({"nystromformer-table1",
         of("seconds",
            [](const Asked& a) -> Answer { return a.name() == "longformer"  ? 6
                                                  : a.name() == "linformer" ? 3
                                                                            : 2; }),
         {{"On one CPU thread at n = 2048, Nystroemformer with 32 landmarks", holds, {3}},
          {"On one CPU thread at n = 2048, Linformer takes the time", holds, {1.5}}}});

const bool performer_fig3 = add({"performer-fig3",
                                 [](const Asked& a) -> Answer {
                                   if (a.metric == "layer_flops")
                                     return a.name() == "performer" ? 6 : a.name() == "identity" ? 5 : 9;
                                   return seconds([](const Asked& b) { return b.name() == "softmax" ? 2 : 1; })(a);
                                 },
                                 {{"On one CPU thread, forward and backward of Performer's causal", holds},
                                  {"On one CPU thread, forward and backward of exact causal", holds},
                                  {"On one CPU thread at n = 2048, forward and backward", holds, {1.0 / 2048}},
                                  {"How many times as many FLOPs a layer", measured, {1.2}}}}) &&
                            add({"performer-fig3",
                                 seconds([](const Asked& a) { return a.name() == "softmax" ? 1 : 2; }),
                                 {{"On one CPU thread, forward and backward of Performer's causal", refuted},
                                  {"On one CPU thread, forward and backward of exact causal", refuted},
                                  {"On one CPU thread at n = 2048, forward and backward", refuted, {2048}}}});

const bool polynomial_crossover = add({"polynomial-crossover",
                                       [](const Asked& a) -> Answer {
                                         if (a.metric == "attention_flops") return a.name() == "polynomial" ? 1 : 2;
                                         return overtaking([](const Asked& b) { return b.d() * b.d() / 2; })(a);
                                       },
                                       {{"From n = D^2 on at the latest", holds},
                                        {"On one CPU thread, attention with the polynomial", holds, {0.5}}}}) &&
                                  add({"polynomial-crossover",
                                       [](const Asked& a) -> Answer {
                                         if (a.metric == "attention_flops") return a.name() == "polynomial" ? 3 : 2;
                                         return overtaking([](const Asked& b) { return 1.5 * b.d() * b.d(); })(a);
                                       },
                                       {{"From n = D^2 on at the latest", refuted},
                                        {"On one CPU thread, attention with the polynomial", refuted, {1.5}}}});

Numbers fast_and_good(double speedup, double error) {
  return [=](const Asked& a) -> Answer {
    if (a.metric == "speedup") return speedup;
    if (a.metric == "relative_output_error") return a.name() == "uniform" ? 2 : 2 * error;
    return {};
  };
}
const std::string faster_and_better = "On one CPU thread, some approximation, at an eighth";
const bool quality_speed_memory =
    add({"quality-speed-memory", fast_and_good(2, 0.25), {{faster_and_better, holds, {0.5}}}}) &&
    add({"quality-speed-memory", fast_and_good(4, 0.5), {{faster_and_better, holds, {0.5}}}}) &&
    add({"quality-speed-memory", fast_and_good(0.5, 0.25), {{faster_and_better, refuted, {2}}}}) &&
    add({"quality-speed-memory", fast_and_good(2, 3), {{faster_and_better, refuted, {3}}}});

double published_growth(const Asked& a) {
  if (a.name() == "softmax") return 2;
  return a.name() == "strided" || a.name() == "sparse-fixed" || a.name() == "routing" ? 1.5 : 1;
}
const bool time =
    add({"time",
         seconds(published_growth),
         {{"On one CPU thread, the time of exact softmax attention grows as the square", holds},
          {"On one CPU thread, the time of attention by features", holds},
          {"On one CPU thread, Reformer's time grows no faster", holds},
          {"On one CPU thread, the time of the Sparse Transformer's", holds}}}) &&
    add({"time",
         seconds([](const Asked& a) { return 3 - published_growth(a) + (a.name() == "softmax" ? 0 : 0.3); }),
         {{"On one CPU thread, the time of exact softmax attention grows as the square", refuted},
          {"On one CPU thread, the time of attention by features", refuted},
          {"On one CPU thread, Reformer's time grows no faster", refuted},
          {"On one CPU thread, the time of the Sparse Transformer's", refuted}}}) &&
    add({"time",
         of("seconds", [](const Asked& a) { return a.name() == "reformer" ? 6 : 2; }),
         {{"On one CPU thread, causal attention by Performer is at least twice", holds, {3}}}});

const std::string linear_step = "On one CPU thread, the time of a training step of causal linear";
const bool training_step = add({"training-step",
                                [](const Asked& a) -> Answer {
                                  if (a.metric == "backward_over_forward") return 2.5;
                                  if (a.metric == "gradient_error") return a.option("backward") == "subtract" ? 2 : 1;
                                  return seconds([](const Asked&) { return 1; })(a);
                                },
                                {{linear_step, holds},
                                 {"By what factor the backward pass of causal linear", measured, {2.5}},
                                 {"Float gradients of causal linear attention err less", holds, {0.5}}}}) &&
                           add({"training-step", seconds([](const Asked&) { return 2; }), {{linear_step, refuted}}});

// Speedups of 6 at 16 tokens a code and of 24 at 64: twice what was published, and growing with n.
const bool transformer_vq_speed =
    add({"transformer-vq-speed",
         [](const Asked& a) -> Answer {
           if (a.metric == "speedup") return a.n() == 1024 ? 6 : a.n() == 4096 ? 24 : a.n() / 64;
           return seconds([](const Asked&) { return 1; })(a);
         },
         {{"On one CPU thread, the time of causal attention to a codebook", holds},
          {"On one CPU thread, Transformer-VQ's attention gains more", holds, {1.0 / 12}},
          {"On one CPU thread, causal attention to 64 codes is over 3 times", holds, {2}}}}) &&
    add({"transformer-vq-speed",
         seconds([](const Asked&) { return 2; }),
         {{"On one CPU thread, the time of causal attention to a codebook", refuted}}});

const std::string operations = "Linear attention cut to a band of fixed width takes operations",
                  cut_after = "On one CPU thread, linear attention that is cut to a band after",
                  on_band = "On one CPU thread, linear attention that is evaluated on a band";
const bool truncation_cost =
    add({"truncation-cost",
         [](const Asked& a) -> Answer {
           const auto power = [](const Asked& b) { return formed(b) ? 2.0 : 1.0; };
           if (a.metric == "attention_flops") return grown(a, power(a));
           return seconds(power)(a);
         },
         {{operations, holds, {1}}, {cut_after, holds}, {on_band, holds}}}) &&
    add({"truncation-cost",
         [](const Asked& a) -> Answer {
           if (a.metric == "attention_flops") return grown(a, 1.5);
           return seconds([](const Asked& b) { return formed(b) ? 1 : 2; })(a);
         },
         {{operations, refuted, {std::exp2(-0.5), std::exp2(0.5)}}, {cut_after, refuted}, {on_band, refuted}}});

// Attention costs as much as the rest of its layer where the statement says so, or that much more.
Numbers counted(double more) {
  return [more](const Asked& a) -> Answer {
    if (a.metric == "with_projections_over_feed_forward" || a.metric == "over_rest") return 1 + more;
    if (a.metric == "attention_flops") return a.name() == "linear" ? 2 * (1 + more) : 2;
    return {};
  };
}
const std::string shares = "By FLOPs, softmax attention with its projections",
                  wide = "Linear attention with heads four";
const bool layer_flops = add({"layer-flops", counted(0), {{shares, holds, {0}}, {wide, holds, {0}}}}) &&
                         add({"layer-flops", counted(1.0 / 1024), {{shares, refuted, {1.0 / 1024}}, {wide, holds}}}) &&
                         add({"layer-flops", counted(1.0 / 64), {{wide, refuted}}});

Numbers training(double power, double bytes, double numerator, double whole) {
  return [=](const Asked& a) -> Answer {
    if (a.metric.starts_with("numerator_error_")) return numerator;
    if (a.metric.starts_with("whole_error_")) return whole;
    if (a.metric == "published_error_values") return 1e-8;
    if (a.metric.starts_with("published_error_")) return 0.1;
    if (a.metric == "peak_bytes") return 1e6 + bytes * a.n();
    return seconds([power](const Asked&) { return power; })(a);
  };
}
const std::string of_numerators = "Equations 13 to 15 are the gradients of the numerators",
                  with_denominators = "With the part of the denominators added",
                  taken_for_whole = "Taken for the gradients of the whole attention",
                  linear_training = "On one CPU thread, a training step of causal linear attention",
                  floats_a_token = "A training step of causal linear attention needs at most";
const bool gradients =
    add({"gradients",
         training(1, 200, 1e-7, 1e-7),
         {{of_numerators, holds, {1e-7}},
          {taken_for_whole, depends, {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1e-8, 1e-8, 1e-8, 1e-8}},
          {with_denominators, holds, {1e-7}},
          {linear_training, holds},
          {floats_a_token, holds, {200}}}}) &&
    add({"gradients",
         training(2, 300, 1e-5, 1e-5),
         {{of_numerators, refuted, {1e-5}},
          {with_denominators, refuted, {1e-5}},
          {linear_training, refuted},
          {floats_a_token, refuted, {300}}}});

}  // namespace
}  // namespace attnbench::worlds
