// Budgets of equal cost.
#include "harness/runner/match.hpp"

#include <cmath>
#include <set>

#include "harness/runner/plan.hpp"
#include "tests/catch.hpp"
#include "tests/misuse.hpp"

namespace attnbench::match_test {

namespace {
constexpr Shape shape{.nq = 1024, .nk = 1024, .d = 64, .dv = 64};

bool has_budget(const Params& method) {
  for (const Parameter& p : method.declared())
    if (p.budget) return true;
  return false;
}
}  // namespace

TEST_CASE("every budget reaches a quarter of softmax's FLOPs within a tenth, or says that it cannot", "[unit]") {
  const double value = *cost_of(Params("methods", "softmax"), shape, Match::Cost::flops) / 4;
  // The logits of all pairs are beyond that (top-k, vattention, randomised, qjl), and so are multipole's clusters;
  // there are no more than d principal components, and thinformer halves its keys, so that its cost moves in steps.
  const std::set<std::string> excepted{"top-k",     "vattention",     "randomised", "qjl",
                                       "multipole", "principal-keys", "thinformer"};
  for (const auto& name : catalogue("methods").names()) {
    const Params method("methods", name);
    if (!has_budget(method) || !find<MethodEntry>(name).claims(method, shape).no_form.empty()) continue;
    const Params chosen = matched(method, shape, {Match::Cost::flops, value});
    const double ratio = *cost_of(chosen, shape, Match::Cost::flops) / value;
    INFO(chosen.spec() << " costs " << ratio << " of what was asked");
    if (excepted.contains(name)) continue;
    CHECK(ratio > 0.85);
    CHECK(ratio < 1.18);
  }
}

TEST_CASE("methods without a budget stay as they are, parts share it", "[unit]") {
  const double value = *cost_of(Params("methods", "softmax"), shape, Match::Cost::flops) / 4;
  CHECK(matched(Params("methods", "uniform"), shape, {Match::Cost::flops, value}).spec() == "uniform");
  const Params combined = matched(Params("methods", "combine"), shape, {Match::Cost::flops, value});
  CHECK(*cost_of(combined, shape, Match::Cost::flops) / value == Approx(1).margin(0.25));
  const Params features = matched(Params("methods", "performer:features=trig"), shape, {Match::Cost::features, 128});
  CHECK(features.integer("m") == 64);
}

TEST_CASE("budgets that read as many keys: top-k says how many, pages and windows come near", "[unit]") {
  const Shape small{.nq = 256, .nk = 256, .d = 8, .dv = 8};
  const auto budget = [&](const std::string& method, const std::string& parameter, const Shape& at) {
    return matched(Params("methods", method), at, {Match::Cost::keys, 32}).integer(parameter);
  };
  CHECK(budget("top-k", "k", small) == 32);
  CHECK(budget("loki:r=4", "k", small) == 32);
  CHECK(budget("quest:page=4", "keep", small) == 8);
  CHECK(budget("moba:block=8", "keep", small) == 4);
  // Rows at either end see half of a window: of 2 w + 1 keys n sees 2 w + 1 - w (w + 1) / n in the mean. Of all rows
  // here 64 in eight groups are counted.
  CHECK(std::abs(budget("local", "window", small) - 16) <= 1);
  // Causal rows before the k-th see fewer than k keys.
  Shape causal = small;
  causal.mask.causal = true;
  CHECK(budget("top-k", "k", causal) > 32);
  CHECK(budget("top-k", "k", causal) < 40);
  // Methods without a pattern read every key: they stay as they are.
  CHECK(budget("performer:m=48", "m", small) == 48);
  CHECK_FALSE(cost_of(Params("methods", "performer"), small, Match::Cost::keys));
  CHECK(*cost_of(Params("methods", "top-k:k=7"), small, Match::Cost::keys) == 7);
}

TEST_CASE("the rows whose keys are counted are spread evenly, from the first row to the last", "[unit]") {
  // Row i of a causal window that holds everything reads i + 1 keys. Eight groups of eight rows that begin at multiples
  // of 40 have the mean of all rows, (n + 1) / 2.
  Shape causal{.nq = 288, .nk = 288, .d = 8, .dv = 8};
  causal.mask.causal = true;
  CHECK(*cost_of(Params("methods", "local:window=288"), causal, Match::Cost::keys) == 144.5);
}

TEST_CASE("bytes that a decoder keeps are matched by what it keeps after all tokens", "[unit]") {
  Shape cached{.nq = 128, .nk = 128, .d = 8, .dv = 12};
  cached.precision = Precision::f32;
  cached.mask.causal = true;
  constexpr double token = (8 + 12) * 4;
  const auto budget = [&](const std::string& spec, const char* name, double tokens) {
    return matched(Params("methods", spec), cached, {Match::Cost::kv_bytes, tokens * token}).integer(name);
  };
  CHECK(budget("evict:prompt=100", "keep", 60) == 60 - 28);
  CHECK(budget("sink-window:sinks=4", "window", 50) == 50 - 4 - 1);
  CHECK(budget("performer:m=48", "m", 30) * (12 + 2) == Approx(30 * 20).margin(14));  // a sum, a normaliser and a scale
  // Without a decoder nothing is kept from step to step.
  CHECK(budget("top-k:k=7", "k", 60) == 7);
  CHECK_FALSE(cost_of(Params("methods", "top-k"), cached, Match::Cost::kv_bytes));
  // Codes of 4 bits, and a scale of 4 bytes for each key.
  const Params codes("methods", "quantised:bits=4,granularity=token"),
      both("methods", "quantised:bits=4,values=2,granularity=token");
  CHECK(*cost_of(codes, cached, Match::Cost::kv_bytes) == 128 * (8 * 4 / 8 + 4 + 12 * 4));
  CHECK(*cost_of(both, cached, Match::Cost::kv_bytes) == 128 * (8 * 4 / 8 + 4 + 12 * 2 / 8 + 4));
  CHECK_FALSE(cost_of(Params("methods", "quantised:granularity=channel"), cached, Match::Cost::kv_bytes));
}

TEST_CASE("a match is a cost and a number above 0", "[unit]") {
  CHECK(parse_match("kv-bytes=1e5").cost == Match::Cost::kv_bytes);
  CHECK(parse_match("keys=32").cost == Match::Cost::keys);
  CHECK(parse_match("flops=1e8").value == 1e8);
  for (const char* text : {"flops", "flops=", "flops=0", "flops=-1", "flops=inf", "flops=1x", "time=1", "=3", ""}) {
    INFO(text);
    CHECK_THROWS_AS(parse_match(text), Misuse);
  }
}

TEST_CASE("cells are matched at each length", "[unit]") {
  RunRequest request{.experiment = "attention-error:matrix=false",
                     .methods = {"performer", "performer:m=7"},
                     .inputs = {"gaussian"},
                     .n = {256, 512},
                     .match = Match{Match::Cost::flops, 1e7}};
  const auto cells = expand(request);
  REQUIRE(cells.size() == 2);  // both methods become one
  CHECK(cells[0].method.integer("m") > cells[1].method.integer("m"));
}

}  // namespace attnbench::match_test
