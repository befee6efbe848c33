// sampling-error against what is known of its numbers. Each comparison of a mean of 4096 squared errors with its closed
// form allows 25 %, more than eight standard errors at these inputs: a correct program fails one with probability 1e-9.
#include <cmath>

#include "tests/catch.hpp"
#include "tests/experiments/measured.hpp"

namespace attnbench::sampling_error_test {

namespace {

constexpr double tolerance = 1e-12;

Measured of(const std::string& method, Shape shape = {.nq = 24, .nk = 24, .d = 4, .dv = 6}) {
  return measured(double_cell("sampling-error:draws=1024,rows=4", method, shape));
}

void check_near(double measured, double theory) {
  CAPTURE(measured, theory);
  CHECK(theory > 0);
  CHECK(std::abs(measured / theory - 1) < 0.25);
}

}  // namespace

TEST_CASE("measured errors of sampled rows are those of the closed forms", "[statistics]") {
  for (const Mask mask : {Mask{}, Mask{.causal = true}, Mask{.keys = 17}})
    for (const char* method : {"sampled:s=64", "sampled:s=64,law=value-norm", "sampled:s=64,law=optimal",
                               "sampled:s=64,stratified=true", "sampled:s=2,replacement=false"}) {
      INFO(method << ", causal " << mask.causal << ", keys " << mask.keys);
      const Measured found = of(method, {.nq = 24, .nk = 24, .d = 4, .dv = 6, .mask = mask});
      check_near(found["denominator_mse"], found["denominator_mse_theory"]);
      check_near(found["numerator_mse"], found["numerator_mse_theory"]);
      CHECK(std::abs(found["denominator_bias"]) < 0.05);
      if (std::string(method).find("replacement") == std::string::npos)  // s = 2 is too few for the first order
        check_near(found["row_mse"], found["row_mse_theory"]);
    }
}

TEST_CASE("draws from the softmax row have an exact denominator, and rows without bias", "[statistics]") {
  for (const char* method : {"sampled:s=4,law=oracle", "sampled:s=4,law=oracle,stratified=true"}) {
    const Measured found = of(method);
    CHECK(found["denominator_mse"] < tolerance);
    CHECK(std::abs(found["denominator_bias"]) < tolerance);
    check_near(found["row_mse"], found["row_mse_theory"]);
    CHECK(std::abs(found["row_bias2"]) < 0.01 * found["row_mse"]);
  }
  const Measured biased = of("sampled:s=2");
  CHECK(biased["row_bias2"] > 0.01 * biased["row_mse"]);
}

TEST_CASE("rows that draw every key have no error, and threads change no number", "[unit]") {
  const Measured exact = of("sampled:s=24,replacement=false");
  for (const char* metric : {"denominator_mse", "numerator_mse", "row_mse", "row_mse_theory"})
    CHECK(exact[metric] < tolerance);
  const Cell cell = double_cell("sampling-error:draws=100", "sampled:s=4");
  CHECK(measured(cell, 0, 3)["row_mse"] == measured(cell, 0, 1)["row_mse"]);
  CHECK(measured(cell, 1)["row_mse"] != measured(cell, 0)["row_mse"]);
}

TEST_CASE("a method that samples no keys is skipped, and so are rows that see none", "[unit]") {
  CHECK(skip_of(double_cell("sampling-error", "softmax")).find("samples no keys") != std::string::npos);
  CHECK(skip_of(double_cell("sampling-error", "sampled", {.nq = 6, .nk = 6, .d = 4, .dv = 2, .mask = {.keys = 0}}))
            .find("sees a key") != std::string::npos);
}

}  // namespace attnbench::sampling_error_test
