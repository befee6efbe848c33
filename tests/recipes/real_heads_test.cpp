// The heads that recipes measure: which model, text, n and mask each has, and that verdicts group them by model.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/runner/declared_recipe.hpp"
#include "harness/runner/match.hpp"
#include "harness/runner/reproduce.hpp"
#include "tests/catch.hpp"
#include "tests/recipes/plannable.hpp"
#include "tests/runner/made_up.hpp"

namespace attnbench::real_heads_test {

namespace {

Cells run_on(Recipe& recipe, const char* heads, const RunRequest& request) {
  return find<HeadsEntry>(heads).run(recipe, request);
}

const RunRequest request{
    .experiment = "sparsity", .methods = {"softmax"}, .inputs = {}, .n = {64, 1024}, .replicates = 32};

std::set<std::string> heads_of(RecipeSize size, const char* heads) {
  Recipe recipe(size);
  std::set<std::string> all;
  for (const RecipeCell& cell : run_on(recipe, heads, request).all()) all.insert(cell.asked.input.spec());
  return all;
}

}  // namespace

TEST_CASE("the name and the group of a head say which model it is of, and a replicate is a text or a draw", "[unit]") {
  const InputPlace own = place_of(Params("inputs", "model:layer=2,head=0")),
                   other = place_of(Params("inputs", "pretrained:model=minilm,layer=5,head=4,text=0")),
                   law = place_of(Params("inputs", "gaussian:scale=2"));
  CHECK((own.name == "layer 2, head 0" && own.group == "heads of the byte-level model" && own.replicate == "text"));
  CHECK((other.name == "MiniLM, layer 5, head 4" && other.group == "heads of MiniLM" && other.replicate == "draw"));
  CHECK((law.name == "gaussian:scale=2" && law.group.empty() && law.replicate == "draw"));
  CHECK(place_of(Params("inputs", "pretrained:model=minilm")).replicate == "text");
}

TEST_CASE("a smoke run takes one head of each model, and the full size all", "[unit]") {
  CHECK(heads_of(RecipeSize::smoke, "of-three-models").size() == 3);
  CHECK(heads_of(RecipeSize::quick, "telling") ==
        std::set<std::string>{"model:layer=0,head=2", "model:head=0", "model:layer=1"});
  CHECK(heads_of(RecipeSize::quick, "pretrained") ==
        std::set<std::string>{"pretrained:layer=0,head=2,repeat=true", "pretrained:layer=5,head=4,repeat=true",
                              "pretrained:model=whisper-encoder,layer=0,head=4,repeat=true",
                              "pretrained:model=whisper-encoder,layer=2,head=5,repeat=true"});
  CHECK(heads_of(RecipeSize::full, "of-three-models").size() == 12 + 6 + 3);
  CHECK(heads_of(RecipeSize::smoke, "every").size() == 12);
}

TEST_CASE("a request on heads of several models keeps within each model's tokens, with 24 draws", "[unit]") {
  Recipe recipe(RecipeSize::quick);
  for (const RecipeCell& cell : run_on(recipe, "of-three-models", request).all()) {
    const Shape& shape = cell.asked.problem.shape;
    const std::string spec = cell.asked.input.spec();
    INFO(spec << ", n = " << shape.nk);
    const bool own = cell.asked.input.name() == "model", minilm = spec.starts_with("pretrained:layer");
    CHECK((shape.nk == 64 || shape.nk == (minilm ? 512 : 1024)));
    CHECK(shape.d == (minilm ? 32 : 64));
    CHECK(shape.mask.causal == own);
    CHECK(cell.replicates == (own ? 32 : 24));
  }
}

TEST_CASE("a definition ends with the sizes of its cells, and with what replicates are", "[unit]") {
  Recipe recipe(RecipeSize::full);
  RunRequest one = request;
  one.n = {1024};
  CHECK(settings_in_words(run_on(recipe, "of-three-models", one)) ==
        "12 heads of the byte-level model (n = 1024, d = 64, causal, 32 texts); 6 heads of MiniLM (n = 512, d = 32, "
        "bidirectional, 24 draws of the method, on 8 texts in turn); 3 heads of Whisper's encoder (n = 1024, d = 64, "
        "bidirectional, 24 draws of the method, on 2 texts in turn)");
  const auto words = [&](const RunRequest& asked) { return settings_in_words(recipe.run(asked)); };
  CHECK(words({.experiment = "kernel-error:draws=64,pairs=1",
               .methods = {"performer:m=4"},
               .inputs = {"pair"},
               .n = {1},
               .d = {4, 8},
               .replicates = 64}) == "d = 4, 8, 64 replicates of 64 draws");
  CHECK(words({.experiment = "speed:blocks=32",
               .methods = {"linear"},
               .inputs = {"gaussian"},
               .n = {64, 128, 256, 512},
               .precision = Precision::f32}) == "n = 64 to 512, d = 64, bidirectional, in float, 32 blocks of turns");
  CHECK(words({.experiment = "model-loss", .methods = {"local"}, .inputs = {"model"}, .n = {64}, .replicates = 2}) ==
        "the byte-level model (n = 64, d = 64, causal, 2 texts)");
}

TEST_CASE("on each model's heads a budget is a share of softmax's FLOPs on those heads", "[recipes]") {
  const auto recipe = written(find<RecipeEntry>("vq-against-performer"), RecipeSize::quick);
  for (const RecipeCell& cell : recipe->cells().all()) {
    if (cell.asked.method.name() == "uniform" || place_of(cell.asked.input).group.empty()) continue;
    const Shape& shape = cell.asked.problem.shape;
    const auto flops = [&](const Params& method) { return *cost_of(method, shape, Match::Cost::flops); };
    const double share = flops(Params("methods", "softmax")) / flops(cell.asked.method);
    INFO(cell.asked.method.spec() << " on " << cell.asked.input.spec() << ": 1/" << share);
    CHECK(std::min({std::abs(share / 2 - 1), std::abs(share / 4 - 1), std::abs(share / 8 - 1)}) < 0.15);
  }
}

TEST_CASE("the largest weights at a quarter of the pairs are a quarter of the keys without a mask", "[recipes]") {
  const auto recipe = written(find<RecipeEntry>("error-at-equal-flops"), RecipeSize::quick);
  const auto kept = [&](const std::string& input) {
    for (const RecipeCell& cell : recipe->cells().input(input).all())
      if (cell.asked.method.name() == "top-k") return cell.asked.method.integer("k");
    return Index{0};
  };
  for (const std::string& input : heads_of(RecipeSize::quick, "pretrained")) CHECK(kept(input) == 32);  // of 128
  CHECK(kept("model:layer=2,head=1") == 17);  // causal: 128 (1 - sqrt(3/4)) = 17.1
}

TEST_CASE("a verdict's region of a model has heads of that model alone", "[recipes]") {
  const MadeUp numbers = arbitrary();
  std::set<std::string> recipes;
  for (const auto& name : plannable_recipes(RecipeSize::quick))
    for (const Verdict& verdict : written(find<RecipeEntry>(name), RecipeSize::quick)->verdicts(numbers))
      for (const auto& compared : verdict.finding.compared)
        for (const std::string model : {"MiniLM", "Whisper's encoder", "the byte-level model"}) {
          const std::string region = fmt::format("heads of {}: ", model);
          const auto begin = compared.what.find(region);
          if (begin == std::string::npos) continue;
          INFO(name << ": " << compared.what);
          recipes.insert(name);
          const std::string head = compared.what.substr(begin + region.size());
          const std::string begins = model == "the byte-level model" ? "layer " : model + ", layer ";
          const bool of_a_head = head.find("layer ") != std::string::npos;
          CHECK((!of_a_head || head.find(begins) != std::string::npos));
          CHECK((!of_a_head || model != "the byte-level model" || head.find("MiniLM") == std::string::npos));
        }
  for (const auto* name :
       {"sparsity", "rank", "wider-keys", "vq-against-performer", "output-error", "entropy-per-head"})
    CHECK(recipes.contains(name));
}

}  // namespace attnbench::real_heads_test
