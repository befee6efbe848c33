// Error against cost on heads of models, with every method at the same FLOPs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>

#include "experiments/recipes/field.hpp"
#include "experiments/recipes/real_heads.hpp"

namespace attnbench::equal_flops_recipe {
namespace {

constexpr Index judged_share = 4;  // budgets are softmax's FLOPs over this

double flops_at(const Shape& shape, Index share) { return softmax_flops(shape) / static_cast<double>(share); }

// A causal row with fewer than k keys keeps them all, so k = n (1 - sqrt(1 - 1/share)) keeps one over `share` of all
// pairs.
std::string largest_weights(const Shape& shape, Index share) {
  const double kept = 1 / static_cast<double>(share);
  return fmt::format("top-k:k={:.0f}",
                     static_cast<double>(shape.nk) * (shape.mask.causal ? 1 - std::sqrt(1 - kept) : kept));
}

// The methods at the judged share on heads of one shape.
struct AtShare {
  Specs candidates, patterns;
  std::string largest;

  explicit AtShare(const Shape& shape)
      : candidates(field_at(shape, flops_at(shape, judged_share))), largest(largest_weights(shape, judged_share)) {
    for (const auto& pattern : pattern_methods())
      patterns.push_back(
          matched(Params("methods", pattern), shape, {Match::Cost::flops, flops_at(shape, judged_share)}).spec());
  }
};

struct Measured {
  Index n;
  std::vector<RealHead> heads, of_others;  // of the byte-level model, of pretrained ones
  std::map<std::string, AtShare> methods;  // by part
  Cells cells;

  const AtShare& at_share(const RealHead& head) const { return methods.at(head.part()); }
  std::vector<RealHead> all_judged() const {
    std::vector<RealHead> all = heads;
    all.insert(all.end(), of_others.begin(), of_others.end());
    return all;
  }

