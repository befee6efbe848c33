// The last lines of attnbench reproduce, for made-up tallies.
#include "harness/cli/reproduction_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "tests/catch.hpp"

namespace attnbench::reproduction_summary_test {

namespace {

// Recipes that each have a topic of their own, a verdict against the expectation and a cell that is not done.
Tally tally_of(size_t recipes) {
  Tally tally{.size = RecipeSize::quick};
  for (size_t i = 0; i < recipes; ++i) {
    Reproduction done{.recipe = fmt::format("recipe-{:02}", i)};
    Verdict verdict;
    verdict.statement.text = "a statement " + std::string(200, 'x');
    verdict.statement.expected = Ruling::holds;
    verdict.finding.ruling = Ruling::refuted;
    done.verdicts = {verdict};
    RunSummary ran;
    ran.not_done = 1;
    ran.first_reason = "signal 11";
    tally.add(done, fmt::format("topic-{:02}", i), ran);
  }
  return tally;
}

}  // namespace

TEST_CASE("the summary of a reproduction counts rulings by topic and names what is not as expected", "[unit]") {
  Tally tally = tally_of(2);
  const std::string text = summary_of(tally, std::string::npos);
  CHECK_THAT(text, ContainsSubstring("\nmeasured by  recipes  REFUTED\n"));
  CHECK_THAT(text, ContainsSubstring("\ntopic-01           1        1\n"));
  CHECK_THAT(text, ContainsSubstring("\n2 verdicts in 0 s: 2 REFUTED; 2 not as expected\n  recipe-00: a statement x"));
  CHECK_THAT(text, ContainsSubstring("\n2 recipes have cells that are not done\n  recipe-00: 1 not done, the first: "));
  tally.size = RecipeSize::smoke;
  CHECK_THAT(summary_of(tally, std::string::npos), ContainsSubstring("at these sizes they have no meaning"));
}

TEST_CASE("the summary of a reproduction has at most 40 lines with the page's, however many recipes ran", "[unit]") {
  for (const size_t recipes : {1u, 8u, 30u, 100u}) {
    const std::string text = summary_of(tally_of(recipes), std::string::npos);
    CHECK(std::count(text.begin(), text.end(), '\n') < static_cast<std::ptrdiff_t>(most_summary_lines));
    CHECK_THAT(text, ContainsSubstring(fmt::format("\n{} verdicts", recipes)) ||
                         ContainsSubstring("1 verdicts in 0 s: 1 REFUTED"));
  }
  CHECK_THAT(summary_of(tally_of(100), std::string::npos),
             ContainsSubstring("and 79 more\n\n100 verdicts") && ContainsSubstring("  and 95 more\n"));
}

}  // namespace attnbench::reproduction_summary_test
