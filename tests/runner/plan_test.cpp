// From a request to its cells: what axes mean, what they apply to, and what is refused.
#include "harness/runner/plan.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "harness/experiment/cell_row.hpp"
#include "harness/inputs/tensor_file.hpp"
#include "harness/inputs/write_safetensors.hpp"
#include "harness/random/streams.hpp"
#include "tests/folder.hpp"
#include "tests/misuse.hpp"

namespace attnbench::plan_test {
namespace fs = std::filesystem;

namespace {

using Texts = std::vector<std::string>;

std::string misuse_of_axis(const std::string& text) {
  return misuse_of([&] { parse_axis(text); });
}

RunRequest request(Texts methods, std::vector<Axis> sweep = {}) {
  return {.experiment = "rank", .methods = std::move(methods), .inputs = {"gaussian"}, .sweep = std::move(sweep)};
}

std::string misuse_of_request(const RunRequest& wanted) {
  return misuse_of([&] { expand(wanted); });
}

template <class Get>
auto each(const std::vector<Cell>& cells, Get&& get) {
  std::vector<decltype(get(cells.front()))> all;
  for (const Cell& cell : cells) all.push_back(get(cell));
  return all;
}

Texts methods_of(const std::vector<Cell>& cells) {
  return each(cells, [](const Cell& cell) { return cell.method.spec(); });
}

std::vector<Index> lengths_of(const std::vector<Cell>& cells) {
  return each(cells, [](const Cell& cell) { return cell.problem.shape.nq; });
}

// A folder with captured heads of 6 queries and 10 keys, d = 3 and dv = 2, gone at the end.
class CapturedHeads {
 public:
  CapturedHeads() {
    for (const char* name : {"measured.safetensors", "calibration.safetensors"})
      write_safetensors(folder_ / name, {{"q", ones(6, 3)}, {"k", ones(10, 3)}, {"v", ones(10, 2)}}, Precision::f64);
    setenv("ATTNBENCH_MODEL", (folder_ / ".").c_str(), 1);
  }
  ~CapturedHeads() { unsetenv("ATTNBENCH_MODEL"); }
  std::string file() const { return "file:" + (folder_ / "measured.safetensors"); }

