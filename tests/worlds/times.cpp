// Worlds of recipes about time and about counted work.
#include <cmath>

#include "tests/worlds/worlds.hpp"

namespace attnbench::worlds {
namespace {

using enum Ruling;

// Seconds that grow as a power of n, of each method its own.
using Power = std::function<double(const Asked&)>;
bool materialised(const Asked& a) { return a.option("form") == "materialised"; }
// Speedups that reach 1 at that n, in proportion to n.
Numbers overtaking(std::function<double(const Asked&)> at) {
  return of("speedup", [at = std::move(at)](const Asked& a) { return a.n() / at(a); });
}
// The n of equal FLOPs: as many as features of linear attention, and twice as many as those of Performer.
double equal_flops(const Asked& a) { return a.name() == "linear" ? a.d() : 2 * a.number("m"); }
const std::string overtake = "On one CPU thread, linear attention with 1 + elu and Performer overtake",
                  rule_of_16d = "On one CPU thread, Performer with four times as many",
                  rule_of_18d = "On one CPU thread, too, Performer with four times";
const bool crossover =
    add({"crossover", overtaking([](const Asked& a) { return 1.5 * equal_flops(a); }), {{overtake, holds, {1.5}}}}) &&
    add({"crossover", overtaking([](const Asked& a) { return 2.5 * equal_flops(a); }), {{overtake, refuted, {2.5}}}}) &&
    add({"crossover", overtaking([](const Asked& a) { return 16 * a.d(); }), {{rule_of_16d, holds, {1}}}}) &&
    add({"crossover", overtaking([](const Asked& a) { return 8 * a.d(); }), {{rule_of_16d, not_seen, {0.5}}}}) &&
    add({"crossover",
         overtaking([](const Asked& a) { return 0.25 * 18 * a.d() * std::log(a.d()); }),
         {{rule_of_18d, not_seen, {0.25}}}});

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
          {"At n = 512, by what factor Linformer's attention", measured, {3}},
          {"At n = 2048, by what factor Linformer's attention", measured, {3}}}});

Numbers fast_and_good(double speedup, double error) {
  return [=](const Asked& a) -> Answer {
    if (a.metric == "speedup") return speedup;
    if (a.metric == "relative_output_error") return a.name() == "uniform" ? 2 : 2 * error;
    return {};
  };
}
const std::string faster_and_better = "On one CPU thread, on heads of this project's byte-level model";
const bool quality_speed_memory =
    add({"quality-speed-memory", fast_and_good(2, 0.25), {{faster_and_better, holds, {0.5}}}}) &&
    add({"quality-speed-memory", fast_and_good(4, 0.5), {{faster_and_better, holds, {0.5}}}}) &&
    add({"quality-speed-memory", fast_and_good(0.5, 0.25), {{faster_and_better, refuted, {2}}}}) &&
    add({"quality-speed-memory", fast_and_good(2, 3), {{faster_and_better, refuted, {3}}}});

}  // namespace
}  // namespace attnbench::worlds
