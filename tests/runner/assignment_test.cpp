// A method for each head of a model: the greedy order from planted numbers, the specs of the result, and the command.
#include "experiments/commands/assignment.hpp"

#include <regex>

#include "harness/core/approximation.hpp"
#include "harness/runner/cells.hpp"
#include "harness/store/store.hpp"
#include "tests/catch.hpp"
#include "tests/misuse.hpp"
#include "tests/program.hpp"
#include "tests/store/results_file.hpp"

namespace attnbench::assignment_test {

namespace {

std::vector<std::string> methods_of(const Assignment& assignment) {
  std::vector<std::string> methods;
  for (const HeadOption& head : assignment.heads) methods.push_back(head.method);
  return methods;
}

Assignment of_methods(const std::vector<std::string>& methods) {
  Assignment assignment;
  for (const std::string& method : methods) assignment.heads.push_back({method, 0, 1});
  return assignment;
}

}  // namespace

TEST_CASE("each step saves most cost for the bits that it adds, and free steps come first", "[unit]") {
  using Methods = std::vector<std::string>;
  // Returns: a saves 0.5 for 0.10 bits (5 a bit), b then saves 0.4 for 0.40 (1 a bit); c is free; d saves 0.3 for 0.02
  // (15 a bit) and is no step after c; e costs more than softmax.
  const auto path =
      greedy_path({{{"b", 0.5, 0.1}, {"a", 0.1, 0.5}}, {{"c", -0.01, 0.8}, {"d", 0.01, 0.5}}, {{"e", 0, 1.1}}});
  REQUIRE(path.size() == 5);
  CHECK(methods_of(path[0]) == Methods{"softmax", "softmax", "softmax"});
  CHECK(methods_of(path[1]) == Methods{"softmax", "c", "softmax"});
  CHECK(methods_of(path[2]) == Methods{"softmax", "d", "softmax"});
  CHECK(methods_of(path[3]) == Methods{"a", "d", "softmax"});
  CHECK(methods_of(path[4]) == Methods{"b", "d", "softmax"});
  CHECK(path[3].loss() == Approx(0.11));
  CHECK(path[3].cost() == Approx(2.0 / 3));
  // A head that loses less for the same saving is replaced before the other.
  const auto two = greedy_path({{{"a", 0.2, 0.5}}, {{"a", 0.1, 0.5}}});
  CHECK(methods_of(two[1]) == Methods{"softmax", "a"});
  // An option between two others that saves less a bit than the direct step is passed over.
  const auto direct = greedy_path({{{"poor", 0.1, 0.9}, {"good", 0.2, 0.1}}});
  REQUIRE(direct.size() == 2);
  CHECK(methods_of(direct[1]) == Methods{"good"});
  CHECK(greedy_path({{}, {}}).size() == 1);
}

TEST_CASE("an assignment is a spec, as short as its repetition allows", "[unit]") {
  CHECK(spec_of(of_methods({"softmax", "softmax", "softmax", "softmax"})) == "softmax");
  CHECK(spec_of(of_methods({"local:window=8", "linear", "local:window=8", "linear"})) ==
        "per-head:[local:window=8],[linear]");
  const Assignment mixed = of_methods({"softmax", "softmax", "performer:m=8,features=trig", "softmax"});
  CHECK(spec_of(mixed) == "per-head:[softmax],[softmax],[performer:m=8,features=trig],[softmax]");
  CHECK(spec_of_layer(mixed, 0, 2) == "softmax");
  CHECK(spec_of_layer(mixed, 1, 2) == "per-head:[performer:m=8,features=trig],[softmax]");
  const auto heads = Params("methods", spec_of(mixed)).all_nested("heads");
  REQUIRE(heads.size() == 4);
  CHECK(heads[2].spec() == Params("methods", "performer:m=8,features=trig").spec());
}

TEST_CASE("recommend --model replaces heads within the loss, and its plan is measured as it says", "[end-to-end]") {
  const Folder folder;
  const std::string results = " --results " + (folder / "r.db");
  const auto refused = [&](const std::string& options, const std::string& expected) {
    const auto outcome = program("recommend " + options + results);
    INFO(options << "\n" << outcome.text);
    CHECK(outcome.code == 2);
    CHECK(contains(outcome.text, expected));
  };
  refused("--model --max-loss 0", "--max-loss 0: expected a number above 0, bits per byte");
  refused("--model --save money", "expected time or memory");
  refused("--model --max-error 0.1", "--max-error does not go with --model; give --max-loss");
  refused("--model --bidirectional", "leave it out");
  refused("--max-loss 0.1", "--max-loss needs --model");
  refused("--model --input gaussian", "gaussian gives no model that predicts tokens; give --input model");
  refused("--model --input model:head=all", "leave out head=");
  refused("--model --input model --input model:weights=initial", "--model takes one input and 2 were given");
  refused("--model --input model:text=0", "8 choose and at least 8 others judge");
  refused("--model --methods linformer", "no candidate is left");
  CHECK_FALSE(std::filesystem::exists(folder / "r.db"));

  // Memory does not depend on the machine's load; below n = 128 it is that of a few pages, code among them. A window of
  // all tokens is exact and takes no less memory; the mean of V takes less and loses much in some heads.
  const std::string request = "recommend --model -n 128 --methods uniform --save memory --max-loss 0.1" + results;
  const auto first = program(request);
  INFO(first.text);
  CHECK(first.code == 0);
  CHECK(contains(first.text, "uniform in "));
  CHECK(contains(first.text, "replaced together they lose"));
  CHECK(program(request).text == first.text);
  // The plan that is printed has the loss that is printed: the mean over the texts that judged.
  const std::string mark = "attnbench run model-loss --method '";
  const size_t begin = first.text.find(mark) + mark.size();
  const std::string spec = first.text.substr(begin, first.text.find('\'', begin) - begin);
  CHECK(spec.starts_with("per-head:"));
  const auto run = program("run model-loss --method '" + spec + "' --input model -n 128 --replicates 32" + results);
  INFO(run.text);
  CHECK(run.code == 0);
  CHECK(contains(run.text, "32 were there already"));
  const Store store(folder / "r.db");
  const StoredMeasurements measurements(store);
  const Samples losses = cells_of({.experiment = "model-loss",
                                   .methods = {spec},
                                   .inputs = {"model"},
                                   .n = {128},
                                   .precision = Precision::f32,
                                   .replicates = 32},
                                  measurements)
                             .scalar("excess_bits");
  REQUIRE(losses.size() == 32);
  double mean = 0;
  for (const auto& [text, loss] : losses)
    if (text >= 8) mean += loss / 24;
  // "replaced one at a time, these heads lose SINGLE bits ...; replaced together they lose WHOLE (LOW to HIGH), FACTOR
  // times as much"
  std::smatch found;
  const std::string number = "([-0-9.e]+)";
  REQUIRE(std::regex_search(first.text, found,
                            std::regex("lose " + number + " bits per byte in all; replaced together they lose " +
                                       number + " \\(" + number + " to " + number + "\\), " + number + " times")));
  const auto of = [&](size_t place) { return std::stod(found[place]); };
  CHECK(of(2) == Approx(mean).epsilon(1e-3));
  CHECK(of(4) <= 0.1);
  CHECK(of(5) == Approx(of(2) / of(1)).epsilon(0.06));  // printed with two digits
}

}  // namespace attnbench::assignment_test
