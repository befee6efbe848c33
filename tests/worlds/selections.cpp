// Worlds of recipes about selected, evicted and quantised keys.
#include <map>

#include "tests/worlds/worlds.hpp"

namespace attnbench::worlds {
namespace {

using enum Ruling;

bool minilm(const Asked& a) { return a.option("model") == "minilm"; }

// Smooth keys err half as much, but with 4 bits on MiniLM twice as much.
const bool smoothing =
    add({"smoothing",
         of("relative_output_error",
            [](const Asked& a) -> Answer {
              if (a.option("smooth") != "true") return 2;
              return minilm(a) && a.option("bits") == "4" ? 4 : 1;
            }),
         {{"With queries and keys of 8 bits", holds, {0.5}}, {"With queries and keys of 4 bits", depends}}});

// Bits that are lost with equal budgets, and with divided ones.
Answer bits_of(const Asked& a, double equal, double divided) {
  return a.option("allocation") == "uniform" ? equal : divided;
}

// Of random keys and the seven scores, then of four scores by head and by layer.
const std::vector<double> bits{0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25};

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
          {"How far a head orders the scores", measured, {1, 1, 1, -1, -1, 1, 1}},
          {"How far the scores of keys are in the same order", measured, {1}},
          {"How many bits per byte this project's byte-level model loses", measured, bits},
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
          {"A budget that the heads of a layer divide", refuted, std::vector<double>(4, 0.25)},
          {"A budget that falls from layer to layer", refuted, std::vector<double>(4, 0.25)},
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
         {{"A selection of keys that drops less", depends}, {"How well the softmax weight", measured, {0.7}}}});

// Bits that a model loses with keys that rows choose, with caches, with a number of bits of TurboQuant's keys, and with
// all else.
struct Costs {
  double quest = 0.1, chosen = quest, left = 0.3, turboquant = 0.002;
};

Numbers costs(const Costs& c) {
  return of("excess_bits", [c](const Asked& a) -> Answer {
    const std::string name = a.name();
    if (name == "quest") return c.quest;
    if (name == "moba" || name == "loki" || name == "sparq") return c.chosen;
    if (name == "heavy-hitter" || name == "sink-window") return c.left;
    if (name == "turboquant") return c.turboquant * (a.option("bits") == "4" ? 1 : 100);
    return 0.7;
  });
}

const std::string read_few = "How many bits per byte this project's byte-level model loses with rows",
                  rounded = "How many bits per byte this project's byte-level model loses with quantised keys",
                  recurrent = "How many bits per byte this project's byte-level model loses with a recurrence",
                  chosen_lose_less = "Keys that each row chooses by a score", four_bits = "With keys of 4 bits";

const bool long_context_bits = add({"long-context-bits",
                                    costs({}),
                                    {{read_few, measured, {0.1, 0.1, 0.1, 0.1, 0.3, 0.3, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7}},
                                     {chosen_lose_less, holds, {-0.2}},
                                     {rounded, measured, {0.7, 0.7, 0.7, 0.7, 0.2, 0.2, 0.002, 0.7}},
                                     {four_bits, holds, {0.002}},
                                     {recurrent, measured, {0.7}}}}) &&
                               add({"long-context-bits",
                                    costs({.quest = 0.5, .turboquant = 0.02}),
                                    {{chosen_lose_less, refuted, {0.2}}, {four_bits, refuted, {0.02}}}}) &&
                               add({"long-context-bits", costs({.chosen = 0.4}), {{chosen_lose_less, depends}}});

}  // namespace
}  // namespace attnbench::worlds
