// Parameters that reproduce departures of published code (Parameter::published): `check` finds each by the claim that
// it breaks.
#include <set>

#include "harness/claims/check.hpp"
#include "tests/catch.hpp"

namespace attnbench::published_test {
namespace {

struct Departure {
  std::string method, assignment, claim;
  std::string others = "";  // parameters that the departure needs, ",weights=balance"
};

const std::vector<Departure> departures{
    {"eva", "overlapping=true", "exact-when"},
    {"eva", "sizes=false", "equal-keys"},
    {"hyper", "mask_own=false", "mean-weights"},
    {"kdeformer", "maximum=false", "finite"},
    {"kdeformer", "probabilities=authors", "linear"},
    {"lara", "noise=false", "mean-weights", ",weights=balance"},
    {"magicpig", "epsilon=1e-4", "mean-weights"},
    {"mra", "epsilon=1e-6", "row-sums"},
    {"qjl", "rot=true", "mean-logits"},
    {"randomised", "noise=false", "mean-rows"},
    {"skyformer", "ridge=0.1", "exact-when"},
    {"skyformer", "fixed_scale=true", "exact-when"},
    {"thinformer", "strided=true", "exact-when"},
    {"vattention", "collapsed=true", "mean-weights"},
};

// No claim of `check` is about them, because the methods promise nothing of the kind.
const std::vector<std::pair<std::string, std::string>> without_claim{
    {"eva", "noise"},              // the mean over draws has no closed form
    {"reformer", "bucket_mask"},   // which keys a row reads
    {"reformer", "combine"},       // how rounds of hashing are weighed
    {"vattention", "quantile"},    // how often a promise is broken: recipe vattention-coverage
    {"vertical-slash", "scaled"},  // which keys are chosen
};

std::set<std::string> failing(const std::string& spec) {
  const Report report = check({subject_of(Params("methods", spec))}, {});
  std::set<std::string> claims;
  for (const Result& result : report.subjects.front().results)
    if (result.outcome == Outcome::fail) claims.insert(result.claim);
  return claims;
}

TEST_CASE("check finds each departure of published code since 2020 by the claim that it breaks", "[statistics]") {
  for (const auto& [method, assignment, claim, others] : departures) {
    const std::string spec = method + ":" + assignment + others;
    INFO(spec << " must fail " << claim);
    const auto claims = failing(spec);
    for (const auto& other : claims) UNSCOPED_INFO("fails " << other);
    CHECK(claims.contains(claim));
  }
}

// Linear attention's own are in check_test.cpp.
TEST_CASE("no departure of published code is missing in these lists", "[unit]") {
  std::set<std::pair<std::string, std::string>> listed(without_claim.begin(), without_claim.end());
  for (const Departure& departure : departures)
    listed.insert({departure.method, departure.assignment.substr(0, departure.assignment.find('='))});
  std::set<std::pair<std::string, std::string>> registered;
  const Catalogue& methods = catalogue("methods");
  for (const std::string& name : methods.names())
    for (const Parameter& parameter : methods.parameters(name))
      if (parameter.published && parameter.name != "backward") registered.insert({name, parameter.name});
  CHECK(registered == listed);
}

}  // namespace
}  // namespace attnbench::published_test