 private:
  static Tensor ones(Index rows, Index columns) {
    return {{1, 2, rows, columns}, std::vector<double>(static_cast<size_t>(2 * rows * columns), 1.0)};
  }
  Folder folder_;
};

}  // namespace

TEST_CASE("an axis lists its values between commas", "[unit]") {
  const Axis axis = parse_axis("m=16,32,64");
  CHECK(axis.name == "m");
  CHECK(axis.values == Texts{"16", "32", "64"});
  CHECK(parse_axis("scale=0.5").values == Texts{"0.5"});
  CHECK(parse_axis("features=positive,trig").values == Texts{"positive", "trig"});
  CHECK(parse_axis("path=a=b").values == Texts{"a=b"});
}

TEST_CASE("an axis is a range with a factor or a step, its ends included", "[unit]") {
  CHECK(parse_axis("n=1024:65536:x2").values == Texts{"1024", "2048", "4096", "8192", "16384", "32768", "65536"});
  CHECK(parse_axis("m=64:512:+64").values == Texts{"64", "128", "192", "256", "320", "384", "448", "512"});
  CHECK(parse_axis("m=1:10:x3").values == Texts{"1", "3", "9"});
  CHECK(parse_axis("m=64:100:+64").values == Texts{"64"});
  CHECK(parse_axis("m=0:10:+5").values == Texts{"0", "5", "10"});
  CHECK(parse_axis("m=5:5:x2").values == Texts{"5"});
  CHECK(parse_axis("m=0:0:+1").values == Texts{"0"});
}

TEST_CASE("the largest ranges and steps neither overflow nor fill the memory", "[unit]") {
  CHECK(parse_axis("m=2:10:x9223372036854775807").values == Texts{"2"});
  CHECK(parse_axis("m=1:10:+9223372036854775807").values == Texts{"1"});
  CHECK(parse_axis("m=1:1000000000000:x1000000000000").values == Texts{"1", "1000000000000"});
  CHECK(parse_axis("m=1000000000000:1000000000000:x9223372036854775807").values == Texts{"1000000000000"});
  CHECK(parse_axis("m=1:1000000000000:x2").values.size() == 40);
  CHECK(parse_axis("m=0:99999:+1").values.size() == 100'000);
  CHECK(contains(misuse_of_axis("m=0:100000:+1"), "more than 100000 values; use a larger step"));
  CHECK(contains(misuse_of_axis("m=0:1000000000000:+1"), "more than 100000 values"));
  CHECK(contains(misuse_of_axis("m=1:1000000000001:x2"), "last <= 10^12"));
  std::string list = "m=1";
  for (int i = 0; i < 100'000; ++i) list += ",1";
  CHECK(contains(misuse_of_axis(list), "more than 100000 values"));
}

TEST_CASE("every malformed axis is refused with what was given and what was expected", "[unit]") {
  const std::string axis = "expected AXIS=VALUES", empty = "an empty value", number = "is not a number",
                    integers = "ranges are of integers", range = "first:last:xFACTOR or first:last:+STEP",
                    bounds = "expected 0 <= first <= last";
  const std::vector<std::pair<std::string, std::string>> all = {
      {"", axis},
      {"m", axis},
      {"=3", axis},
      {"m=", axis},
      {"m=,", empty},
      {"m=1,,2", empty},
      {"m=1,2,", empty},
      {"m=,1", empty},
      {"m=:", range},
      {"m=1:", range},
      {"m=1:2", range},
      {"m=1:2:", range},
      {"m=1:2:x", number},
      {"m=1:2:+", number},
      {"m=1:2:3", range},
      {"m=1:2:*2", range},
      {"m=1:2:x1", bounds},
      {"m=1:2:x0", bounds},
      {"m=1:2:x-2", bounds},
      {"m=1:2:+0", bounds},
      {"m=1:2:+-1", bounds},
      {"m=2:1:x2", bounds},
      {"m=-1:2:+1", bounds},
      {"m=0:4:x2", bounds},
      {"m=1.5:3:+1", integers},
      {"m=1:3:+0.5", integers},
      {"m=1:1e3:x2", number},
      {"m=a:b:x2", number},
      {"m=1:2:x2:x2", number},
      {"m=1: 2:x2", number},
      {"m=:2:x2", number},
      {"m=1::x2", number},
      {"m=1,2:3:x2", number},
      {"m=1:99999999999999999999:x2", number},
      {"m=1:2:x99999999999999999999", number},
  };
  for (const auto& [text, expected] : all) {
    CAPTURE(text);
    const std::string message = misuse_of_axis(text);
    CHECK(contains(message, "--sweep " + text.substr(0, text.find('='))));
    CHECK(contains(message, expected));
  }
}

TEST_CASE("random axes are read or refused", "[unit]") {
  static const std::string alphabet = "0123456789:,x+-=m.";
  Generator generator = Streams(1).stream("axis fuzz");
  int read = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = i % 2 == 0 ? "m=16:4096:x4" : "m=16:4096:+1024";
    for (int edits = 0; edits < 3; ++edits) {
      const size_t at = 2 + generator() % (text.size() - 2);
      text.replace(at, generator() % 2, 1, alphabet[generator() % alphabet.size()]);
    }
    try {
      const Axis axis = parse_axis(text);
      if (axis.values.empty() || axis.values.size() > 100'000 ||
          std::any_of(axis.values.begin(), axis.values.end(), [](const std::string& value) { return value.empty(); })) {
        CAPTURE(text);
        FAIL("an axis without values");
      }
      ++read;
    } catch (const Misuse&) {
    }
  }
  CHECK(read > 1000);
}

TEST_CASE("a request without sizes means the defaults", "[unit]") {
  const auto cells = expand(request({"softmax"}));
  REQUIRE(cells.size() == 1);
  const auto& [shape, heads, logit_scale, rounding] = cells[0].problem;
  CHECK((shape.nq == 1024 && shape.nk == 1024 && shape.d == 64 && shape.dv == 64));
  CHECK(shape.mask == Mask{});
  CHECK(shape.precision == Precision::f64);
  CHECK((heads == 1 && logit_scale == 1 && rounding == Rounding::none));
  CHECK((cells[0].seed == 1 && cells[0].threads == 1));
  CHECK(cells[0].experiment.spec() == "rank");
  CHECK(cells[0].input.spec() == "gaussian");
}

TEST_CASE("a request's sizes are those of its cells", "[unit]") {
  RunRequest wanted = request({"softmax"});
  wanted.experiment = "speed";
  wanted.n = {8, 16};
  wanted.d = {4, 2};
  wanted.dv = 3;
  wanted.heads = 5;
  wanted.logit_scale = 0.5;
  wanted.precision = Precision::f32;
  wanted.seed = 7;
  wanted.threads = 2;
  const auto cells = expand(wanted);
  CHECK(lengths_of(cells) == std::vector<Index>{8, 8, 16, 16});
  CHECK(each(cells, [](const Cell& cell) { return cell.problem.shape.d; }) == std::vector<Index>{4, 2, 4, 2});
  for (const Cell& cell : cells) {
    CHECK((cell.problem.shape.nk == cell.problem.shape.nq && cell.problem.shape.dv == 3));
    CHECK((cell.problem.heads == 5 && cell.problem.logit_scale == 0.5 && cell.seed == 7 && cell.threads == 2));
    CHECK(cell.problem.shape.precision == Precision::f32);
  }
}

TEST_CASE("an axis applies to each method that has the parameter", "[unit]") {
  const auto cells = expand(request({"performer", "linformer", "softmax"}, {{"m", {"8", "16"}}, {"r", {"4"}}}));
  CHECK(methods_of(cells) == Texts{"performer:m=8", "performer:m=16", "linformer:r=4", "softmax"});
}

TEST_CASE("axes of the input and of the experiment make cells as well", "[unit]") {
  RunRequest wanted = request({"performer:m=8"}, {{"scale", {"0.5", "2"}}, {"draws", {"64", "128"}}});
  wanted.experiment = "kernel-error";
  const auto cells = expand(wanted);
  REQUIRE(cells.size() == 4);
  std::set<std::string> all;
  for (const Cell& cell : cells) all.insert(cell.input.spec() + " " + cell.experiment.spec());
  CHECK(all ==
        std::set<std::string>{"gaussian:scale=0.5 kernel-error:draws=64", "gaussian:scale=2 kernel-error:draws=64",
                              "gaussian:scale=0.5 kernel-error:draws=128", "gaussian:scale=2 kernel-error:draws=128"});
}

TEST_CASE("axes of the problem multiply", "[unit]") {
  RunRequest wanted = request({"softmax", "uniform"}, {{"n", {"8", "16", "32"}},
                                                       {"d", {"4", "8"}},
                                                       {"dv", {"2", "5"}},
                                                       {"heads", {"1", "3"}},
                                                       {"logit_scale", {"0.5", "1e-1", "4"}}});
  wanted.experiment = "speed";
  const auto cells = expand(wanted);
  CHECK(cells.size() == 2 * 3 * 2 * 2 * 2 * 3);
  std::set<std::tuple<Index, Index, Index, Index, double, std::string>> distinct;
  for (const Cell& cell : cells) {
    const auto& [shape, heads, logit_scale, rounding] = cell.problem;
    distinct.emplace(shape.nq, shape.d, shape.dv, heads, logit_scale, cell.method.spec());
  }
  CHECK(distinct.size() == cells.size());
  CHECK(distinct.contains({32, 4, 5, 3, 0.1, "uniform"}));
}

TEST_CASE("half precision is an axis, and without it a cell is what it was", "[unit]") {
  const auto cells = expand(request({"softmax"}, {{"round", {"none", "bf16", "f16"}}}));
  REQUIRE(cells.size() == 3);
  std::set<std::string> keys;
  for (const Cell& cell : cells) keys.insert(row_of(cell, false).key);
  CHECK(keys.size() == 3);
  CHECK(row_of(cells[0], false).key == row_of(expand(request({"softmax"}))[0], false).key);
  CHECK_FALSE(contains(row_of(cells[0], false).parameters, "round"));
  CHECK(contains(row_of(cells[1], false).parameters, R"("round":"bf16")"));
  RunRequest whole = request({"softmax"});
  whole.rounding = Rounding::f16;
  CHECK(row_of(expand(whole)[0], false).key == row_of(cells[2], false).key);
  CHECK(contains(misuse_of_request(request({"softmax"}, {{"round", {"fp16"}}})), "expected none, f16 or bf16"));
  whole.experiment = "speed";
  CHECK(contains(misuse_of_request(whole), "speed would time the emulation"));
}

TEST_CASE("only timing takes more than one head to a cell", "[unit]") {
  CHECK(contains(misuse_of_request(request({"softmax"}, {{"heads", {"2"}}})), "heads=2: rank measures one head"));
}

TEST_CASE("cells that share an input stand together", "[unit]") {
  const auto cells = expand(request({"softmax", "uniform", "performer"}, {{"n", {"8", "16"}}, {"scale", {"1", "2"}}}));
  std::set<std::string> seen;
  std::string last;
  for (const Cell& cell : cells)
    if (const std::string key = cell.input_key(); key != last) {
      CHECK(seen.insert(key).second);
      last = key;
    }
  CHECK(seen.size() == 4);
  CHECK(cells.size() == 12);
}

TEST_CASE("what is asked for twice is one cell", "[unit]") {
  CHECK(methods_of(
            expand(request({"performer", "performer:m=256", "performer:positive", "performer:projection=orthogonal"},
                           {{"m", {"256", "0256"}}}))) == Texts{"performer"});
  CHECK(lengths_of(expand(request({"softmax"}, {{"n", {"8", "08", "8"}}}))) == std::vector<Index>{8});
  RunRequest twice = request({"softmax"});
  twice.inputs = {"gaussian", "gaussian:scale=1.0"};
  CHECK(expand(twice).size() == 1);
}

TEST_CASE("an axis applies where an axis before it brought the parameter in", "[unit]") {
  const auto cells = expand(request({"truncated:window=2"}, {{"base", {"linear", "performer"}}, {"m", {"8", "16"}}}));
  CHECK(methods_of(cells) ==
        Texts{"truncated:window=2", "truncated:base=performer,m=8,window=2", "truncated:base=performer,m=16,window=2"});
}

TEST_CASE("an axis that applies to nothing is refused with the names that would", "[unit]") {
  CHECK(contains(misuse_of_request(request({"performer"}, {{"featurs", {"positive"}}})), "did you mean features?"));
  const std::string message = misuse_of_request(request({"softmax"}, {{"codes", {"8"}}}));
  CHECK(contains(message, "--sweep codes: nothing in this run has that parameter"));
  for (const char* known : {"n", "heads", "logit_scale", "scale"}) CHECK(contains(message, known));
}

TEST_CASE("an axis that is given twice is refused", "[unit]") {
  CHECK(contains(misuse_of_request(request({"performer"}, {{"m", {"8"}}, {"n", {"8"}}, {"m", {"16"}}})),
                 "--sweep m: given twice"));
}

TEST_CASE("unknown names and refused values of a request are misuse", "[unit]") {
  RunRequest wanted = request({"perfomer"});
  CHECK(contains(misuse_of_request(wanted), "did you mean performer"));
  wanted = request({"softmax"});
  wanted.inputs = {"gausian"};
  CHECK(contains(misuse_of_request(wanted), "did you mean gaussian?"));
  wanted = request({"softmax"});
  wanted.experiment = "ranks";
  CHECK(contains(misuse_of_request(wanted), "did you mean rank?"));
  CHECK(contains(misuse_of_request(request({"performer"}, {{"m", {"8", "0"}}})), "m=0 is not allowed"));
  CHECK(contains(misuse_of_request(request({"performer"}, {{"m", {"1e3"}}})), "m=1e3 is not allowed"));
}

TEST_CASE("a size that cannot be is refused, whether by an axis or by the request", "[unit]") {
  for (const char* name : {"n", "d", "dv", "heads"}) {
    for (const char* value : {"0", "-1", "-5"}) {
      CAPTURE(name, value);
      CHECK(contains(misuse_of_request(request({"softmax"}, {{name, {"8", value}}})),
                     std::string(name) + "=" + value + " is not allowed; expected an integer of at least 1"));
    }
    for (const char* value : {"1e3", "8.0", "+8", " 8", "many", "nan", "9223372036854775808"}) {
      CAPTURE(name, value);
      CHECK(contains(misuse_of_request(request({"softmax"}, {{name, {value}}})),
                     std::string("'") + value + "' is not a number"));
    }
  }
  for (const char* value : {"0", "-1", "nan", "inf", "-inf", "infinity"}) {
    CAPTURE(value);
    CHECK(contains(misuse_of_request(request({"softmax"}, {{"logit_scale", {value}}})),
                   "expected a finite number above 0"));
  }
  CHECK(contains(misuse_of_request(request({"softmax"}, {{"logit_scale", {"1e999"}}})), "is not a number"));
  RunRequest wanted = request({"softmax"});
  wanted.n = {-1};
  CHECK(contains(misuse_of_request(wanted), "n=-1 is not allowed"));
  wanted = request({"softmax"});
  wanted.d = {0};
  CHECK(contains(misuse_of_request(wanted), "d=0 is not allowed"));
  wanted = request({"softmax"});
  wanted.dv = -2;
  CHECK(contains(misuse_of_request(wanted), "dv=-2 is not allowed"));
  wanted = request({"softmax"});
  wanted.heads = 0;
  CHECK(contains(misuse_of_request(wanted), "heads=0 is not allowed"));
}

TEST_CASE("sizes beyond the machine's memory are refused before anything is drawn", "[unit]") {
  CHECK(contains(misuse_of_request(request({"softmax"}, {{"n", {"1000000000000"}}})), "n"));
  CHECK(contains(misuse_of_request(request({"softmax"}, {{"d", {"9223372036854775807"}}})), "d=9223372036854775807"));
}

TEST_CASE("more cells than can be are refused before they are made", "[unit]") {
  const Axis many = parse_axis("m=1:2000:+1"), sizes = parse_axis("d=1:1000:+1");
  const std::string message = "at most 1000000 are made: narrow the sweep";
  CHECK(
      contains(misuse_of_request(request({"performer"}, {many, {"features", {"positive", "trig"}}, sizes})), message));
  CHECK(contains(misuse_of_request(request({"softmax"}, {sizes, parse_axis("n=1:100000:+1"), parse_axis("dv=1:9999:+1"),
                                                         parse_axis("heads=1:99999:+1")})),
                 message));
  CHECK(contains(misuse_of_request(request({"truncated:base=performer"}, {many, parse_axis("window=1:2000:+1")})),
                 message));
}

TEST_CASE("whether a row sees later keys is the input's default until the request says so", "[unit]") {
  const CapturedHeads heads;
  const auto mask_of = [](const std::string& input, std::optional<bool> causal) {
    RunRequest wanted = request({"softmax"});
    wanted.inputs = {input};
    wanted.causal = causal;
    return expand(wanted).at(0).problem.shape.mask;
  };
  CHECK(mask_of("gaussian", {}) == Mask{});
  CHECK(mask_of("gaussian", true) == Mask{.causal = true});
  // 6 queries, 10 keys: the first query sees the keys up to its own place counted from the end.
  CHECK(mask_of("model:layer=0,head=0", {}) == Mask{.causal = true, .offset = 4});
  CHECK(mask_of("model:layer=0,head=0", false) == Mask{});
  CHECK(mask_of(heads.file(), {}) == Mask{});
  CHECK(mask_of(heads.file(), true) == Mask{.causal = true, .offset = 4});
}

TEST_CASE("an input that has sizes of its own gives them where none was asked for", "[unit]") {
  const CapturedHeads heads;
  RunRequest wanted = request({"softmax"});
  wanted.inputs = {heads.file(), "gaussian"};
  auto cells = expand(wanted);
  REQUIRE(cells.size() == 2);
  const auto& own = cells[0].problem.shape;
  CHECK((own.nq == 6 && own.nk == 10 && own.d == 3 && own.dv == 2));
  const auto& free = cells[1].problem.shape;
  CHECK((free.nq == 1024 && free.nk == 1024 && free.d == 64 && free.dv == 64));

  wanted.inputs = {heads.file()};
  wanted.n = {4};
  cells = expand(wanted);
  REQUIRE(cells.size() == 1);
  const auto& asked = cells[0].problem.shape;
  CHECK((asked.nq == 4 && asked.nk == 4 && asked.d == 3 && asked.dv == 2));

  wanted.causal = true;
  CHECK(expand(wanted)[0].problem.shape.mask == Mask{.causal = true});
}

TEST_CASE("what an input does not have is refused before anything is run", "[unit]") {
  const CapturedHeads heads;
  const auto misuse_with = [&](const std::string& input, Index n, Index d, Index dv) {
    RunRequest wanted = request({"softmax"});
    wanted.inputs = {input};
    if (n > 0) wanted.n = {n};
    if (d > 0) wanted.d = {d};
    wanted.dv = dv;
    return misuse_of_request(wanted);
  };
  CHECK(contains(misuse_with(heads.file(), 7, 0, 0), "nq=7 was asked for"));
  CHECK(contains(misuse_with(heads.file(), 0, 4, 0), "d=4 was asked for"));
  CHECK(contains(misuse_with(heads.file(), 0, 0, 1), "dv=1 was asked for"));
  CHECK(contains(misuse_with("model:layer=7,head=0", 0, 0, 0), "layer=7"));
  CHECK(contains(misuse_with(heads.file() + ",head=5", 0, 0, 0), "head=5"));
}

TEST_CASE("more replicates than an input has are refused, and with --until it has no more", "[unit]") {
  RunRequest wanted = request({"softmax"});
  wanted.inputs = {"gaussian", "model"};
  wanted.replicates = 33;
  CHECK(contains(misuse_of_request(wanted),
                 "model: 33 replicates were asked for and the input has data for 32; expected at most 32"));
  wanted.replicates = 32;
  CHECK(expand(wanted).size() == 2);
  wanted.replicates = 1000;
  wanted.until = Until{.relative = 0.05};
  const auto cells = expand(wanted);
  REQUIRE(cells.size() == 2);
  CHECK((replicates_of(wanted, cells[0]) == 1000 && replicates_of(wanted, cells[1]) == 32));
  wanted.replicates = 10;
  CHECK(replicates_of(wanted, cells[1]) == 10);
  wanted.inputs = {"model:text=3"};
  wanted.until = {};
  wanted.replicates = 64;
  CHECK(expand(wanted).size() == 1);
}

TEST_CASE("the n x n matrices of an experiment are refused when they cannot fit, its heads alone are not", "[unit]") {
  RunRequest wanted = request({"softmax"});
  wanted.n = {3'000'000};
  wanted.experiment = "attention-error";
  CHECK(contains(misuse_of_request(wanted), "attention-error at n=3000000 would take"));
  wanted.experiment = "speed";
  CHECK(expand(wanted).size() == 1);
}

}  // namespace attnbench::plan_test
