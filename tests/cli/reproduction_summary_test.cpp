// The last lines and the exit code of attnbench reproduce, for made-up tallies.
#include "harness/cli/reproduction_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "tests/catch.hpp"

namespace attnbench::reproduction_summary_test {

namespace {

constexpr size_t no_limit = std::string::npos;

Verdict verdict(const std::string& text, Ruling found, Ruling expected = Ruling::holds) {
  Verdict made;
  made.statement.text = text;
  made.statement.expected = expected;
  made.finding.ruling = found;
  return made;
}

// Recipes that each have a topic of their own, a verdict that differs from the reference, one that is not in it and not
// as expected, and a cell that crashed.
Tally tally_of(size_t recipes) {
  Tally tally{.size = RecipeSize::quick};
  for (size_t i = 0; i < recipes; ++i) {
    Reproduction done{.recipe = fmt::format("recipe-{:02}", i)};
    const std::string text = "a statement " + std::string(200, 'x');
    tally.reference[{done.recipe, text}] = {"full", Ruling::depends};
    done.verdicts = {verdict(text, Ruling::refuted), verdict("new", Ruling::refuted)};
    RunSummary ran;
    ran.not_done = ran.failed = 1;
    ran.first_reason = "signal 11";
    tally.add(done, fmt::format("topic-{:02}", i), ran);
  }
  return tally;
}

// The tally of one recipe, "r", whose cells ended as this summary says.
Tally tally_of(const RunSummary& ran) {
  Tally tally{.size = RecipeSize::quick};
  tally.add({.recipe = "r"}, "t", ran);
  return tally;
}

}  // namespace

TEST_CASE("the summary of a reproduction counts rulings by topic and lists what differs from the reference", "[unit]") {
  const std::string text = summary_of(tally_of(2), no_limit);
  CHECK_THAT(text, ContainsSubstring("\nmeasured by  recipes  REFUTED\n"));
  CHECK_THAT(text, ContainsSubstring("\ntopic-01           1        2\n"));
  CHECK_THAT(text, ContainsSubstring("\n4 verdicts in 0 s: 4 REFUTED\n"
                                     "compared with the reference: 2 different (the reference was made with --full, "
                                     "which may be why)\n"
                                     "not in the reference: 2 verdicts, 2 not as expected\n"
                                     "  recipe-00: REFUTED, in the reference DEPENDS: a statement x"));
  CHECK_THAT(text, ContainsSubstring("\n  recipe-01: REFUTED, expected HOLDS: new\n"));
  CHECK_THAT(text, ContainsSubstring("\n2 recipes have cells that are not done; cells of 2 failed: --retry runs them "
                                     "again\n  recipe-00: 1 failed; the first: signal 11\n"));
}

TEST_CASE("a verdict is the same as in the reference, OPEN in one of the two, or different", "[unit]") {
  const auto compared = [](Ruling here, Ruling there) {
    Tally tally{.size = RecipeSize::full, .reference = {{{"r", "s"}, {"full", there}}}};
    tally.add({.recipe = "r", .verdicts = {verdict("s", here)}}, "t", {});
    CHECK(exit_code(tally, false) == 0);
    CHECK(exit_code(tally, true) == (tally.differences.empty() ? 0 : 1));
    return summary_of(tally, no_limit);
  };
  const std::string begin = "compared with the reference: ";
  // The expectation of the author (HOLDS) does not count where the reference has the statement.
  CHECK_THAT(compared(Ruling::refuted, Ruling::refuted), ContainsSubstring("1 REFUTED\n" + begin + "1 the same\n"));
  CHECK_THAT(compared(Ruling::open, Ruling::open), ContainsSubstring(begin + "1 the same\n"));
  CHECK_THAT(compared(Ruling::open, Ruling::holds), ContainsSubstring(begin + "1 OPEN in one of the two\n"));
  CHECK_THAT(compared(Ruling::depends, Ruling::open), ContainsSubstring(begin + "1 OPEN in one of the two\n"));
  CHECK_THAT(compared(Ruling::holds, Ruling::depends),
             ContainsSubstring(begin + "1 different\n  r: HOLDS, in the reference DEPENDS: s\n"));
}

TEST_CASE("verdicts that the reference lacks are compared with what their author expected", "[unit]") {
  Tally tally{.size = RecipeSize::quick, .reference = {{{"r", "s"}, {"full", Ruling::holds}}}};
  tally.add({.recipe = "other", .verdicts = {verdict("s", Ruling::holds), verdict("open", Ruling::open)}}, "t", {});
  CHECK_THAT(summary_of(tally, no_limit),
             ContainsSubstring("1 HOLDS, 1 OPEN\nnot in the reference: 2 verdicts, 0 not as expected\n"));
  CHECK(exit_code(tally, true) == 0);
  tally.add({.recipe = "r", .verdicts = {verdict("reworded", Ruling::depends)}}, "t", {});
  CHECK_THAT(summary_of(tally, no_limit),
             ContainsSubstring("\nnot in the reference: 3 verdicts, 1 not as expected\n  r: DEPENDS, expected HOLDS: "
                               "reworded\n"));
  CHECK(exit_code(tally, false) == 0);
  CHECK(exit_code(tally, true) == 1);
}

TEST_CASE("without a reference the summary says why, and at smoke sizes that verdicts have no meaning", "[unit]") {
  Tally tally{.size = RecipeSize::quick, .no_reference = "it was made without --set"};
  tally.add({.recipe = "r", .verdicts = {verdict("s", Ruling::refuted)}}, "t", {});
  CHECK(summary_of(tally, no_limit) ==
        "1 verdict in 0 s: 1 REFUTED\nnot compared with the reference: it was made without --set\n1 not as "
        "expected\n  r: REFUTED, expected HOLDS: s\n");
  Tally smoke{.size = RecipeSize::smoke, .reference = {{{"r", "s"}, {"full", Ruling::holds}}}};
  smoke.add({.recipe = "r", .verdicts = {verdict("s", Ruling::refuted)}}, "t", {});
  CHECK(summary_of(smoke, no_limit) == "1 verdict in 0 s: 1 REFUTED; at these sizes they have no meaning\n");
  CHECK(exit_code(smoke, false) == 0);
}

TEST_CASE("a reproduction fails if a cell failed, now or before, and not if it was skipped", "[unit]") {
  RunSummary skipped;
  skipped.not_done = 3;
  skipped.first_reason = "odd sizes";
  CHECK(exit_code(tally_of(skipped), true) == 0);
  CHECK_THAT(summary_of(tally_of(skipped), no_limit),
             ContainsSubstring("\n1 recipe has cells that are not done\n  r: 3 skipped or not finite; the first: odd "
                               "sizes\n"));
  RunSummary failed = skipped;
  failed.failed = 1;
  CHECK(exit_code(tally_of(failed), false) == 1);
  CHECK_THAT(summary_of(tally_of(failed), no_limit),
             ContainsSubstring("\n  r: 1 failed, 2 skipped or not finite; the first: odd sizes\n"));
  RunSummary before;
  before.failed_before = 2;
  CHECK(exit_code(tally_of(before), false) == 1);
  CHECK_THAT(summary_of(tally_of(before), no_limit), ContainsSubstring("\n  r: 2 had failed before\n"));
}

TEST_CASE("the reason that a sum of runs gives is that of a failure, if any cell failed", "[unit]") {
  const auto run = [](size_t not_done, size_t failed, const std::string& reason) {
    RunSummary made;
    made.not_done = not_done;
    made.failed = failed;
    made.first_reason = reason;
    return made;
  };
  const auto reason = [](RunSummary sum, const RunSummary& other) { return (sum += other).first_reason; };
  const RunSummary none, skipped = run(1, 0, "skipped"), failed = run(2, 1, "failed");
  CHECK(reason(none, skipped) == "skipped");
  CHECK(reason(skipped, none) == "skipped");
  CHECK(reason(skipped, failed) == "failed");
  CHECK(reason(failed, skipped) == "failed");
  CHECK(reason(failed, run(1, 1, "later")) == "failed");
  CHECK(reason(skipped, run(1, 0, "later")) == "skipped");
}

TEST_CASE("the summary of a reproduction has at most 40 lines with the page's, however many recipes ran", "[unit]") {
  for (const size_t recipes : {1u, 8u, 30u, 100u}) {
    const std::string text = summary_of(tally_of(recipes), no_limit);
    CHECK(std::count(text.begin(), text.end(), '\n') < static_cast<std::ptrdiff_t>(most_summary_lines));
    CHECK_THAT(text, ContainsSubstring(fmt::format("\n{} verdicts", 2 * recipes)) ||
                         ContainsSubstring("2 verdicts in 0 s: 2 REFUTED"));
  }
  CHECK_THAT(summary_of(tally_of(100), no_limit), ContainsSubstring("and 81 more\n\n200 verdicts") &&
                                                      ContainsSubstring("  and 195 more\n") &&
                                                      ContainsSubstring("  and 95 more\n"));
}

}  // namespace attnbench::reproduction_summary_test
