// The table of `attnbench export`: one column a parameter, scalars by default, conditions, and wide tables.
#include "harness/store/export.hpp"

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "harness/store/store.hpp"
#include "tests/catch.hpp"
#include "tests/misuse.hpp"
#include "tests/store/results_file.hpp"

namespace attnbench::export_test {
using nlohmann::json;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

CellRow cell_of(const std::string& experiment, const std::string& method, const std::string& parameters, Index n = 64) {
  CellRow row = cell(method, n);
  row.experiment = experiment;
  row.key = experiment + row.key;
  row.parameters = parameters;
  return row;
}

CellRow timed(const std::string& method) {
  CellRow row = cell_of("speed", method, "{}");
  row.threads = 1;
  row.machine = "M";
  return row;
}

// Two methods in two experiments: what each test selects from.
struct File {
  File() {
    const auto run = store.begin_run("attnbench run", "{}");
    for (const Index replicate : {0, 1}) {
      const double r = static_cast<double>(replicate);
      store.record(run, cell_of("attention-error", "performer:m=16", R"({"features":"positive","m":16})"), replicate,
                   {}, 1, {scalar("error", 1 + r), {"rows", "1", {2}, {7, 8}}});
      store.record(run, cell_of("attention-error", "performer", R"({"features":"positive","m":256})"), replicate, {}, 1,
                   {scalar("error", 3 + r), scalar("bias", 0.5)});
    }
    store.record(run, cell_of("attention-error", "local:window=8", R"({"window":8})"), 0,
                 {Ending::Kind::crashed, "why"}, 1, {});
    store.record(run, cell_of("rank:values=8", "performer:m=16", R"({"m":16,"values":8})"), 0, {}, 1,
                 {scalar("rank", 5)});
    store.record(run, timed("performer"), 0, {}, 1,
                 {{"seconds", "s", {3}, {5, 1, 2}}, {"grid", "1", {1, 2}, {1, 2}}, scalar("iterations", 9)});
  }
  std::string csv(const ExportRequest& request) const {
    std::ostringstream out;
    store.export_table(out, request);
    return out.str();
  }
  json rows(ExportRequest request) const {
    request.format = ExportRequest::Format::json;
    return json::parse(csv(request));
  }

