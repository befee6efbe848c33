// Files of options (--config), up to the request that they mean.
#include <sstream>

#include "harness/cli/request.hpp"
#include "tests/fuzz/bounded.hpp"

using namespace attnbench;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, size_t size) {
  const AllocationBound bound((size_t{8} << 20) + 64 * size);  // as in sweep.cpp
  std::istringstream text(std::string(text_of(data, size)));
  try {
    const RunArguments arguments = parse_request_config(text, "options");
    require(arguments.request.replicates >= 1 && arguments.request.threads >= 1, "counts are at least 1");
  } catch (const Misuse&) {
  }
  return 0;
}
