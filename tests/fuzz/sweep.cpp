// The values of a run's options that have a grammar: --sweep, --zip, --match, --round, --until, --shard, --memory.
#include <functional>

#include "harness/cli/request.hpp"
#include "tests/fuzz/bounded.hpp"

using namespace attnbench;

namespace {

void read_axis(const std::string& text) {
  const Axis axis = parse_axis(text);
  require(!axis.name.empty() && !axis.values.empty(), "an axis has a name and values");
  for (const auto& value : axis.values) require(!value.empty(), "a value of an axis is not empty");
}

void read_zip(const std::string& text) {
  for (const auto& name : parse_zip(text)) require(!name.empty(), "a zipped axis has a name");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, size_t size) {
  // Even a text as short as "1:100000:+1" makes 100,000 values, the most: 32 bytes each, twice while they grow.
  const AllocationBound bound((size_t{8} << 20) + 64 * size);
  const std::string text(text_of(data, size));
  const std::function<void()> readers[] = {
      [&] { read_axis(text); },
      [&] { read_zip(text); },
      [&] { require(parse_match(text).value > 0, "a cost to match is above 0"); },
      [&] { require(parse_memory_size("memory", text) >= 1, "memory is at least one byte"); },
      [&] { parse_rounding(text); },
      [&] { parse_until(text); },
      [&] { parse_shard(text); }};
  for (const auto& read : readers) try {
      read();
    } catch (const Misuse&) {
    }
  return 0;
}