  Folder folder;
  Store store{folder / "results.db"};
};

std::vector<std::string> column(const json& rows, const std::string& name) {
  std::vector<std::string> values;
  for (const json& row : rows) values.push_back(row.at(name).dump());
  return values;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("the table has scalars and one column for each parameter, empty where a cell has none", "[unit]") {
  const File file;
  const json rows = file.rows({.where = {{"experiment", "attention-error"}}});
  CHECK(column(rows, "method") == Texts{R"("local:window=8")", R"("performer")", R"("performer")", R"("performer")",
                                        R"("performer")", R"("performer:m=16")", R"("performer:m=16")"});
  CHECK(column(rows, "m") == Texts{"null", "256", "256", "256", "256", "16", "16"});
  CHECK(column(rows, "window") == Texts{"8", "null", "null", "null", "null", "null", "null"});
  CHECK(column(rows, "features")[1] == R"("positive")");
  CHECK(column(rows, "value") == Texts{"null", "0.5", "3", "0.5", "4", "1", "2"});
  for (const char* absent : {"parameters", "index", "command", "values"}) CHECK_FALSE(rows[0].contains(absent));
}

TEST_CASE("a timing's samples are their median, and other arrays are left out until they are asked for", "[unit]") {
  const File file;
  const json timings = file.rows({.where = {{"experiment", "speed"}}});
  CHECK(column(timings, "metric") == Texts{R"("iterations")", R"("seconds")"});
  CHECK(column(timings, "value") == Texts{"9", "2"});
  CHECK(file.rows({.where = {{"experiment", "speed"}}, .arrays = true}).size() == 6);
  CHECK(file.rows({.where = {{"m", "16"}, {"experiment", "attention-error"}}, .arrays = true}).size() == 6);
}

TEST_CASE("conditions select cells by columns, by parameters and by specs in any spelling", "[unit]") {
  const File file;
  const auto selected = [&](std::vector<CellCondition> where) {
    std::set<std::string> found;
    for (const StoredCell& cell : selected_cells(file.folder / "results.db", where))
      found.insert(cell.column("experiment") + " " + cell.column("method"));
    return found;
  };
  using Found = std::set<std::string>;
  CHECK(selected({{"method", "performer:m=16"}}) ==
        Found{"attention-error performer:m=16", "rank:values=8 performer:m=16"});
  // 256 is the default, which the spec leaves out.
  CHECK(selected({{"method", "favor:m=256"}}) == Found{"attention-error performer", "speed performer"});
  CHECK(selected({{"method", "performer"}}).size() == 4);
  CHECK(selected({{"m", "16.0"}, {"experiment", "rank"}}) == Found{"rank:values=8 performer:m=16"});
  CHECK(selected({{"m", "16"}, {"m", "256"}, {"causal", "true"}, {"experiment", "attention-error"}}) ==
        Found{"attention-error performer", "attention-error performer:m=16"});
  CHECK(selected({{"experiment", "rank:values=8"}}) == Found{"rank:values=8 performer:m=16"});
  const auto refused = [&](std::vector<CellCondition> where) { return misuse_of([&] { selected(where); }); };
  CHECK_THAT(refused({{"windw", "8"}}), ContainsSubstring("has a column or a parameter 'windw'; did you mean window?"));
  CHECK_THAT(refused({{"m", "17"}}), ContainsSubstring("there are 16, 256"));
  CHECK_THAT(refused({{"method", "preformer"}}), ContainsSubstring("local:window=8, performer, performer:m=16"));
  CHECK_THAT(refused({{"experiment", "speed"}, {"m", "16"}}), ContainsSubstring("--where m=16"));
  CHECK_THAT(misuse_of([] { parse_condition("m"); }), ContainsSubstring("expected NAME=VALUE"));
  CHECK_THAT(misuse_of([] { parse_condition("m="); }), ContainsSubstring("expected NAME=VALUE"));
}

TEST_CASE("two seeds that are the same double are two values of a condition", "[unit]") {
  const Folder folder;
  Store store(folder / "results.db");
  const auto run = store.begin_run("a", "{}");
  for (const std::uint64_t seed : {18446744073709551615u, 18446744073709551614u}) {
    CellRow row = cell("uniform");
    row.seed = seed;
    row.key += std::to_string(seed);
    store.record(run, row, 0, {}, 1, {scalar("error", 1)});
  }
  CHECK(selected_cells(folder / "results.db", {{"seed", "18446744073709551614"}}).size() == 1);
}

TEST_CASE("metrics that are asked for keep the rows that lack them, of the experiments that have them", "[unit]") {
  const File file;
  const json bias = file.rows({.metrics = {"bias"}});
  // The cell that crashed, two replicates that have it and two that lack it; nothing of rank and speed.
  CHECK(column(bias, "metric") == Texts{R"("bias")", R"("bias")", R"("bias")", R"("bias")", R"("bias")"});
  CHECK(column(bias, "value") == Texts{"null", "0.5", "0.5", "null", "null"});
  CHECK(column(bias, "ending")[0] == R"("crashed")");
  CHECK_THAT(misuse_of([&] { file.csv({.metrics = {"eror"}}); }), ContainsSubstring("did you mean error?"));
  CHECK_THAT(misuse_of([&] { file.csv({.metrics = {"rows"}}); }), ContainsSubstring("add --arrays"));
  CHECK(file.rows({.metrics = {"rows"}, .where = {{"m", "16"}}, .arrays = true}).size() == 4);
}

TEST_CASE("a wide table has a row for each replicate and a column for each metric", "[unit]") {
  const File file;
  const std::string text = file.csv({.where = {{"experiment", "attention-error"}}, .wide = true});
  CHECK(text ==
        "experiment,method,input,nq,n,d,dv,causal,mask_offset,mask_keys,precision,heads,logit_scale,seed,threads,"
        "machine,features,m,window,replicate,ending,reason,bias,error\n"
        "attention-error,local:window=8,gaussian,64,64,16,16,1,0,-1,f64,2,0.5,18446744073709551615,0,,,,8,0,crashed,"
        "why,,\n"
        "attention-error,performer,gaussian,64,64,16,16,1,0,-1,f64,2,0.5,18446744073709551615,0,,positive,256,,0,done,,"
        "0.5,3\n"
        "attention-error,performer,gaussian,64,64,16,16,1,0,-1,f64,2,0.5,18446744073709551615,0,,positive,256,,1,done,,"
        "0.5,4\n"
        "attention-error,performer:m=16,gaussian,64,64,16,16,1,0,-1,f64,2,0.5,18446744073709551615,0,,positive,16,,0,"
        "done,,,1\n"
        "attention-error,performer:m=16,gaussian,64,64,16,16,1,0,-1,f64,2,0.5,18446744073709551615,0,,positive,16,,1,"
        "done,,,2\n");
  CHECK_THAT(misuse_of([&] { file.csv({.wide = true, .arrays = true}); }), ContainsSubstring("keep one of them"));
}

TEST_CASE("a parameter or a metric with the name of a column adds no second column of that name", "[unit]") {
  const Folder folder;
  Store store(folder / "results.db");
  store.record(store.begin_run("a", "{}"), cell_of("x", "uniform", R"({"d":99,"layer":1})"), 0, {}, 1,
               {scalar("layer", 4), scalar("run", 5)});
  std::ostringstream out;
  store.export_table(out, {.wide = true, .clock = true});
  const std::string header = out.str().substr(0, out.str().find('\n'));
  CHECK_THAT(header, ContainsSubstring("machine,layer,replicate,ending,reason,metric_layer,metric_run,wall_seconds"));
  CHECK_THAT(out.str(), ContainsSubstring(",16,16,"));  // d and dv: the parameter d is not in their place
}

TEST_CASE("measured cells have the samples of one metric and say what is lacking", "[unit]") {
  const File file;
  const auto path = file.folder / "results.db";
  const auto of = [&](const std::string& metric, std::vector<CellCondition> where) {
    return measured_cells(path, selected_cells(path, where), metric);
  };
  const auto errors = of("error", {{"experiment", "attention-error"}});
  REQUIRE(errors.size() == 3);
  CHECK(errors[0].ending == "crashed");
  CHECK(errors[0].samples.empty());
  CHECK(errors[2].samples == std::vector<double>{1, 2});
  CHECK(of("seconds", {{"experiment", "speed"}})[0].samples == std::vector<double>{5, 1, 2});
  CHECK(of("grid", {{"experiment", "speed"}})[0].lacking == 1);
  const auto bias = of("bias", {{"m", "16"}, {"experiment", "attention-error"}});
  CHECK(bias[0].done == 2);
  CHECK(bias[0].lacking == 2);
}

}  // namespace attnbench::export_test
