// The bar over many calls: which part runs, and the time left.
#include "harness/runner/progress.hpp"

#include "tests/catch.hpp"

namespace attnbench::progress_test {

TEST_CASE("the bar counts parts and takes the time left from the estimate, corrected by what was seen", "[unit]") {
  WholeProgress progress({{"rank", 100, 10}, {"time", 300, 4}});
  CHECK(progress.line(0, 0, "softmax") == "[....................] 0/2 recipes  6:40 left  rank: softmax");
  // Half of the first part in 95 s instead of 50: 350 s are left by the estimate, and take (95 + 5) / (50 + 5) as long.
  CHECK(progress.line(95, 5, "softmax") == "[##..................] 0/2 recipes  10:36 left  rank: softmax");
  progress.part_is_done();
  CHECK(progress.line(100, 1, "x") == "[########............] 1/2 recipes  2:11 left  time: x");
  CHECK(progress.line(400, 9, "x") == "[####################] 1/2 recipes  0:00 left  time: x");
}

TEST_CASE("units of calls that ended count for the part that runs", "[unit]") {
  WholeProgress progress({{"rank", 100, 10}});
  {
    Progress call(4);
    for (int unit = 0; unit < 4; ++unit) call.step("x");
  }
  CHECK(progress.line(50, 1, "x") == "[##########..........] 0/1 recipes  0:50 left  rank: x");
}

TEST_CASE("parts that need nothing show a whole bar", "[unit]") {
  const WholeProgress progress({{"rank", 0, 0}});
  CHECK(progress.line(3, 0, "x") == "[####################] 0/1 recipes  0:00 left  rank: x");
}

}  // namespace attnbench::progress_test
