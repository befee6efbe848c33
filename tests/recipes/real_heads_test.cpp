// The heads that recipes measure: which model, text, n and mask each has, and that verdicts group them by model.
#include "experiments/recipes/real_heads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "experiments/recipes/field.hpp"
#include "harness/runner/match.hpp"
#include "harness/runner/reproduce.hpp"
#include "tests/catch.hpp"
#include "tests/runner/made_up.hpp"

namespace attnbench::real_heads_test {

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a head's input, name and region say which model it is of", "[unit]") {
  const RealHead own{2, 0}, other{5, 4, &minilm};
  CHECK(own.input() == "model:layer=2,head=0");
  CHECK(own.name() == "layer 2, head 0");
  CHECK(own.part() == "heads of the byte-level model");
  CHECK(other.input() == "pretrained:model=minilm,layer=5,head=4,text=0");
  CHECK(other.name() == "MiniLM, layer 5, head 4");
  CHECK(other.part() == "heads of MiniLM");
}

TEST_CASE("a head has its model's d and mask, and no more tokens than the model", "[unit]") {
  const Shape own = typical_head.shape(1024), sentences = captured_heads_of(minilm).front().shape(1024),
              speech = captured_heads_of(whisper_encoder).front().shape(2000),
              words = captured_heads_of(whisper_decoder).front().shape(1024);
  CHECK((own.nq == 1024 && own.nk == 1024 && own.d == 64 && own.dv == 64 && own.mask.causal));
  CHECK((sentences.nq == 512 && sentences.nk == 512 && sentences.d == 32 && sentences.dv == 32));
  CHECK_FALSE(sentences.mask.causal);
  CHECK((speech.nk == 1500 && speech.d == 64 && !speech.mask.causal));
  CHECK((words.nk == 34 && words.d == 64 && words.mask.causal));
  CHECK(captured_heads_of(minilm).front().shape(100).nk == 100);
}

TEST_CASE("at full size a recipe gets every captured head of two models", "[unit]") {
  const Recipe smoke(RecipeSize::smoke), quick(RecipeSize::quick), full(RecipeSize::full);
  CHECK(pretrained_heads(smoke).size() == 2);
  CHECK(inputs_of(pretrained_heads(quick)) ==
        std::vector<std::string>{"pretrained:model=minilm,layer=0,head=2,text=0",
                                 "pretrained:model=minilm,layer=5,head=4,text=0",
                                 "pretrained:model=whisper-encoder,layer=0,head=4,text=0",
                                 "pretrained:model=whisper-encoder,layer=2,head=5,text=0"});
  const auto all = inputs_of(pretrained_heads(full));
  CHECK(std::set<std::string>(all.begin(), all.end()).size() == 6 + 3);
  CHECK(telling_heads_of_models(full).size() == 12 + 6 + 3);
  CHECK(by_model(telling_heads_of_models(full)).size() == 3);
}

TEST_CASE("a request on heads of several models keeps within each model's tokens, with 24 draws on a text", "[unit]") {
  Recipe recipe(RecipeSize::quick);
  const auto heads = telling_heads_of_models(recipe);
  const Cells cells = run_on(
      recipe, {.experiment = "sparsity", .methods = {"softmax"}, .inputs = {}, .n = {64, 1024}, .replicates = 32},
      heads);
  CHECK(cells.size() == 2 * heads.size());
  for (const RealHead& head : heads)
    for (const RecipeCell& cell : cells.input(head.input()).all()) {
      INFO(head.name() << ", n = " << cell.asked.problem.shape.nk);
      const bool own = head.model == &byte_model;
      CHECK((cell.asked.problem.shape.nk == 64 || cell.asked.problem.shape.nk == (head.model == &minilm ? 512 : 1024)));
      CHECK(cell.asked.problem.shape.mask.causal == own);
      CHECK(cell.replicates == (own ? 32 : 24));
    }
}

TEST_CASE("a definition says which heads were measured, and of which replicates medians are", "[unit]") {
  CHECK(
      heads_in_words(telling_heads_of_models(Recipe(RecipeSize::full)), 1024) ==
      "Heads: 12 of the byte-level model (causal, n = 1024, d = 64), 6 of MiniLM (bidirectional, n = 512, d = 32), 3 "
      "of Whisper's encoder (bidirectional, n = 1024, d = 64). On the byte-level model medians are over texts; on the "
      "others over draws of the method on one text, so that a method without draws gives one number there, and its "
      "interval says nothing about other texts");
  CHECK(has(heads_in_words(pretrained_heads(Recipe(RecipeSize::quick)), 64, false),
            "2 of MiniLM (n = 64, d = 32), 2 of Whisper's encoder (n = 64, d = 64)"));
}

TEST_CASE("on each model's heads a budget is a share of softmax's FLOPs on those heads", "[recipes]") {
  const auto recipe = written(find<RecipeEntry>("vq-against-performer"), RecipeSize::quick);
  for (const RealHead& head : telling_heads_of_models(*recipe))
    for (const RecipeCell& cell : recipe->cells().input(head.input()).all()) {
      if (cell.asked.method.name() == "uniform") continue;
      const Shape& shape = cell.asked.problem.shape;
      const double share = softmax_flops(shape) / *cost_of(cell.asked.method, shape, Match::Cost::flops);
      INFO(cell.asked.method.spec() << " on " << head.name() << ": 1/" << share);
      CHECK(std::min({std::abs(share / 2 - 1), std::abs(share / 4 - 1), std::abs(share / 8 - 1)}) < 0.15);
    }
}

TEST_CASE("the largest weights at a quarter of the pairs are a quarter of the keys without a mask", "[recipes]") {
  const auto recipe = written(find<RecipeEntry>("error-at-equal-flops"), RecipeSize::quick);
  const auto kept = [&](const RealHead& head) {
    for (const RecipeCell& cell : recipe->cells().input(head.input()).all())
      if (cell.asked.method.name() == "top-k") return cell.asked.method.integer("k");
    return Index{0};
  };
  for (const RealHead& head : pretrained_heads(*recipe)) CHECK(kept(head) == 32);  // of 128
  CHECK(kept({2, 1}) == 17);                                                       // causal: 128 (1 - sqrt(3/4)) = 17.1
}

TEST_CASE("a verdict's region of a model has heads of that model alone", "[recipes]") {
  const MadeUp numbers = arbitrary();
  std::set<std::string> recipes;
  for (const auto& name : catalogue("recipes").names())
    for (const Verdict& verdict : written(find<RecipeEntry>(name), RecipeSize::quick)->verdicts(numbers))
      for (const auto& compared : verdict.finding.compared)
        for (const HeadModel* model : {&minilm, &whisper_encoder, &byte_model}) {
          const std::string region = fmt::format("heads of {}: ", model->title);
          const auto begin = compared.what.find(region);
          if (begin == std::string::npos) continue;
          INFO(name << ": " << compared.what);
          const std::string head = compared.what.substr(begin + region.size());
          recipes.insert(name);
          const std::string begins = model == &byte_model ? "layer " : fmt::format("{}, layer ", model->title);
          CHECK((head.starts_with(begins) || head == "heads (12 matrices)"));
        }
  for (const auto* name :
       {"sparsity", "rank", "wider-keys", "vq-against-performer", "output-error", "entropy-per-head"})
    CHECK(recipes.contains(name));
}

}  // namespace attnbench::real_heads_test
