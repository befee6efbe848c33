// The table of the reference: how it is read, and which verdicts count as different from it.
#include "harness/store/reference.hpp"

#include <fstream>

#include "harness/store/csv.hpp"
#include "tests/folder.hpp"
#include "tests/misuse.hpp"

namespace attnbench::reference_test {

namespace {

using Rows = std::vector<std::vector<std::string>>;

Reference read(const std::string& table) {
  const Folder folder;
  std::ofstream(folder / "verdicts.csv", std::ios::binary) << table;
  return read_reference(folder / "verdicts.csv");
}

}  // namespace

TEST_CASE("a field of a table in quotes may hold commas, line breaks and quotes", "[unit]") {
  CHECK(rows_of_csv("a,b\n1,2\n") == Rows{{"a", "b"}, {"1", "2"}});
  CHECK(rows_of_csv("\"a, b\",\"two\nlines\r\n\",\"say \"\"no\"\"\"\n,\"\",x") ==
        Rows{{"a, b", "two\nlines\r\n", "say \"no\""}, {"", "", "x"}});
  CHECK(rows_of_csv("a,b\r\n\r\nc,\r\n") == Rows{{"a", "b"}, {"c", ""}});
  CHECK(rows_of_csv("a \"b\" c\n") == Rows{{"a \"b\" c"}});
  CHECK(rows_of_csv("\"\"\"\"") == Rows{{"\""}});
  CHECK(rows_of_csv("").empty());
  CHECK_THAT(misuse_of([] { rows_of_csv("a,\"b\nc"); }), ContainsSubstring("the quote at byte 2 is not closed"));
  CHECK_THAT(misuse_of([] { rows_of_csv("\"a\"b,c"); }), ContainsSubstring("at byte 3: expected a comma"));
}

TEST_CASE("the reference is read by the names of its columns, and a damaged one is refused", "[unit]") {
  const Reference found =
      read("outcome,recipe,statement,size\nHOLDS,a,\"x, or \"\"y\"\"\",full\nOPEN,b,'-1 is,quick\n");
  REQUIRE(found.size() == 2);
  CHECK(found.at({"a", "x, or \"y\""}).ruling == Ruling::holds);
  CHECK(found.at({"a", "x, or \"y\""}).size == "full");
  CHECK(found.at({"b", "-1 is"}).ruling == Ruling::open);  // verdicts.py put the apostrophe there
  CHECK(found.at({"b", "-1 is"}).size == "quick");
  const auto refused = [](const std::string& table) { return misuse_of([&] { read(table); }); };
  CHECK_THAT(refused(""), ContainsSubstring("it is empty"));
  CHECK_THAT(refused("recipe,size,statement\n"), ContainsSubstring("names no column 'outcome'"));
  CHECK_THAT(refused("recipe,size,statement,outcome\na,full\n"), ContainsSubstring("row 1 has 2 fields"));
  CHECK_THAT(refused("recipe,size,statement,outcome\na,full,s,MAYBE\n"), ContainsSubstring("the outcome 'MAYBE'"));
  CHECK_THAT(misuse_of([] { read_reference("/absent/verdicts.csv"); }),
             ContainsSubstring("the reference /absent/verdicts.csv: it cannot be read"));
}

TEST_CASE("the program has the reference of this tree", "[unit]") {
  const Reference found = read_reference(reference_file());
  const auto& refuted = found.at(
      {"published-bugs",
       "Each of seven ways in which published libraries depart from the Performer's random features leaves the "
       "estimate of the kernel unbiased"});
  CHECK(refuted.ruling == Ruling::refuted);
  CHECK(refuted.size == "full");
}

}  // namespace attnbench::reference_test
