// Recorded rows of trained models, as the experiment `training` and its input read them.
#include <cstdlib>
#include <string>

#include "experiments/trained_rows.hpp"
#include "harness/inputs/input.hpp"
#include "harness/runner/plan.hpp"
#include "tests/experiments/measured.hpp"
#include "tests/experiments/recorded_rows.hpp"
#include "tests/misuse.hpp"

namespace attnbench::training_test {

namespace {

std::string row(const std::string& attention, int seed, const std::string& ending = "done", int redraw = 0,
                const std::string& numbers = RecordedRow{}.numbers) {
  return RecordedRow{.attention = attention, .seed = seed, .ending = ending, .redraw = redraw, .numbers = numbers}
      .line();
}

Cell cell_of(const std::string& method, bool causal = true, Index n = 12, const std::string& experiment = "training") {
  return {.experiment = Params("experiments", experiment),
          .method = Params("methods", method),
          .input = Params("inputs", "trained:task=copying"),
          .problem = {.shape = {.nq = n, .nk = n, .d = 4, .dv = 4, .mask = {.causal = causal}}}};
}

}  // namespace

TEST_CASE("training: a replicate is the row of its seed, method and redraw", "[unit]") {
  const RecordedRows rows(row("linear:features=elu", 1) + row("linear", 2, "done", 0, R"("held_out_bits": 2.5)") +
                          row("linear", 1, "done", 7, R"("held_out_bits": 3.5)"));
  const Measured first = measured(cell_of("linear"));
  CHECK(first["held_out_bits"] == 1.5);
  CHECK(first.values.at("curve") == std::vector<double>{3, 2.5, 1.5});
  CHECK(measured(cell_of("linear"), 1)["held_out_bits"] == 2.5);
  CHECK(measured(cell_of("linear", true, 12, "training:redraw=7"))["held_out_bits"] == 3.5);
}

TEST_CASE("training: a model that was not trained is skipped with the command that trains it", "[unit]") {
  const RecordedRows rows(row("linear", 1));
  const std::string reason = skip_of(cell_of("performer:m=8", true, 12, "training:redraw=2"));
  CHECK(contains(reason, "--task copying --attention performer:m=8 --seeds 1 --redraw 2"));
}

TEST_CASE("training: a failed row fails with its reason", "[unit]") {
  const RecordedRows rows(row("linear", 1, "failed", 0, ""));
  try {
    measured(cell_of("linear"));
    FAIL("it did not fail");
  } catch (const std::runtime_error& e) {
    CHECK(std::string(e.what()) == "the training loss is nan at step 3");
  }
}

TEST_CASE("training: another mask, length or input than models were trained with is refused", "[unit]") {
  const RecordedRows rows(row("linear", 1));
  CHECK(contains(misuse_of([] { measured(cell_of("linear", false)); }), "give --causal"));
  CHECK(contains(misuse_of([] { measured(cell_of("linear", true, 10)); }), "with 12 tokens, and n=10 was asked for"));
  Cell other = cell_of("linear");
  other.input = Params("inputs", "gaussian");
  CHECK(contains(misuse_of([&] { measured(other); }), "--input trained:task=copying"));
}

TEST_CASE("trained: a task has the sizes and seeds of its rows, and no heads", "[unit]") {
  const RecordedRows rows(row("linear", 1) + row("softmax", 3));
  const auto& entry = find<InputEntry>("trained");
  const InputLimits limits = entry.limits(Params("inputs", "trained:task=copying"));
  CHECK((limits.keys == 12 && limits.queries == 12 && limits.d == 4 && limits.dv == 4 && limits.replicates == 3));
  CHECK(entry.limits(Params("inputs", "trained:task=recall")).replicates == 0);
  CHECK(contains(misuse_of([&] { entry.draw(Params("inputs", "trained:task=copying"), {.streams = Streams(1)}); }),
                 "draws no heads"));
}

TEST_CASE("trained rows: seeds count from 1 as far as every attention has them", "[unit]") {
  const RecordedRows rows(row("linear", 1) + row("linear", 2) + row("linear", 4) + row("softmax", 2) +
                          row("softmax", 1) + row("performer:m=8", 1, "done", 1));
  CHECK(trained_seeds("copying", {{"linear:features=elu", 0}}) == 2);
  CHECK(trained_seeds("copying", {{"linear", 0}, {"softmax", 0}}) == 2);
  CHECK(trained_seeds("copying", {{"linear", 0}, {"performer:m=8", 1}}) == 1);
  CHECK(trained_seeds("copying", {{"performer:m=8", 0}}) == 0);
  CHECK(trained_seeds("recall", {{"linear", 0}}) == 0);
}

TEST_CASE("trained rows: a line that is no row is named", "[unit]") {
  for (const std::string bad : {"{}\n", "not JSON\n", "[1]\n"}) {
    const RecordedRows rows(row("linear", 1) + bad);
    CHECK(contains(misuse_of([] { trained_rows(); }), "rows.jsonl, line 2: expected the row of a trained model"));
  }
  const RecordedRows rows(row("linear", 1));
  setenv("ATTNBENCH_TRAINED", "/nowhere/rows.jsonl", 1);
  CHECK(contains(misuse_of([] { trained_rows(); }), "set ATTNBENCH_TRAINED"));
}

}  // namespace attnbench::training_test
