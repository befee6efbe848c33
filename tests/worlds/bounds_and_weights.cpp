// Worlds of recipes about bounds of logits, weights of means, estimated logits, queries and capped logits.
#include <cmath>

#include "tests/worlds/worlds.hpp"

namespace attnbench::worlds {
namespace {

using enum Ruling;

std::string model_of(const Asked& a) { return a.option("model"); }

// Every head but those of MiniLM reads its largest logit; bounds prove it for none. Bounds are above logits by an
// eighth of a standard deviation for each key of a page.
const bool quest_bound = add({"quest-bound",
                              [](const Asked& a) -> Answer {
                                if (a.metric == "top_read") return model_of(a) == "minilm" ? 0.5 : 0.95;
                                if (a.metric == "certified") return 0.25;
                                if (a.metric == "slack") return a.number("page");
                                if (a.metric == "spread") return 8;
                                return {};
                              },
                              {{"Rows that read a quarter of their keys", depends},
                               {"The bounds prove in at least half", refuted, {0.25}},
                               {"How far Quest's bounds are above", measured}}}) &&
                         add({"quest-bound",
                              [](const Asked& a) -> Answer {
                                if (a.metric == "top_read") return a.option("page") == "16" ? 0.95 : 0.5;
                                if (a.metric == "certified") return a.option("page") == "16" ? 0.75 : 0.1;
                                return {};
                              },
                              {{"Rows that read a quarter of their keys", holds, {0.95}},
                               {"The bounds prove in at least half", holds, {0.75}}}});

// Clusters keep half of the weight and blocks a quarter; no ratio is above 1.
const bool jensen_sign = add({"jensen-sign",
                              [](const Asked& a) -> Answer {
                                if (a.metric == "largest_ratio") return 1;
                                if (a.metric == "kept_weight") return a.name() == "mra" ? 0.25 : 0.5;
                                return {};
                              },
                              {{"The weight of a mean is never above", holds},
                               {"Clusters of keys keep more of the weight", holds, {2}},
                               {"How much of the weight is left", measured}}}) &&
                         add({"jensen-sign",
                              [](const Asked& a) -> Answer {
                                if (a.metric == "largest_ratio")  // one block of one draw is a millionth too large
                                  return a.name() == "mra" && a.replicate == 1 ? 1.000001 : 0.5;
                                if (a.metric == "kept_weight") return a.name() == "mra" ? 0.5 : 0.25;
                                return {};
                              },
                              {{"The weight of a mean is never above", refuted, {1.000001}},
                               {"Clusters of keys keep more of the weight", refuted, {0.5}}}});

// Logits are right, and weights are too large by what the number of signs says.
const bool sketches = add({"qjl-logits-and-weights",
                           [](const Asked& a) -> Answer {
                             const bool rotated = a.option("rot") == "true";
                             const double swing = (a.replicate % 2 == 0 ? 1 : -1) * 1e-3;
                             if (a.metric == "logit_slope") return (rotated ? 1.0039 : 1) + swing;
                             if (a.metric == "weight_ratio") return a.name() == "qjl" ? 1 + 64 / a.number("m") : 1.5;
                             return {};
                           },
                           {{"Logits that QJL and TurboQuant estimate", holds},
                            {"Weights that follow from QJL's", holds, {2}},
                            {"How much too large weights", measured},
                            {"With orthogonal vectors", holds, {1.0039}}}}) &&
                      add({"qjl-logits-and-weights",
                           [](const Asked& a) -> Answer {
                             const double swing = (a.replicate % 2 == 0 ? 1 : -1) * 1e-3;
                             if (a.metric == "logit_slope") return (a.name() == "turboquant" ? 0.97 : 1) + swing;
                             if (a.metric == "weight_ratio") return 0.9;
                             return {};
                           },
                           {{"Logits that QJL and TurboQuant estimate", refuted},
                            {"Weights that follow from QJL's", refuted, {0.9}},
                            {"With orthogonal vectors", refuted, {1}}}});

// Queries of Whisper have heavy tails, and its keys come in another order than the first half says.
const bool queries = add({"expected-attention",
                          [](const Asked& a) -> Answer {
                            const bool whisper = model_of(a) == "whisper-encoder";
                            if (a.metric == "kurtosis") return whisper ? 1.5 : 0.9;
                            if (a.metric == "order") return whisper ? 0.5 : 0.95;
                            if (a.metric == "order_of_mean") return 0.75;
                            return {};
                          },
                          {{"The tails of queries", depends},
                           {"Mean and covariance of earlier queries", depends},
                           {"How much the mean of earlier queries alone", measured, {0.75}}}});

// A cap of c errs by 1 / c^2 and costs 1 / c^2 bits: below 0.01 above a cap of 10.
const bool logit_cap =
    add({"logit-cap",
         [](const Asked& a) -> Answer {
           if (a.name() != "capped") return {};
           return std::pow(a.number("cap"), -2);
         },
         {{"A cap of 50 on the logits", holds, {0.0004}}, {"A cap on the logits costs", depends}}}) &&
    add({"logit-cap",
         [](const Asked& a) -> Answer { return a.name() == "capped" ? Answer(0.02) : Answer(); },
         {{"A cap of 50 on the logits", refuted, {0.02}}, {"A cap on the logits costs", refuted}}});

}  // namespace
}  // namespace attnbench::worlds
