// The quality of rows by the keys that they read: methods that select, sample, hash or thin keys, at equal numbers of
// keys read, against a uniform sample of them, on heads and on the loss of a model. methods.md S.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/recipes/equal_keys.hpp"
#include "experiments/recipes/field.hpp"
#include "experiments/recipes/real_heads.hpp"

namespace attnbench::quality_at_equal_keys_recipe {
namespace {

using Specs = std::vector<std::string>;

const std::string error = "relative_output_error";

std::string uniform(Index keys) { return fmt::format("sampled:law=uniform,replacement=false,s={}", keys); }
std::string coreset(const std::string& method, const std::string& budget, Index keys) {
  return fmt::format("{}:{}={}", method, budget, keys);
}

// The methods that read about that many keys in each row, by the mask of the head, apart from coresets. MagicPIG and
// vAttention decide by the row how many they read.
Specs readers(Index keys, bool causal) {
  Specs all{
      fmt::format("top-k:k={}", keys),
      fmt::format("local:window={}", causal ? keys - 1 : (keys - 1) / 2),
      fmt::format("sampled:law=value-norm,s={}", keys),
      fmt::format("sampled:law=oracle,s={}", keys),
      fmt::format("hyper:block={0},s={0}", keys / 2),
      fmt::format("magicpig:bits=6,tables={},sinks=4,window=0", std::max<Index>(2, keys / 2)),
      fmt::format("vattention:sinks=4,window=0,top={0},base={0},eps=0.2,delta=0.2", std::max<Index>(2, keys / 4))};
  if (causal)
    all.push_back(fmt::format("heavy-hitter:heavy={0},recent={0}", keys / 2));
  else
    all.push_back(fmt::format("kdeformer:block={0},s={0}", keys / 2));
  return all;
}

// Softmax over a coreset that all rows share; neither has a causal form.
Specs coresets(Index keys) { return {coreset("thinformer", "keep", keys), coreset("wildcat", "r", keys)}; }

struct Measured {
  Index keys;                   // the budget that is judged
  Specs null;                   // uniform samples of several sizes
  std::vector<RealHead> heads;  // of all models
  Cells read, of_coresets, losses;

