// Where a method does something else than its reference, `describe` says so.
#include "harness/core/registry.hpp"
#include "tests/misuse.hpp"
#include "tests/program.hpp"

namespace attnbench {

TEST_CASE("describe says where a method departs from its paper", "[end-to-end]") {
  struct Case {
    std::string spec;
    std::vector<std::string> says;
  };
  for (const auto& [spec, says] :
       std::vector<Case>{{"aderf", {"1e-4", "diagonal of both moment matrices"}},
                         {"performer:features=aderf", {"features=aderf adds 1e-4"}},
                         {"performer:features=saderf", {"features=saderf adds 1e-4"}},
                         {"routing", {"layer norm", "one cluster of all tokens is exact"}},
                         {"sinkhorn", {"mass", "before the sweeps converge", "psi is the mean over a block"}},
                         {"per-head:[sinkhorn:blocks=4],[local]", {"before the sweeps converge"}}}) {
    INFO(spec);
    const auto answer = program("describe '" + spec + "'");
    CHECK(answer.code == 0);
    CHECK(contains(answer.text, "\n  departure   "));
    for (const auto& words : says) CHECK(contains(answer.text, words));
  }
  for (const char* spec : {"softmax", "performer", "linear", "combine:[local],[performer]"}) {
    INFO(spec);
    CHECK_FALSE(contains(program("describe '" + std::string(spec) + "'").text, "departure"));
  }
}

}  // namespace attnbench
