// Worlds of recipes that compare the errors of outputs.
#include <cmath>
#include <numbers>

#include "tests/worlds/worlds.hpp"

namespace attnbench::worlds {
namespace {

using enum Ruling;

const std::string output_error = "relative_output_error";
bool trigonometric(const Asked& a) { return a.option("features") == "trig"; }
// On head 0 a local window errs least, on the others a strided pattern; on the texts that judge, the window on head 0
// errs three times as much as on those that it is chosen on.
const bool error_at_equal_flops =
    add({"error-at-equal-flops",
         of(output_error,
            [](const Asked& a) -> Answer {
              const bool first = a.option("head") == "0", judging = a.replicate % 2 == 1;
              if (a.name() == "local") return first ? (judging ? 3 : 1) : 4;
              if (a.name() == "strided") return 2;
              if (a.name() == "top-k") return 0.5;
              if (a.name() == "uniform") return 4;
              return 8;
            }),
         {{"On each judged head of this project's byte-level model", holds},
          {"On heads of MiniLM, how much more the best of five fixed patterns errs", measured},
          {"By what factor a sparse pattern chosen for each head", measured, {7.0 / 6}}}}) &&
    add({"error-at-equal-flops",
         of(output_error,
            [](const Asked& a) -> Answer {
              if (a.name() == "local") return 2;
              if (a.name() == "top-k") return 0.5;
              return a.name() == "uniform" ? 1 : 8;
            }),
         {{"On each judged head of this project's byte-level model", refuted},
          {"On heads of the byte-level model, how much more the best of five fixed patterns errs", measured, {4}},
          {"On heads of MiniLM, how much more the best of five fixed patterns errs", measured, {4}},
          {"On heads of Whisper's encoder, how much more the best of five fixed patterns errs", measured, {4}}}});

// Of ten candidates one, trigonometric features of transformed inputs, errs less than the mean of V, but on MiniLM's
// heads only with small logits.
const bool random_features_on_real_heads =
    add({"random-features-on-real-heads",
         of(output_error,
            [](const Asked& a) -> Answer {
              if (a.name() == "uniform") return 2;
              if (a.option("model") == "minilm" && a.cell.problem.logit_scale > 0.2) return 8;
              return trigonometric(a) && a.option("transform") == "full" ? 1 : 8;
            }),
         {{"On each of 2 heads of this project's byte-level model, some random-feature", holds, {0.5}},
          {"On each of 2 heads of MiniLM, some random-feature", depends},
          {"On each of 2 heads of Whisper's encoder, some random-feature", holds, {0.5}},
          {"On heads of the byte-level model with logits times 1, by what factor", measured, {0.5}},
          {"On heads of MiniLM with logits times 1, by what factor", measured, {4}},
          {"On heads of Whisper's encoder with logits times 1, by what factor", measured, {0.5}},
          {"On heads of the byte-level model with logits times 0.1, by what factor", measured, {0.5}},
          {"On heads of MiniLM with logits times 0.1, by what factor", measured, {0.5}},
          {"On heads of Whisper's encoder with logits times 0.1, by what factor", measured, {0.5}}}});

}  // namespace
}  // namespace attnbench::worlds
