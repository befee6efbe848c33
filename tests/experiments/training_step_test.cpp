// The roofline of the backward pass that training-step records, against operations that are counted by hand.
#include <algorithm>

#include "tests/catch.hpp"
#include "tests/experiments/measured.hpp"

namespace attnbench::training_step_test {

TEST_CASE("the backward roofline is that of five products and their exponentials", "[unit]") {
  constexpr Index n = 128, d = 8, dv = 16;
  // Turns of several steps, so that a sum over them is not the time of one.
  const Cell cell = double_cell("training-step:blocks=2,turn=5", "softmax", {.nq = n, .nk = n, .d = d, .dv = dv});
  Context context;
  ExactCache exact;
  const auto all = measured_turns({cell, 0, context, exact});
  const double flops = numbers_of(all, "backward_flops").at(0);
  // Logits, and what reaches K and Q, have d columns; weights and what reaches V have dv.
  CHECK(flops == Approx(2.0 * n * n * (3 * d + 2 * dv)).epsilon(0.05));
  const double least = flops / numbers_of(all, "fma_peak").at(0) + n * n / numbers_of(all, "exp_rate").at(0);
  const double backward = least / numbers_of(all, "backward_roofline_fraction").at(0);
  const auto seconds = numbers_of(all, "seconds");
  CHECK(backward < *std::max_element(seconds.begin(), seconds.end()));
  CHECK(backward > 0.2 * *std::min_element(seconds.begin(), seconds.end()));
}

}  // namespace attnbench::training_step_test
