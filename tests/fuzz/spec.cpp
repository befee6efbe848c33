// Specs: the grammar, and the parameters of every catalogue that knows the name. A spec is spelled so that reading it
// again gives the same.
#include <algorithm>

#include "harness/core/approximation.hpp"
#include "tests/fuzz/bounded.hpp"

using namespace attnbench;

namespace {

void read_parameters(const std::string& plural, const Spec& spec) {
  const Params params(plural, spec);
  require(Params(plural, params.spec()).spec() == params.spec(), "parameters as spelled are those parameters");
  if (plural == MethodEntry::plural) find<MethodEntry>(params.name()).check(params);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, size_t size) {
  const AllocationBound bound(65536 + 64 * size);
  try {
    const Spec spec = parse_spec(text_of(data, size)), again = parse_spec(to_string(spec));
    require(again.name == spec.name && again.arguments == spec.arguments, "a spec as spelled is that spec");
    bool known = false;
    for (const auto& [plural, catalogue] : catalogues()) {
      const auto names = catalogue->names();
      if (!std::binary_search(names.begin(), names.end(), spec.name)) continue;
      known = true;
      try {
        read_parameters(plural, spec);
      } catch (const Misuse&) {
      }
    }
    if (!known) read_parameters(MethodEntry::plural, spec);
  } catch (const Misuse&) {
  }
  return 0;
}
