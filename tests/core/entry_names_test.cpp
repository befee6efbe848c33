// The names of entries and of parameters: what a spec cannot write, or what would mean two things, is refused.
#include "harness/core/entry_names.hpp"

#include "tests/misuse.hpp"

namespace attnbench::entry_names_test {

namespace {

Parameter number(const std::string& name) { return Parameter::integer(name, 1, "", 0); }

std::string refusal(const std::string& plural, const Description& text, const std::vector<Parameter>& parameters) {
  return misuse_of([&] { refuse_unusable_names(plural, text, parameters); });
}

void accept(const std::string& plural, const Description& text, const std::vector<Parameter>& parameters) {
  CHECK_NOTHROW(refuse_unusable_names(plural, text, parameters));
}

}  // namespace

TEST_CASE("every entry of the tree has names that a plugin may have", "[unit]") {
  for (const auto& [plural, entries] : catalogues()) {
    if (plural == "commands") continue;
    for (const auto& name : entries->names()) {
      if (name == "per-head") continue;  // its parameter `heads` has no key in a spec
      CAPTURE(plural, name);
      accept(plural, entries->description(name), entries->parameters(name));
    }
  }
}

TEST_CASE("a name that a spec cannot write is refused", "[unit]") {
  for (const char* name : {"", "a b", "a=b", "a,b", "a:b", "a[", "\xc3\xa9", "a.b"}) {
    CAPTURE(name);
    CHECK(contains(refusal("methods", {.name = name}, {}), "expected letters, digits, - and _"));
    CHECK(contains(refusal("methods", {.name = "mine"}, {number(name)}), "expected letters, digits, - and _"));
  }
  accept("methods", {.name = "My-Method_2"}, {number("A-b_2")});
}

TEST_CASE("a parameter that is there twice, or is a size, is refused", "[unit]") {
  CHECK(
      contains(refusal("methods", {.name = "mine"}, {number("m"), number("r"), number("m")}), "'m' is declared twice"));
  for (const char* size : {"n", "d", "dv", "heads", "logit_scale", "round"})
    CHECK(contains(refusal("inputs", {.name = "mine"}, {number(size)}), "has the name of a size"));
}

TEST_CASE("a parameter that one spec may hold for two entries is refused", "[unit]") {
  const Description mine{.name = "mine"};
  CHECK(contains(refusal("features", mine, {number("m"), number("backward")}),
                 "'backward' is also one of method 'performer', which may name this entry as features"));
  CHECK(contains(refusal("projections", mine, {number("backward")}), "method 'performer'"));  // two levels up
  CHECK(contains(refusal("projections", mine, {number("m")}), "which may name this entry as projection"));
  accept("projections", mine, {number("window")});
  accept("deterministic-features", mine, {number("window")});  // truncated names linear, and not the map
  CHECK(contains(refusal("deterministic-features", mine, {number("inputs")}), "method 'linear'"));
  const Parameter features = Parameter::entry("features", "positive", "", "features");
  CHECK(contains(refusal("methods", mine, {number("m"), features}), "which this entry may name as features"));
  CHECK(contains(refusal("methods", mine, {features, number("share")}), "which this entry may name as features"));
  accept("methods", mine, {number("top"), features});
  const Parameter others = Parameter::entry("others", "positive", "", "features");
  CHECK(contains(refusal("methods", mine, {features, others}), "comes with features=... and with others=..."));
}

}  // namespace attnbench::entry_names_test
