// distance-penalty where the penalty is known.
#include "tests/catch.hpp"
#include "tests/experiments/measured.hpp"
#include "tests/misuse.hpp"

namespace attnbench::distance_penalty_test {
namespace {

const Shape causal{.nq = 40, .nk = 40, .d = 5, .dv = 3, .mask = {.causal = true}};

Cell cell(const std::string& method, const std::string& input = "gaussian", Shape shape = causal) {
  return double_cell("distance-penalty", method, shape, input);
}
std::string refused(const Cell& one) {
  return misuse_of([&] { measured(one); });
}

}  // namespace

TEST_CASE("a decay and ALiBi lose their slope a token, and features that see ALiBi do not", "[unit]") {
  for (const auto& [one, slope] :
       {std::pair(cell("retnet:slope=0.3"), 0.3), std::pair(cell("softmax", "alibi:slope=0.125"), 0.125),
        std::pair(cell("softmax", "alibi:[gaussian:scale=0.1],slope=0.7"), 0.7)}) {
    const auto found = measured(one);
    CHECK(std::abs(found["penalty"] - slope) < 1e-12);
    CHECK(found["largest_deviation"] < 1e-10);
  }
  const auto features = measured(cell("performer:m=8", "alibi:slope=0.5"));
  CHECK(features["largest_deviation"] > 0.5);
  // Of the first two tokens alone: one pair.
  Shape two = causal;
  two.nq = two.nk = 2;
  CHECK(std::abs(measured(cell("retnet:slope=2", "gaussian", two))["penalty"] - 2) < 1e-12);
}

TEST_CASE("a penalty needs a slope, rows with keys of their own, and no later keys", "[unit]") {
  CHECK(refused(cell("softmax")).find("--method retnet:slope=0.1") != std::string::npos);
  CHECK(refused(cell("retnet")).find("takes its slope from the head") != std::string::npos);
  Shape later = causal;
  later.mask.causal = false;
  CHECK(refused(cell("softmax", "alibi:slope=0.1", later)).find("--causal") != std::string::npos);
  Shape fewer = causal;
  fewer.nq = 7;
  fewer.mask.offset = 33;
  CHECK(refused(cell("retnet:slope=0.1", "gaussian", fewer)).find("as many queries as keys") != std::string::npos);
  Shape one = causal;
  one.nq = one.nk = 1;
  CHECK(skip_of(cell("retnet:slope=0.1", "gaussian", one)).find("no weight is left") != std::string::npos);
}

}  // namespace attnbench::distance_penalty_test