  Samples error(const std::string& method, const RealHead& head) const {
    return cells.method(method).input(head.input()).scalar("relative_output_error");
  }
};

Measured measure(Recipe& recipe) {
  Measured all{.n = recipe.sized<Index>(64, 128, 512),
               .heads = recipe.sized<std::vector<RealHead>>({{2, 0}, {2, 1}}, {{2, 0}, {2, 1}, {2, 2}}, all_heads()),
               .of_others = pretrained_heads(recipe),
               .methods = {},
               .cells = {}};
  RunRequest request{.experiment = "attention-error:matrix=false",
                     .methods = {},
                     .inputs = {},
                     .n = {all.n},
                     .replicates = recipe.sized<Index>(2, texts)};
  for (const auto& of_model : by_model(all.all_judged())) {
    const RealHead& first = of_model.front();
    const AtShare& at_share = all.methods.emplace(first.part(), first.shape(all.n)).first->second;
    request.methods = at_share.candidates;
    request.methods.insert(request.methods.end(), {"uniform", "softmax", at_share.largest});
    all.cells = all.cells + run_on(recipe, request, of_model);
  }
  // The other shares are only for the figure, on the first head of each layer.
  request.replicates = recipe.sized<Index>(1, 4);
  const Shape shape = all.heads.front().shape(all.n);
  for (const RealHead& head : all.heads)
    if (head.head == 0) request.inputs.push_back(head.input());
  for (const Index share : recipe.sized<std::vector<Index>>({2}, {16, 8, 2})) {
    request.methods = field_at(shape, flops_at(shape, share));
    request.methods.push_back(largest_weights(shape, share));
    all.cells = all.cells + recipe.run(request);
  }
  return all;
}

void draw(Recipe& recipe, const Measured& all) {
  std::vector<RealHead> first;  // of each layer
  for (const RealHead& head : all.heads)
    if (head.head == 0) first.push_back(head);
  std::vector<Panel> panels = errors_against_flops(all.cells, inputs_of(first));
  for (size_t i = 0; i < panels.size(); ++i) {
    panels[i].title = first[i].name();
    panels[i].bound = {"top-k"};
    panels[i].bound_x = "pattern_flops";
    panels[i].y_most = 2;
  }
  recipe.figure("error-at-equal-flops", "Error against cost on heads of the byte-level model",
                fmt::format("Heads of the byte-level model with its causal mask, n = {}, d = dv = 64; medians over {} "
                            "texts at a quarter of softmax's FLOPs, over 4 texts at 1/16, 1/8 and 1/2. Methods without "
                            "a budget stay at their own cost; vertical line: softmax. Dotted: the mean of V, and the k "
                            "largest weights of each row at the cost of attention to k keys that are given, which no "
                            "method knows beforehand. Mixers have weights that were drawn, not trained.",
                            all.n, recipe.sized<Index>(2, texts)),
                panels);
}

std::string heads_of(const Measured& all) {
  std::vector<std::string> names;
  for (const RealHead& head : all.heads) names.push_back(head.name());
  return all.heads.size() == all_heads().size() ? "all 12 heads" : fmt::format("{}", fmt::join(names, "; "));
}
const std::string error = "the relative error of the output, |A'V - AV| / |AV| (Frobenius)",
                  budgets = "budgets set for a quarter of softmax's FLOPs";
// Of the byte-level model alone, and of all models.
std::string measured_by_text(const Measured& all) {
  return fmt::format("{}, text by text ({} held-out texts), n = {}, d = dv = 64, causal, on {}; {}", error,
                     all.cells.method("uniform").input(all.heads.front().input()).all().front().replicates, all.n,
                     heads_of(all), budgets);
}
std::string measured(const Measured& all) {
  return fmt::format("{}, text by text or draw by draw; {}. {}", error, budgets,
                     heads_in_words(all.all_judged(), all.n));
}

void judge_mean_of_values(Recipe& recipe, const Measured& all) {
  std::vector<size_t> of_others;  // how many candidates each of the other models has
  for (const auto& of_model : by_model(all.of_others))
    of_others.push_back(all.at_share(of_model.front()).candidates.size());
  recipe.judge(
      {.text = "On each judged head of " + three_models +
               " at least one approximation errs less than the mean of V, at a "
               "quarter of softmax's FLOPs or, without a budget to set, at its own cost up to softmax's",
       .definition =
           measured(all) +
           fmt::format(". Over the error of the mean of V. Candidates are features of the kernel, vector quantisation, "
                       "sparse patterns, clusters of tokens, mixers and combinations of these, as far as they have a "
                       "form for the mask: {} on the byte-level model, {} on the others. Those without a budget run as "
                       "they are and count if they take no more FLOPs than softmax",
                       all.at_share(all.heads.front()).candidates.size(), fmt::join(of_others, " and ")),
       .threshold = "1: the error of the mean of V, which needs neither queries nor keys. A head holds where one "
                    "candidate surely errs less, and fails where every candidate surely errs more",
       .expected = Ruling::open,
       .because = "nothing is known beforehand"},
      [=, &recipe] {
        size_t intervals = 0;
        for (const RealHead& head : all.all_judged()) intervals += all.at_share(head).candidates.size();
        const double rate = recipe.error_rate(intervals);
        std::vector<Region> regions;
        for (const RealHead& head : all.all_judged()) {
          Region region{head.name(), {}};
          region.rule = Region::Rule::some;
          for (const auto& method : all.at_share(head).candidates)
            region.comparisons.push_back(
                {method, median_ratio(all.error(method, head), all.error("uniform", head), rate)});
          regions.push_back(region);
        }
        return below_where(1, regions);
      });
}

// The minimum for each replicate.
Samples least_of(const std::vector<Samples>& all) {
  Samples least = all.front();
  for (const Samples& one : all)
    for (auto& [replicate, value] : least) value = std::min(value, one.at(replicate));
  return least;
}

void judge_bound(Recipe& recipe, const Measured& all) {
  recipe.judge(
      {.text = "How much more the best of five fixed patterns errs than keeping the largest weights of each row, with "
               "about equally many query-key pairs, on heads of " +
               three_models,
       .definition =
           measured(all) +
           ". The error of the best of local, dilated, strided, sparse-fixed and longformer, over that of attention "
           "to the k largest weights of each row, k such that they are a quarter of the pairs which the mask lets "
           "meet; a row that sees no more than k keys keeps all. The patterns' FLOPs are as near to a quarter of "
           "softmax's as their budgets allow, so that they have about as many pairs",
       .threshold = "none: the values. 2 and 10 are there to be read off",
       .expected = Ruling::measured,
       .because = "no source gives a number"},
      [=, &recipe] {
        std::vector<Comparison> comparisons;
        for (const RealHead& head : all.all_judged()) {
          std::vector<Samples> errors;
          for (const auto& pattern : all.at_share(head).patterns) errors.push_back(all.error(pattern, head));
          comparisons.push_back(
              {head.name(), median_ratio(least_of(errors), all.error(all.at_share(head).largest, head),
                                         recipe.error_rate(all.all_judged().size()))});
        }
        return values_of(comparisons, {2, 10});
      });
}

// Patterns are chosen on the texts with even numbers and judged on the others, to avoid a selection bias.
struct Split {
  Samples chosen_on, judged_on;
  explicit Split(const Samples& all) {
    for (const auto& [text, value] : all) (text % 2 == 0 ? chosen_on : judged_on)[text] = value;
  }
};

double sum(const Samples& samples) {
  double total = 0;
  for (const auto& [text, value] : samples) total += value;
  return total;
}

void add_to(Samples& total, const Samples& more) {
  for (const auto& [text, value] : more) total[text] += value;
}

// For one layer: the error with a separate pattern for each head, over that with the best single pattern for all heads.
Comparison a_pattern_each(const Measured& all, Index layer, double rate) {
  Samples mixed;
  std::map<std::string, Samples> chosen_on, judged_on;  // of all heads, by pattern
  Specs choices;
  for (const RealHead& head : all.heads) {
    if (head.layer != layer) continue;
    std::map<double, std::string> by_error;
    for (const auto& pattern : all.at_share(head).patterns) {
      const Split split(all.error(pattern, head));
      by_error.emplace(sum(split.chosen_on), pattern);
      add_to(chosen_on[pattern], split.chosen_on);
      add_to(judged_on[pattern], split.judged_on);
    }
    const std::string choice = by_error.begin()->second;
    add_to(mixed, Split(all.error(choice, head)).judged_on);
    choices.push_back(Params("methods", choice).name());
  }
  const auto best = std::min_element(chosen_on.begin(), chosen_on.end(),
                                     [](const auto& x, const auto& y) { return sum(x.second) < sum(y.second); });
  return {
      fmt::format("layer {}: {} against {}", layer, fmt::join(choices, ", "), Params("methods", best->first).name()),
      median_ratio(mixed, judged_on.at(best->first), rate)};
}

void judge_different_patterns(Recipe& recipe, const Measured& all) {
  recipe.judge(
      {.text = "By what factor a sparse pattern chosen for each head changes the error, compared with the best single "
               "pattern for all heads of a layer of this project's byte-level model",
       .source = "Hung-yi Lee, lecture on variants of self-attention: local, stride and global attention",
       .paraphrase = "asked which pattern to choose: use all of them, in different heads",
       .definition = measured_by_text(all) +
                     ". The error, summed over the judged heads of a layer, with the pattern that is best for each "
                     "head over the same with the one pattern that is best for all of them. Patterns (local, dilated, "
                     "strided, sparse-fixed, longformer) are chosen on the texts with even numbers and judged on the "
                     "others, medians over these; below 1 a pattern for each head errs less",
       .threshold = "none: the source gives no number. 0.9 and 1 are there to be read off; where all heads choose the "
                    "same pattern the ratio is 1",
       .expected = Ruling::measured,
       .because = "on the texts where patterns are chosen it cannot err more; on others nothing is known"},
      [=, &recipe] {
        std::vector<Index> layers;
        for (const RealHead& head : all.heads)
          if (layers.empty() || layers.back() != head.layer) layers.push_back(head.layer);
        std::vector<Comparison> comparisons;
        for (const Index layer : layers)
          comparisons.push_back(a_pattern_each(all, layer, recipe.error_rate(layers.size())));
        return values_of(comparisons, {0.9, 1});
      });
}

void write(Recipe& recipe) {
  const Measured all = measure(recipe);
  draw(recipe, all);
  judge_mean_of_values(recipe, all);
  judge_bound(recipe, all);
  judge_different_patterns(recipe, all);
}

const bool registered =
    add(RecipeEntry{.text = {.name = "error-at-equal-flops",
                             .summary = "Error against cost on heads of models, at equal FLOPs",
                             .formula = "At equal FLOPs, which approximation errs least on heads of models, and do "
                                        "heads want different patterns?",
                             .reference = "Tay et al. 2020, arXiv:2011.04006, Fig. 3"},
                    .write = write});

}  // namespace
}  // namespace attnbench::equal_flops_recipe
