// --sweep and the other values of a run that have a grammar: --match, --round.
#include "harness/runner/plan.hpp"
#include "tests/fuzz/bounded.hpp"

using namespace attnbench;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, size_t size) {
  // An axis has up to 100,000 values, whatever the length of "1:100000:+1": 32 bytes each, twice while they grow.
  const AllocationBound bound((size_t{8} << 20) + 64 * size);
  const std::string text(text_of(data, size));
  try {
    const Axis axis = parse_axis(text);
    require(!axis.name.empty() && !axis.values.empty(), "an axis has a name and values");
    for (const auto& value : axis.values) require(!value.empty(), "a value of an axis is not empty");
  } catch (const Misuse&) {
  }
  try {
    require(parse_match(text).value > 0, "a cost to match is above 0");
  } catch (const Misuse&) {
  }
  try {
    parse_rounding(text);
  } catch (const Misuse&) {
  }
  return 0;
}
