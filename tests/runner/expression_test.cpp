// Arithmetic on measurements: precedence, functions, replicates that some name lacks, and what is refused.
#include "harness/runner/expression.hpp"

#include <cmath>

#include "tests/catch.hpp"
#include "tests/misuse.hpp"

namespace attnbench {
namespace {

// a is 1, 2, 3 over replicates, b is 4 in each, n is a size; all.x has two cells, all.y the same in the other order.
std::vector<Samples> numbers(const Expression::Reference& reference) {
  if (reference.selection == "all")
    return reference.name == "x" ? std::vector<Samples>{{{0, 1.0}, {1, 7.0}}, {{0, 5.0}, {1, 2.0}}}
                                 : std::vector<Samples>{{{0, 2.0}, {1, 9.0}}, {{0, 1.0}, {1, 4.0}}};
  if (reference.name == "a") return {{{0, 1.0}, {1, 2.0}, {2, 3.0}}};
  if (reference.name == "b") return {{{0, 4.0}, {1, 4.0}, {2, 4.0}}};
  if (reference.name == "later") return {{{1, 10.0}, {2, 20.0}}};
  if (reference.name == "none") return {Samples{}};
  return {{{0, 512.0}}};  // n
}

Samples value(const std::string& text) { return Expression(text).value(numbers); }
double constant(const std::string& text) { return value(text).at(0); }

}  // namespace

TEST_CASE("operators bind as in mathematics", "[unit]") {
  for (const auto& [text, wanted] : std::vector<std::pair<std::string, double>>{
           {"2 + 3 * 4", 14}, {"(2 + 3) * 4", 20}, {"2 - 3 - 4", -5}, {"24 / 4 / 2", 3},      {"2 ^ 3 ^ 2", 512},
           {"-2 ^ 2", -4},    {"2 ^ -1", 0.5},     {"2 * -3", -6},    {"1e-3 * 1e3", 1},      {"0 / 0", 1},
           {"abs(-3)", 3},    {"sqrt(9)", 3},      {"cbrt(27)", 3},   {"log(exp(2))", 2},     {"log2(8)", 3},
           {"min(2, 3)", 2},  {"max(2, 3)", 3},    {"mod(8, 3)", 2},  {"0.5 / n", 0.5 / 512}, {"abs(n - 512)", 0}}) {
    INFO(text);
    CHECK(constant(text) == Approx(wanted).epsilon(1e-15));
  }
  CHECK(std::isinf(constant("1 / 0")));
}

TEST_CASE("names are taken replicate by replicate, and what nothing draws goes with every replicate", "[unit]") {
  CHECK(value("a / b") == Samples{{0, 0.25}, {1, 0.5}, {2, 0.75}});
  CHECK(value("1 - a") == Samples{{0, 0.0}, {1, -1.0}, {2, -2.0}});
  CHECK(value("n * a") == Samples{{0, 512.0}, {1, 1024.0}, {2, 1536.0}});
  CHECK(value("later - a") == Samples{{1, 8.0}, {2, 17.0}});
  CHECK(value("a + none").empty());
}

TEST_CASE("functions over cells take all cells of a selection, replicate by replicate", "[unit]") {
  CHECK(value("least(all.x)") == Samples{{0, 1.0}, {1, 2.0}});
  CHECK(value("greatest(all.x)") == Samples{{0, 5.0}, {1, 7.0}});
  CHECK(value("sum(all.x)") == Samples{{0, 6.0}, {1, 9.0}});
  CHECK(value("mean(all.x) / 2") == Samples{{0, 1.5}, {1, 2.25}});
  CHECK(value("rank_correlation(all.x, all.y)") == Samples{{0, -1.0}, {1, 1.0}});
  CHECK(value("sum(all.x * all.y - 1)") == Samples{{0, 5.0}, {1, 69.0}});  // 1 2 + 5 1 - 2 and 7 9 + 2 4 - 2
  CHECK(value("sum(all.x / n) * n") == Samples{{0, 6.0}, {1, 9.0}});
  CHECK(value("exponent(all.x, all.y)").at(0) == Approx(std::log(5.0) / std::log(0.5)));
  CHECK(value("crossing(all.x, all.y)") == Samples{{0, 0.0}, {1, 0.0}});
  const auto references = Expression("least(all.x) - a").references();
  REQUIRE(references.size() == 2);
  CHECK((references[0].selection == "all" && references[0].name == "x" && references[0].several_cells));
  CHECK((references[1].selection.empty() && references[1].name == "a" && !references[1].several_cells));
}

TEST_CASE("what is no expression is refused with its place", "[unit]") {
  for (const auto& [text, says] :
       std::vector<std::pair<std::string, std::string>>{{"", "character 1: expected a number, a name or '('"},
                                                        {"1 +", "character 4"},
                                                        {"1 2", "character 3: given '2'"},
                                                        {"(1", "expected ')'"},
                                                        {"a.", "the name of a metric"},
                                                        {"sqr(2)", "there is no function 'sqr'; did you mean sqrt"},
                                                        {"min(1)", "expected ','"},
                                                        {"least(sum(all.x))", "within a function over cells"},
                                                        {"at(a, b)", "the place in the array"},
                                                        {"rank_correlation(all.x)", "expected ','"},
                                                        {"1 $ 2", "given '$'"},
                                                        {std::string(60, '(') + "1" + std::string(60, ')'), "brackets"},
                                                        {std::string(1'001, '1'), "at most 1000"}}) {
    INFO(text);
    const std::string message = misuse_of([&, &given = text] { Expression all(given); });
    INFO(message);
    CHECK(message.find(says) != std::string::npos);
  }
}

}  // namespace attnbench
