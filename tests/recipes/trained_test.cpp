// Recipes about trained models: which recorded rows they judge, and how seeds enter a verdict.
#include "harness/runner/reproduce.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/recorded_rows.hpp"
#include "tests/misuse.hpp"
#include "tests/runner/made_up.hpp"

namespace attnbench::trained_test {

namespace {

// All attentions of the recipe copy-task with these seeds.
std::string copying(const std::vector<int>& seeds) {
  std::string lines;
  for (const int seed : seeds) {
    for (const char* attention : {"softmax", "linear", "linear:features=exp", "local:window=16"})
      lines += RecordedRow{.attention = attention, .seed = seed}.line();
    lines +=
        RecordedRow{
            .attention = "reformer:buckets=8,rounds=4,chunk=128", .seed = seed, .redraw = 1, .finished = "2026-11-27"}
            .line();
  }
  return lines;
}

// Softmax solves the task, and linear attention needs these bits, by seed; nothing else is measured of others.
std::vector<Verdict> verdicts(const std::vector<double>& linear) {
  const auto recipe = written(find<RecipeEntry>("copy-task"), RecipeSize::full);
  return recipe->verdicts(MadeUp([&](const Cell& cell, const std::string&) -> MadeUp::Number {
    const bool first = cell.method.spec() == "linear";
    return [=](Index replicate, size_t) { return first ? linear.at(static_cast<size_t>(replicate)) : 0; };
  }));
}

}  // namespace

TEST_CASE("a recipe judges the seeds that all of its attentions were trained with", "[recipes]") {
  const auto replicates = [] {
    return written(find<RecipeEntry>("copy-task"), RecipeSize::quick)->cells().all().front().replicates;
  };
  {
    const RecordedRows rows(copying({1, 2}) + RecordedRow{.attention = "softmax", .seed = 3}.line());
    CHECK(replicates() == 2);
  }
  const RecordedRows none(RecordedRow{.attention = "softmax"}.line());
  CHECK(replicates() == 1);
}

TEST_CASE("a statement about trained models holds if it holds with every seed", "[recipes]") {
  const RecordedRows rows(copying({1, 2, 3}));
  const auto first = [](const std::vector<double>& linear) { return verdicts(linear).front().finding; };
  const Finding every = first({0.01, 0.02, 0.015});
  CHECK(to_string(every.ruling) == "HOLDS");
  REQUIRE(every.compared.size() == 3);
  CHECK(every.compared[1].value == 0.02);
  CHECK(every.compared[1].what == "seed 2");
  CHECK(to_string(first({0.01, 0.5, 0.015}).ruling) == "NOT SEEN");
}

TEST_CASE("a verdict on trained models says when and where their rows were recorded", "[recipes]") {
  const RecordedRows rows(copying({1, 2}) + RecordedRow{.attention = "softmax", .task = "bytes"}.line());
  const std::string numbers = verdicts({0.01, 0.01}).front().finding.numbers;
  CHECK(contains(numbers, "2 seeds, 10 recorded rows, trained from 2026-11-25 to 2026-11-27 on P with PyTorch 2"));
  CHECK(contains(numbers, "scripts/train/train.py --task copying"));
}

TEST_CASE("causal models are compared with bidirectional ones by the seeds that both have", "[recipes]") {
  std::string lines;
  const auto add = [&](const std::string& task, const std::vector<int>& seeds) {
    std::vector<std::string> attentions{"softmax",
                                        "linear",
                                        "linear:features=exp",
                                        "linear:features=relu",
                                        "truncated:window=16",
                                        "polynomial",
                                        "synthesizer",
                                        "synthesizer:kind=dense",
                                        "performer:m=128",
                                        "reformer:buckets=8,rounds=4,chunk=256",
                                        "local:window=16"};
    if (task == "masked") attentions.insert(attentions.end(), {"linformer:r=64", "fnet", "vq:codes=64"});
    for (const std::string& attention : attentions)
      for (const int seed : seeds)
        lines += RecordedRow{.attention = attention, .seed = seed, .task = task, .causal = task == "bytes"}.line();
  };
  add("bytes", {1, 2});
  add("masked", {1});
  const RecordedRows rows(lines);
  const auto recipe = written(find<RecipeEntry>("learning-curves"), RecipeSize::full);
  const auto all = recipe->verdicts(MadeUp([](const Cell& cell, const std::string&) -> MadeUp::Number {
    const bool worse = cell.method.name() == "linear" && !cell.problem.shape.mask.causal;
    return [=](Index, size_t) { return worse ? 2 : 1; };
  }));
  const auto verdict = std::ranges::find_if(all, [](const Verdict& one) {
    return contains(one.statement.text, "a small causal model than in a bidirectional one");
  });
  REQUIRE(verdict != all.end());
  CHECK(to_string(verdict->finding.ruling) == "HOLDS");
  CHECK(verdict->finding.compared.size() == 2);
  CHECK(contains(verdict->finding.numbers, "1 seed,"));
}

TEST_CASE("a recipe whose models are not trained yet decides nothing", "[recipes]") {
  const RecordedRows none("");
  class Nothing final : public Measurements {
    Samples scalars(const RecipeCell&, const std::string&, const std::string&) const override { return {}; }
    std::map<Index, std::vector<double>> arrays(const RecipeCell&, const std::string&, const std::string&,
                                                size_t) const override {
      return {};
    }
  };
  for (const char* name : {"copy-task", "associative-recall", "learning-curves", "transfer-and-recovery"})
    for (const Verdict& verdict : written(find<RecipeEntry>(name), RecipeSize::full)->verdicts(Nothing())) {
      CHECK(to_string(verdict.finding.ruling) == "OPEN");
      CHECK(contains(verdict.finding.numbers, "no row is recorded yet: not decided"));
    }
}

}  // namespace attnbench::trained_test
