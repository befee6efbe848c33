// Recommendations from planted numbers, the budgets that are tried, and the commands that choose and compare.
#include <fmt/format.h>

#include "experiments/commands/recommendation.hpp"
#include "experiments/commands/search_space.hpp"
#include "harness/store/store.hpp"
#include "harness/timing/turns.hpp"
#include "tests/misuse.hpp"
#include "tests/program.hpp"
#include "tests/store/results_file.hpp"

namespace attnbench::recommend_test {

namespace {

Estimate between(double low, double high) { return {(low + high) / 2, {low, high}, 12}; }

// Seconds are those of a softmax that takes 1 s.
Candidate candidate(const std::string& method, const Estimate& error, const Estimate& time, double bytes = 100) {
  return {.method = method, .error = error, .time = time, .seconds = time.value, .bytes = bytes};
}

const Candidate exact = candidate("softmax", certain(0), certain(1), 50);
const Estimate small = between(0.005, 0.008), unsure = between(0.005, 0.02), large = between(0.02, 0.03);
const Estimate fast = between(0.2, 0.25), slow = between(1.5, 2);
const Needs one_percent{.error = 0.01};

std::string best_of(const std::vector<Candidate>& candidates, const Needs& needs = one_percent) {
  const auto answer = recommend(candidates, exact, needs);
  return answer.best ? answer.best->method : "nothing";
}

}  // namespace

TEST_CASE("a method that meets the limit with its whole interval and is significantly faster is recommended",
          "[unit]") {
  const auto answer = recommend({candidate("misses", large, fast), candidate("meets", small, fast),
                                 candidate("unsure", unsure, fast), candidate("slow", small, slow)},
                                exact, one_percent);
  REQUIRE(answer.best);
  CHECK(answer.best->method == "meets");
  CHECK(answer.sentence.starts_with("meets is the best answer"));
  std::vector<std::string> order;
  for (const Candidate& c : answer.ranked) order.push_back(c.method);
  CHECK(order == std::vector<std::string>{"meets", "softmax", "slow", "unsure", "misses"});
}

TEST_CASE("exact softmax is recommended unless something is significantly better", "[unit]") {
  CHECK(best_of({}) == "softmax");
  CHECK(best_of({candidate("misses", large, fast)}) == "softmax");
  CHECK(best_of({candidate("unsure", unsure, fast)}) == "softmax");
  CHECK(best_of({candidate("slow", small, slow)}) == "softmax");
  CHECK(best_of({candidate("as fast", small, between(0.9, 1.1))}) == "softmax");
  const auto doubt =
      recommend({candidate("unsure", unsure, fast), candidate("slow", unsure, slow)}, exact, one_percent);
  CHECK(contains(doubt.sentence, "exact softmax is the best answer"));
  CHECK(doubt.sentence.ends_with("not decided: unsure"));  // what is slower cannot be the answer
  CHECK_FALSE(contains(recommend({candidate("m", large, fast)}, exact, one_percent).sentence, "not decided"));
}

TEST_CASE("of those that time does not tell apart the one with the least error is recommended", "[unit]") {
  const Candidate fastest = candidate("fastest", between(0.008, 0.009), between(0.20, 0.24));
  const Candidate tied = candidate("tied", between(0.001, 0.002), between(0.22, 0.26));
  const Candidate slower = candidate("slower", between(0, 0.0001), between(0.5, 0.6));
  CHECK(best_of({fastest, tied, slower}) == "tied");
  CHECK(best_of({slower, fastest}) == "fastest");
  CHECK(contains(recommend({fastest, tied, slower}, exact, one_percent).sentence,
                 "as fast within the noise, with no smaller error: fastest"));
}

TEST_CASE("memory is a limit of softmax as well, and then what meets it need not be faster", "[unit]") {
  const Needs tight{.error = 0.01, .bytes = 40};
  CHECK(best_of({candidate("large", small, fast, 41)}, tight) == "nothing");
  CHECK(best_of({candidate("large", small, fast, 41), candidate("fits", small, slow, 40)}, tight) == "fits");
  Candidate unknown = candidate("unknown", small, fast);
  unknown.bytes = std::nullopt;
  CHECK(fit_of(unknown, one_percent) == Fit::meets);
  CHECK(fit_of(unknown, tight) == Fit::ambiguous);
  const auto nothing = recommend({unknown}, exact, tight);
  CHECK_FALSE(nothing.best);
  CHECK(contains(nothing.sentence,
                 "no method has, with its whole interval, an error of at most 0.01 and at most 40 B of memory"));
  CHECK(contains(nothing.sentence, "not decided: unknown"));
}

TEST_CASE("budgets are powers of two that cost at most half of softmax, and stated ones stay", "[unit]") {
  const Shape shape{.nq = 1024, .nk = 1024, .d = 64, .dv = 64, .precision = Precision::f32};
  const auto specs_of = [&](const std::vector<std::string>& methods, const Shape& of) {
    std::vector<std::string> specs;
    for (const Params& params : search_space(methods, of).candidates) specs.push_back(params.spec());
    return specs;
  };
  using Specs = std::vector<std::string>;
  CHECK(specs_of({"local"}, shape) ==
        Specs{"local:window=8", "local:window=16", "local:window=32", "local", "local:window=128", "local:window=256"});
  CHECK(specs_of({"local:window=100", "linear", "softmax"}, shape) == Specs{"local:window=100", "linear"});
  CHECK(specs_of({"top-k"}, shape) == Specs{"top-k"});  // all of its logits are exact
  const double most = find<MethodEntry>("softmax").cost(Params("methods", "softmax"), shape).flops / 2;
  const SearchSpace all = search_space({}, shape);
  CHECK(all.candidates.size() > catalogue("methods").names().size());
  for (const Params& params : all.candidates) {
    INFO(params.spec());
    CHECK(params.name() != "softmax");
    CHECK(params.name() != "per-head");
    for (const Parameter& parameter : params.declared())
      if (parameter.budget && params.text(parameter.name) != parameter.default_value)
        CHECK(find<MethodEntry>(params.name()).cost(params, shape).flops <= most);
  }
  Shape causal = shape;
  causal.mask.causal = true;
  const SearchSpace none = search_space({"linformer"}, causal);
  CHECK(none.candidates.empty());
  REQUIRE(none.without_form.size() == 1);
  CHECK(contains(none.without_form[0], "linformer: every projected key mixes all tokens"));
  CHECK(contains(misuse_of([&] { search_space({"perfomer"}, shape); }), "performer"));
}

TEST_CASE("recommend measures once, answers again from the store, and refuses what cannot be", "[end-to-end]") {
  const Folder folder;
  const std::string results = " --results " + (folder / "r.db");
  const auto refused = [&](const std::string& options, const std::string& expected) {
    const auto outcome = program("recommend " + options + results);
    INFO(options << "\n" << outcome.text);
    CHECK(outcome.code == 2);
    CHECK(contains(outcome.text, expected));
  };
  refused("--max-error 0", "expected a number above 0");
  refused("--max-error nan", "expected a number above 0");
  refused("--max-memory lots", "such as 4GB");
  refused("-n 0", "at least 1");
  refused("--input gausian", "did you mean gaussian?");
  refused("--input file:absent.safetensors", "absent.safetensors");
  refused("--methods perfomer", "performer");
  refused("--methods linear,,local", "an empty spec");
  refused("--methods softmax", "no candidate is left");
  refused("--methods linformer --causal", "every projected key mixes all tokens");
  refused("--causal --bidirectional", "exclude each other");
  refused("--input gaussian --input model:layer=0,head=0", "heads of different shapes");
  CHECK_FALSE(std::filesystem::exists(folder / "r.db"));

  // The identity of V is far off on independent tokens, so that exact softmax wins at all measured times.
  const std::string request = "recommend -n 64 --methods identity,performer:features=trig,m=8" + results;
  const auto first = program(request);
  INFO(first.text);
  CHECK(first.code == 0);
  CHECK(first.text.starts_with("exact softmax is the best answer"));
  CHECK(contains(first.text, "2 candidates: 0 timed, 2 err too much"));
  CHECK(program(request).text == first.text);
  const auto several = program(request + " --input gaussian --input gaussian:scale=2");
  CHECK(several.code == 0);
  CHECK(contains(several.text, "2 candidates: 0 timed, 2 err too much"));
  const std::string lenient = "recommend -n 64 --methods uniform --max-error 2" + results;
  const auto timed = program(lenient);
  INFO(timed.text);
  CHECK(timed.code == 0);
  CHECK(contains(timed.text, "1 candidates: 1 timed, 0 err too much"));
  CHECK(contains(timed.text, "meets limits"));
  CHECK(program(lenient).text == timed.text);
  const auto nothing = program(request + " --max-memory 1B");
  CHECK(nothing.code == 1);
  CHECK(nothing.text.starts_with(
      "no method has, with its whole interval, an error of at most 0.05 and at most 1 B of memory"));
}

TEST_CASE("compare says who wins where, and what two files judge otherwise", "[end-to-end]") {
  const Folder folder;
  const std::string file = folder / "r.db";
  REQUIRE(program("run attention-error:matrix=false --method linear --method performer:m=8 --method uniform "
                  "-n 64 -n 96 -d 8 --replicates 15 --results " +
                  file)
              .code == 0);
  const auto won =
      program("compare " + file + " --method performer:projection=orthogonal,m=8 --method linear --metric output_mse");
  INFO(won.text);
  CHECK(won.code == 0);
  CHECK(contains(won.text, "A = performer:m=8\nB = linear\n"));
  CHECK(contains(won.text, "output_mse (1, less is better): A wins at 0 of 2, B at 2, 0 UNDECIDED, 0 SAME"));
  CHECK(contains(won.text, "B BETTER"));
  const auto refused = [&](const std::string& arguments, const std::string& expected) {
    const auto outcome = program("compare " + arguments);
    INFO(arguments << "\n" << outcome.text);
    CHECK(outcome.code == 2);
    CHECK(contains(outcome.text, expected));
  };
  refused(file + " --method linear --method vq", "this run would make them: attnbench run");
  refused(file + " --method linear", "one file and two methods");
  refused(file + " " + file + " --method linear --method uniform", "one file and two methods");
  refused(file + " --method linear --method linear:features=elu", "both methods are linear");
  refused(file + " --method linear --method uniform --metric seconds", "it has flops");
  refused(file, "expected two results files");

  const auto same = program("compare " + file + " " + file);
  INFO(same.text);
  CHECK(same.code == 0);
  CHECK(contains(same.text, "bit for bit equal"));
}

TEST_CASE("compare tells a claim that got worse from one that is no longer decided, by its exit code", "[end-to-end]") {
  using enum Ruling;
  const Folder folder;
  const auto judged = [&](const char* name, Ruling ruling) {
    Store store(folder / name);
    store.put_reproduction(
        {.recipe = "r",
         .size = "quick",
         .command = "attnbench reproduce r",
         .seconds = 1,
         .cells = {},
         .verdicts = {{{.text = "S", .source = "a paper", .expected = holds}, {ruling, "numbers"}}}});
    return folder / name;
  };
  const auto before = judged("before.db", holds), worse = judged("worse.db", refuted),
             neither = judged("open.db", open);
  const auto same = program("compare " + before + " " + before);
  INFO(same.text);
  CHECK(same.code == 0);
  CHECK(contains(same.text, "1 claims in both: 1 SAME"));
  const auto changed = program("compare " + before + " " + worse);
  INFO(changed.text);
  CHECK(changed.code == 1);
  CHECK(contains(changed.text, "WORSE      HOLDS -> REFUTED (expected HOLDS)  r: S"));
  const auto undecided = program("compare " + before + " " + neither);
  INFO(undecided.text);
  CHECK(undecided.code == 3);
  CHECK(contains(undecided.text, "UNDECIDED"));
}
TEST_CASE("recommend names a method whose float and double disagree", "[end-to-end]") {
  const Folder folder;
  // gated:mistake=2 of tests/mistakes multiplies its output in float by 1.05.
  const auto recommended = [&](const std::string& method) {
    return program(fmt::format("recommend --methods {} --causal -n 64 --max-error 10 --results {}", method,
                               folder / "r.db"),
                   "2> /dev/null", ATTNBENCH_FAULTY)
        .text;
  };
  // Its weights have one sign, so nothing cancels: speed calls it invalid, which excludes it.
  CHECK(contains(recommended("gated:mistake=2"),
                 "1 could not be measured; the first: gated:mistake=2 invalid: float differs from double by 5.0e-02"));
  CHECK(contains(rounding_warning("trig", 0.011), "trig: float differs from double by 1.1e-02 of the output's norm"));
  CHECK(rounding_warning("trig", 0.009).empty());
  CHECK_FALSE(contains(recommended("gated"), "warning"));
}

}  // namespace attnbench::recommend_test