  // The error of a method over that of a uniform sample of as many keys, on a head.
  Samples over_null(const std::string& method, const RealHead& head) const {
    const Cells here = read.input(head.input());
    const bool thinned = of_coresets_has(method);
    const Samples errors =
        (thinned ? of_coresets.input(head.input()).method(method) : here.method(method)).scalar(error);
    Samples at = thinned ? errors : here.method(method).scalar("keys_read");
    if (thinned)
      for (auto& [replicate, value] : at) value = static_cast<double>(keys);
    return quotients(errors, at_equal_keys(here, null, error, at));
  }
  bool of_coresets_has(const std::string& method) const {
    const Specs all = coresets(keys);
    return std::find(all.begin(), all.end(), method) != all.end();
  }
  Specs methods_of(const RealHead& head) const {
    const bool causal = head.shape(1).mask.causal;
    Specs all = readers(keys, causal);
    if (!causal)
      for (const auto& one : coresets(keys)) all.push_back(one);
    return all;
  }
};

Measured measure(Recipe& recipe) {
  const auto sizes = recipe.sized<std::vector<Index>>({8, 16}, {32, 64, 128});
  const Index n = recipe.sized<Index>(64, 512, 1024), replicates = recipe.sized<Index>(2, 24, texts);
  Measured all{.keys = recipe.sized<Index>(8, 64, 64), .heads = {dense_head, typical_head, concentrated_head}};
  for (const RealHead& head : pretrained_heads(recipe)) all.heads.push_back(head);
  for (const Index size : sizes) all.null.push_back(uniform(size));
  for (const auto& of_model : by_model(all.heads)) {
    const bool causal = of_model.front().shape(1).mask.causal;
    RunRequest request{.experiment = "dropped-keys", .methods = all.null, .n = {n}, .replicates = replicates};
    for (const Index size : sizes)
      for (const auto& method : readers(size, causal)) request.methods.push_back(method);
    all.read = all.read + run_on(recipe, request, of_model);
    if (causal) continue;
    request.experiment = "attention-error:matrix=false";
    request.methods.clear();
    for (const Index size : sizes)
      for (const auto& method : coresets(size)) request.methods.push_back(method);
    all.of_coresets = all.of_coresets + run_on(recipe, request, of_model);
  }
  RunRequest losses{.experiment = "model-loss",
                    .methods = readers(all.keys, true),
                    .inputs = {"model"},
                    .n = {n},
                    .precision = Precision::f32,
                    .replicates = replicates};
  losses.methods.insert(losses.methods.end(), {uniform(all.keys), "uniform"});
  all.losses = recipe.run(losses);
  return all;
}

void draw(Recipe& recipe, const Measured& all, Index n) {
  recipe.headline(6, "Which keys should a row read?");
  std::vector<Panel> panels;
  std::vector<std::string> budgets = budget_names();
  budgets.insert(budgets.end(), {"base", "recent"});  // of vattention and heavy-hitter
  for (const auto& heads : by_model(all.heads)) {
    Cells cells;
    for (const auto& input : inputs_of(heads)) cells = cells + all.read.input(input);
    panels.push_back({.title = heads.front().part(),
                      .kind = "trade",
                      .cells = cells,
                      .x = budgets,
                      .x_label = "keys that a row reads",
                      .x_scale = "log2",
                      .y = error,
                      .y_label = "error of the output",
                      .y_scale = "log10",
                      .x_metric = "keys_read"});
  }
  recipe.figure(
      "quality-at-equal-keys", "Error against keys read",
      fmt::format("The relative error of the output against the mean number of keys that a row reads, n = "
                  "{}, or all that a model has; geometric means over heads, and over texts or draws on one text. "
                  "Keys that a method reads to choose among them are not counted: top-k reads all.",
                  n),
      panels);
  recipe.figure(
      "loss-at-equal-keys", "Bits per byte that a model loses at equal keys read",
      fmt::format("The byte-level model with the method in every head, n = {}, budgets for about {} keys in a "
                  "row; medians over texts.",
                  n, all.keys),
      {table_column(all.losses, "excess_bits", "bits per byte above exact softmax", "median", "log10"),
       table_column(all.losses, error, "error of the output, mean over heads", "median", "log10")});
}

void write(Recipe& recipe) {
  const Measured all = measure(recipe);
  const Index n = recipe.sized<Index>(64, 512, 1024);
  draw(recipe, all, n);
  const std::string where = heads_in_words(all.heads, n);
  recipe.judge(
      {.text = "Methods that choose or weigh keys by what they hold err less than a uniform sample of as many keys, on "
               "heads of " +
               three_models,
       .definition = fmt::format(
           "the relative Frobenius error of the output over that of a uniform sample without replacement of as many "
           "keys as the method reads in the mean row (a power law between samples of {} sizes), text by text or draw "
           "by draw, a region for each method; budgets for about {} keys. Keys that are read to choose among them do "
           "not count. {}",
           all.null.size(), all.keys, where),
       .threshold = equal_errors,
       .expected = Ruling::open,
       .because = "nothing is known beforehand: hashing and norms may not find the keys that matter"},
      [=, &recipe] {
        size_t comparisons = 0;
        for (const RealHead& head : all.heads) comparisons += all.methods_of(head).size();
        std::vector<Region> regions;
        for (const RealHead& head : all.heads)
          for (const auto& method : all.methods_of(head))
            region(regions,
                   Params("methods", method).name() +
                       (method.find("law=") == std::string::npos ? "" : " by " + Params("methods", method).text("law")))
                .comparisons.push_back(
                    {head.name(), median_of(all.over_null(method, head), recipe.error_rate(comparisons))});
        return errs_less_where(regions);
      });
  recipe.judge(
      {.text = fmt::format("How many bits per byte this project's byte-level model loses when each row of every head "
                           "reads about {} of {} keys",
                           all.keys, n),
       .definition = "bits per byte of the model with the method in every head above those with exact softmax, "
                     "position by position, in float, the median over texts",
       .threshold = "none: the values. 0.01, 0.1 and 1 bit are there to be read off",
       .expected = Ruling::measured,
       .because = "methods differ"},
      [=, &recipe] {
        std::vector<Comparison> losses;
        Specs methods = readers(all.keys, true);
        methods.push_back(uniform(all.keys));
        for (const auto& method : methods)
          losses.push_back(
              {method, median_of(all.losses.method(method).scalar("excess_bits"), recipe.error_rate(methods.size()))});
        return values_of(losses, {0.01, 0.1, 1});
      });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "quality-at-equal-keys",
                             .summary = "Selected, sampled, hashed and thinned keys at equal numbers of keys read",
                             .formula = "Which keys should a row read, and what does it cost a model to read no more?",
                             .reference = "Gupta et al. 2021, arXiv:2106.06899; Chen et al. 2024, arXiv:2410.16179; "
                                          "Desai et al. 2025, arXiv:2510.05688; Carrell et al. 2025, arXiv:2502.12063"},
                    .write = write});

}  // namespace
}  // namespace attnbench::quality_at_equal_keys_recipe
