// Specs: the grammar, and the parameters of every catalogue that knows the name. A spec is spelled so that reading it
// again gives the same.
#include <map>
#include <vector>

#include "harness/core/approximation.hpp"
#include "tests/fuzz/bounded.hpp"

using namespace attnbench;

namespace {

void read_parameters(const std::string& plural, const Spec& spec) {
  const Params params(plural, spec);
  require(Params(plural, params.spec()).spec() == params.spec(), "parameters as spelled are those parameters");
  if (plural == MethodEntry::plural) find<MethodEntry>(params.name()).check(params);
}

// The catalogues that know a name; of methods, which are asked for by it, when none does.
const std::vector<std::string>& plurals_of(const std::string& name) {
  static const auto known = [] {
    std::map<std::string, std::vector<std::string>> plurals;
    for (const auto& [plural, catalogue] : catalogues())
      for (const auto& entry : catalogue->names()) plurals[entry].push_back(plural);
    return plurals;
  }();
  static const std::vector<std::string> methods{MethodEntry::plural};
  const auto found = known.find(name);
  return found == known.end() ? methods : found->second;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, size_t size) {
  const AllocationBound bound(65536 + 64 * size);
  try {
    const Spec spec = parse_spec(text_of(data, size)), again = parse_spec(to_string(spec));
    require(again.name == spec.name && again.arguments == spec.arguments, "a spec as spelled is that spec");
    for (const auto& plural : plurals_of(spec.name)) try {
        read_parameters(plural, spec);
      } catch (const Misuse&) {
      }
  } catch (const Misuse&) {
  }
  return 0;
}
