// Which cells are timed together, and which of them fit into memory at once.
#include "harness/timing/session.hpp"

#include <set>

#include "harness/runner/plan.hpp"
#include "tests/catch.hpp"

namespace attnbench::session_test {

namespace {

std::vector<Cell> cells_of(const std::vector<std::string>& methods, const std::vector<Index>& n,
                           const std::vector<Index>& d = {64}, const std::string& experiment = "speed") {
  return expand({.experiment = experiment,
                 .methods = methods,
                 .inputs = {"gaussian"},
                 .n = n,
                 .d = d,
                 .precision = Precision::f32});
}

std::vector<const Cell*> pointers(const std::vector<Cell>& cells) {
  std::vector<const Cell*> all;
  for (const Cell& cell : cells) all.push_back(&cell);
  return all;
}

}  // namespace

TEST_CASE("methods and lengths share a session, nothing else does", "[unit]") {
  const auto keys = [](const std::vector<Cell>& cells) {
    std::set<std::string> all;
    for (const Cell& cell : cells) all.insert(session_key(cell));
    return all.size();
  };
  CHECK(keys(cells_of({"linear", "softmax", "performer"}, {16, 32, 64})) == 1);
  CHECK(keys(cells_of({"linear"}, {16, 32}, {4, 8})) == 2);
  std::vector<Cell> others = cells_of({"linear"}, {16, 32});
  for (const auto& change : std::vector<std::function<void(Cell&)>>{
           [](Cell& c) { c.threads = 2; }, [](Cell& c) { c.seed = 7; }, [](Cell& c) { c.problem.heads = 2; },
           [](Cell& c) { c.problem.shape.mask.causal = true; },
           [](Cell& c) { c.problem.shape.precision = Precision::f64; },
           [](Cell& c) { c.experiment = Params("experiments", "speed:blocks=5"); },
           [](Cell& c) { c.input = Params("inputs", "ar1"); }}) {
    others.push_back(others[0]);
    change(others.back());
  }
  CHECK(keys(others) == 8);
  others = cells_of({"linear"}, {16, 32});  // as many queries as keys less 5: the diagonal moves with the length
  for (Cell& cell : others) {
    Shape& shape = cell.problem.shape;
    shape.nq -= 5;
    shape.mask = {.causal = true, .offset = shape.nk - shape.nq};
  }
  CHECK(keys(others) == 1);
}

TEST_CASE("a length without softmax has a partner", "[unit]") {
  auto cells = cells_of({"linear", "softmax"}, {16, 32});
  std::erase_if(cells, [](const Cell& c) { return c.method.name() == "softmax" && c.problem.shape.nk == 32; });
  const auto partners = partners_of(pointers(cells));
  REQUIRE(partners.size() == 1);
  CHECK((partners[0].method.spec() == "softmax" && partners[0].problem.shape.nk == 32));
  CHECK(partners_of(pointers(cells_of({"linear"}, {16}, {64}, "speed:pair=false"))).empty());
  // Another form of it is a method like others.
  CHECK(partners_of(pointers(cells_of({"softmax:form=materialised"}, {16}))).size() == 1);
}

TEST_CASE("twelve methods at twelve lengths up to 65536 are one session on 16 GB", "[unit]") {
  const auto cells = cells_of({"softmax", "linear", "performer", "local", "uniform", "cosformer", "nystrom",
                               "linformer", "efficient", "strided", "longformer", "bigbird"},
                              {32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536});
  REQUIRE(cells.size() == 144);
  const auto all = pointers(cells);
  CAPTURE(session_bytes(all));
  CHECK(sessions_that_fit(all, 16e9).size() == 1);
}

TEST_CASE("what does not fit at once is cut between lengths, and the longest stay together", "[unit]") {
  const auto cells = cells_of({"linear", "uniform"}, {4096, 8192, 16384, 32768});
  const auto all = pointers(cells);
  const auto lengths_in = [&](const std::vector<size_t>& session) {
    std::vector<Index> lengths;
    for (const size_t place : session) lengths.push_back(cells[place].problem.shape.nk);
    return lengths;
  };
  const auto whole = sessions_that_fit(all, session_bytes(all));
  REQUIRE(whole.size() == 1);
  CHECK(whole[0] == std::vector<size_t>{0, 1, 2, 3, 4, 5, 6, 7});

  const auto two = sessions_that_fit(all, 0.99 * session_bytes(all));
  REQUIRE(two.size() == 2);
  CHECK(lengths_in(two[0]) == std::vector<Index>{8192, 8192, 16384, 16384, 32768, 32768});
  CHECK(lengths_in(two[1]) == std::vector<Index>{4096, 4096});

  const auto single = sessions_that_fit(all, 1);  // not even one fits: each is tried alone
  CHECK(single.size() == 4);
  for (const auto& session : single) CHECK(session.size() == 2);
}

TEST_CASE("a session has no more workers than a process has descriptors for", "[unit]") {
  std::vector<Index> n;
  for (Index length = 1; length <= 400; ++length) n.push_back(length);
  const auto cells = cells_of({"linear"}, n);
  const auto sessions = sessions_that_fit(pointers(cells), 1e15);
  CHECK(sessions.size() == 3);  // 800 workers: softmax goes with each
}

}  // namespace attnbench::session_test
