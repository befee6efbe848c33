// Worlds of recipes about selected, evicted and quantised keys.
#include <map>

#include "tests/worlds/worlds.hpp"

namespace attnbench::worlds {
namespace {

using enum Ruling;

bool minilm(const Asked& a) { return a.option("model") == "minilm"; }

// Bits that are lost with equal budgets, and with divided ones.
Answer bits_of(const Asked& a, double equal, double divided) {
  return a.option("allocation") == "uniform" ? equal : divided;
}

// One order of the scores on all heads and at all lengths, and its reverse on those of MiniLM. Methods that choose for
// each row keep more than all scores, or less, and divided budgets lose fewer bits, or more.
const bool who_keeps_most_mass =
    add({"who-keeps-most-mass",
         [](const Asked& a) -> Answer {
           static const std::map<std::string, double> kept{{"accumulated", 0.95}, {"expected", 0.9},  {"keydiff", 0.85},
                                                           {"knorm", 0.8},        {"leverage", 0.75}, {"snapkv", 0.7},
                                                           {"tova", 0.65},        {"random", 0.1}};
           if (a.metric == "excess_bits") return bits_of(a, 0.5, 0.25);
           if (a.metric != "mass_recall") return {};
           if (a.name() != "evict") return 1.2;
           const double value = kept.at(a.option("score"));
           return minilm(a) && a.option("score") != "random" ? 1.6 - value : value;
         },
         {{"A score of keys keeps more of the softmax weight", holds},
          {"How far one head's order of the scores", measured, {1, 1, 1, -1, -1, 1, 1}},
          {"How far the scores of keys are in the same order", measured, {1}},
          {"How many bits per byte the byte-level model loses when its cache keeps 32 of 448 keys of a prompt by "
           "scores that read queries",
           measured,
           {0.5}},
          {"A budget that the heads of a layer divide", holds, std::vector<double>(4, -0.25)},
          {"A budget that falls from layer to layer", holds, std::vector<double>(4, -0.25)},
          {"Methods that choose keys for each row", holds}}}) &&
    add({"who-keeps-most-mass",
         [](const Asked& a) -> Answer {
           if (a.metric == "excess_bits") return bits_of(a, 0.5, 0.75);
           if (a.metric != "mass_recall") return {};
           if (a.name() != "evict") return 0.3;
           return a.option("score") == "random" ? 0.5 : 0.4;
         },
         {{"A score of keys keeps more of the softmax weight", refuted, {0.8}},
          {"A budget that the heads of a layer divide", not_seen, std::vector<double>(4, 0.25)},
          {"A budget that falls from layer to layer", not_seen, std::vector<double>(4, 0.25)},
          {"Methods that choose keys for each row", refuted, {0.75}}}});

// The weight that a selection drops is its error, and one less it on the heads of Whisper.
const bool dropped_mass_predicts_error =
    add({"dropped-mass-predicts-error",
         [](const Asked& a) -> Answer {
           static const std::map<std::string, double> dropped{{"top-k", 0.1}, {"local", 0.2}, {"sink-window", 0.3},
                                                              {"quest", 0.4}, {"moba", 0.5},  {"loki", 0.6}};
           const bool random = a.option("score") == "random";
           const double weight = a.name() == "evict" ? (random ? 0.8 : 0.7) : dropped.at(a.name());
           if (a.metric == "dropped_mass") return weight;
           if (a.metric == "dropped_error") return a.option("model") == "whisper-encoder" ? 1 - weight : weight;
           if (a.metric == "mass_correlation") return 0.7;
           return {};
         },
         {{"A selection of keys that drops less", depends},
          {"How well the softmax weight that a selection of keys", measured, {0.7}},
          {"How well the softmax weight that a selection of pages", measured, {0.7}},
          {"How well the softmax weight that a selection of near", measured, {0.7}}}});

}  // namespace
}  // namespace attnbench::worlds
