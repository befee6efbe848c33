// The roofline of the backward pass that training-step records, against operations that are counted by hand.
#include <algorithm>

#include "tests/catch.hpp"
#include "tests/experiments/measured.hpp"

namespace attnbench::training_step_test {

TEST_CASE("the backward roofline is that of five products and their exponentials", "[unit]") {
  constexpr Index n = 128, d = 8, dv = 16;
  // A turn of several steps, so that a sum over them is not the time of one; and one turn, so that medians are its own.
  const Cell cell = double_cell("training-step:turn=5", "softmax", {.nq = n, .nk = n, .d = d, .dv = dv});
  Context context;
  ExactCache exact;
  Rates rates = made_up_rates;
  rates.bandwidth = 1e30;  // arithmetic is the roofline, however fast this machine's is
  double largest_share = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    TimedMember member(*find<ExperimentEntry>("training-step").timed, {cell, 0, context, exact});
    member.turn(TimedMember::Whose::own);
    Recorder recorder;
    member.record({.load = {0}, .beside = {0}, .session = 1, .rates = rates}, recorder);
    const auto all = recorder.take();
    const auto number = [&](const char* metric) { return numbers_of(all, metric).at(0); };
    REQUIRE(number("iterations") > 1);
    const double flops = number("backward_flops");
    // Logits, and what reaches K and Q, have d columns; weights and what reaches V have dv.
    CHECK(flops == Approx(2.0 * n * n * (3 * d + 2 * dv)).epsilon(0.05));
    const double least = flops / number("fma_peak") + n * n / number("exp_rate");
    const double backward = least / number("backward_roofline_fraction");
    const double step = backward * (1 + 1 / number("backward_over_forward"));
    CHECK(step <= number("seconds"));
    largest_share = std::max(largest_share, step / number("seconds"));
  }
  // The passes of a step fill the time of one, unless other work of the machine comes between steps; both are times of
  // the same calls.
  CHECK(largest_share > 0.2);
}

}  // namespace attnbench::training_step_test
