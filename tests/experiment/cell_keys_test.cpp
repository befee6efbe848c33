// The identity of a cell: a results file takes two cells of one key for one, and never runs the second.
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/experiment/cell_row.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/experiment/message.hpp"
#include "harness/inputs/tensor_file.hpp"
#include "harness/inputs/write_safetensors.hpp"
#include "tests/catch.hpp"
#include "tests/folder.hpp"
#include "tests/inputs/tensor_bytes.hpp"

namespace attnbench::cell_keys_test {

namespace {

void write_head(const std::filesystem::path& path, double number) {
  const Tensor tensor{{6, 4}, std::vector<double>(24, number)};
  write_safetensors(path, {{"q", tensor}, {"k", tensor}, {"v", tensor}}, Precision::f64);
}

Cell cell_of_file(const std::filesystem::path& path) {
  return {.experiment = Params("experiments", "kernel-error:draws=64,pairs=3"),
          .method = Params("methods", "performer:m=8"),
          .input = Params("inputs", "file:" + path.string()),
          .problem = {.shape = {.nq = 5, .nk = 6, .d = 4, .dv = 3, .mask = {.causal = true, .offset = 1, .keys = 5}},
                      .heads = 2,
                      .logit_scale = 0.5,
                      .rounding = Rounding::f16},
          .seed = 3,
          .threads = 2};
}

// The cell with one field changed, by the field's name. A field that is added to one of these structures changes how
// many names its binding takes, so that this file no longer compiles until the field is here.
std::map<std::string, Cell> changed_in_one_field(const Cell& cell) {
  std::map<std::string, Cell> all;
  const auto add = [&](const std::string& field, const auto& change) {
    all.emplace(field, cell);
    change(all.at(field));
  };
  [[maybe_unused]] const auto& [experiment, method, input, problem, seed, threads] = cell;
  [[maybe_unused]] const auto& [shape, heads, logit_scale, rounding] = problem;
  [[maybe_unused]] const auto& [nq, nk, d, dv, mask, precision] = shape;
  [[maybe_unused]] const auto& [causal, offset, keys] = mask;
  add("experiment", [](Cell& c) { c.experiment = Params("experiments", "attention-error"); });
  add("experiment's option", [](Cell& c) { c.experiment = c.experiment.with("pairs", "4"); });
  add("method", [](Cell& c) { c.method = Params("methods", "linear"); });
  add("method's option", [](Cell& c) { c.method = c.method.with("m", "16"); });
  add("input", [](Cell& c) { c.input = Params("inputs", "gaussian"); });
  add("input's option", [](Cell& c) { c.input = c.input.with("head", "1"); });
  add("nq", [](Cell& c) { ++c.problem.shape.nq; });
  add("nk", [](Cell& c) { ++c.problem.shape.nk; });
  add("d", [](Cell& c) { ++c.problem.shape.d; });
  add("dv", [](Cell& c) { ++c.problem.shape.dv; });
  add("causal", [](Cell& c) { c.problem.shape.mask.causal = false; });
  add("offset", [](Cell& c) { ++c.problem.shape.mask.offset; });
  add("keys", [](Cell& c) { --c.problem.shape.mask.keys; });
  add("precision", [](Cell& c) { c.problem.shape.precision = Precision::f64; });
  add("precision of products", [](Cell& c) { c.problem.shape.precision = Precision::bf16; });
  add("heads", [](Cell& c) { ++c.problem.heads; });
  add("logit_scale", [](Cell& c) { c.problem.logit_scale = std::nextafter(0.5, 1); });
  add("rounding", [](Cell& c) { c.problem.rounding = Rounding::bf16; });
  add("no rounding", [](Cell& c) { c.problem.rounding = Rounding::none; });
  add("seed", [](Cell& c) { ++c.seed; });
  add("threads", [](Cell& c) { ++c.threads; });
  return all;
}

// Fields that the input knows nothing of: cells that differ in them alone share what is exact.
const std::set<std::string> beside_the_input{"experiment", "experiment's option", "method", "method's option",
                                             "threads"};

}  // namespace

TEST_CASE("each field of a cell changes its key by itself, and no two of these cells share one", "[unit]") {
  const Folder folder;
  write_head(folder / "h.safetensors", 1);
  const Cell cell = cell_of_file(folder / "h.safetensors");
  for (const bool timing : {false, true}) {
    std::map<std::string, std::string> seen{{row_of(cell, timing).key, "nothing"}};
    for (const auto& [field, other] : changed_in_one_field(cell)) {
      INFO(field << (timing ? ", timed" : ""));
      const std::string key = row_of(other, timing).key;
      // How many threads compute a statistic changes no number of it (docs/engines.md), and does change a time.
      if (field == "threads" && !timing) {
        CHECK(key == row_of(cell, timing).key);
        continue;
      }
      const auto [found, is_new] = seen.emplace(key, field);
      INFO("the same key as with another " << found->second);
      CHECK(is_new);
    }
  }
  CHECK(row_of(cell, false).key != row_of(cell, true).key);
}

TEST_CASE("what decides the measured head changes the input's key, and nothing else does", "[unit]") {
  const Folder folder;
  write_head(folder / "h.safetensors", 1);
  const Cell cell = cell_of_file(folder / "h.safetensors");
  for (const auto& [field, other] : changed_in_one_field(cell)) {
    INFO(field);
    CHECK((other.input_key() == cell.input_key()) == beside_the_input.contains(field));
  }
}

TEST_CASE("a file of other numbers makes other cells, and the same file again the same", "[unit]") {
  const Folder folder;
  const auto path = folder / "h.safetensors";
  write_head(path, 1);
  const Cell cell = cell_of_file(path);
  const std::string input = cell.input_key(), statistic = row_of(cell, false).key, timing = row_of(cell, true).key;
  write_head(path, 2);
  CHECK(cell.input_key() != input);
  CHECK(row_of(cell, false).key != statistic);
  CHECK(row_of(cell, true).key != timing);
  write_head(path, 1);
  CHECK(cell.input_key() == input);
  CHECK(row_of(cell, false).key == statistic);
}

TEST_CASE("a worker is told every field of a cell", "[unit]") {
  const Folder folder;
  write_head(folder / "h.safetensors", 1);
  for (const auto& [field, other] : changed_in_one_field(cell_of_file(folder / "h.safetensors"))) {
    INFO(field);
    CHECK(row_of(cell_of(to_message(other)), true).key == row_of(other, true).key);
  }
}

}  // namespace attnbench::cell_keys_test
