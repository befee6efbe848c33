#include "experiments/recipes/real_heads.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/inputs/input.hpp"

namespace attnbench {
namespace {

// An interval of a median over 24 draws has an error rate down to 2^-23.
Index draws(const Recipe& recipe) { return recipe.sized<Index>(2, 24); }

const InputEntry& entry_of(const Params& input) { return find<InputEntry>(input.name()); }

}  // namespace

std::string RealHead::input() const {
  return fmt::format("{}layer={},head={}{}", model->input, layer, head, model == &byte_model ? "" : ",text=0");
}

std::string RealHead::place() const { return fmt::format("layer {}, head {}", layer, head); }

std::string RealHead::name() const {
  return model == &byte_model ? place() : fmt::format("{}, {}", model->title, place());
}

std::string RealHead::part() const { return fmt::format("heads of {}", model->title); }

Shape RealHead::shape(Index n) const {
  const Params params("inputs", input());
  const InputLimits limits = entry_of(params).limits(params);
  const Index tokens = limits.keys > 0 ? std::min(n, limits.keys) : n;
  return {.nq = tokens,
          .nk = tokens,
          .d = limits.d,
          .dv = limits.dv,
          .mask = {.causal = entry_of(params).causal_by_default || limits.causal}};
}

std::vector<RealHead> all_heads() {
  std::vector<RealHead> all;
  for (Index layer = 0; layer < 4; ++layer)
    for (Index head = 0; head < 3; ++head) all.push_back({layer, head});
  return all;
}

std::vector<RealHead> telling_heads(const Recipe& recipe) {
  return recipe.sized<std::vector<RealHead>>({typical_head}, {dense_head, typical_head, concentrated_head},
                                             all_heads());
}

std::vector<RealHead> captured_heads_of(const HeadModel& model) {
  std::vector<RealHead> all;
  if (&model == &minilm)
    all = {{0, 2}, {0, 11}, {1, 7}, {2, 2}, {2, 9}, {5, 4}};
  else if (&model == &whisper_encoder)
    all = {{0, 4}, {2, 2}, {2, 5}};
  else if (&model == &whisper_decoder)
    all = {{0, 2}, {0, 3}, {0, 4}, {0, 5}, {1, 3}, {3, 2}};
  for (RealHead& head : all) head.model = &model;
  return all;
}

std::vector<RealHead> pretrained_heads(const Recipe& recipe) {
  std::vector<RealHead> all;
  for (const HeadModel* model : {&minilm, &whisper_encoder}) {
    const auto captured = captured_heads_of(*model);
    const auto some =
        recipe.sized<std::vector<RealHead>>({captured.front()}, {captured.front(), captured.back()}, captured);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::vector<RealHead> telling_heads_of_models(const Recipe& recipe) {
  std::vector<RealHead> all = telling_heads(recipe);
  for (const RealHead& head : pretrained_heads(recipe)) all.push_back(head);
  return all;
}

std::vector<std::vector<RealHead>> by_model(const std::vector<RealHead>& heads) {
  std::vector<std::vector<RealHead>> models;
  for (const RealHead& head : heads) {
    if (models.empty() || models.back().front().model != head.model) models.emplace_back();
    models.back().push_back(head);
  }
  return models;
}

std::vector<RealHead> first_and_last(const std::vector<RealHead>& heads) {
  std::vector<RealHead> shown;
  for (const auto& of_model : by_model(heads)) {
    shown.push_back(of_model.front());
    if (of_model.size() > 1) shown.push_back(of_model.back());
  }
  return shown;
}

Cells run_on(Recipe& recipe, const RunRequest& request, const std::vector<RealHead>& heads) {
  Cells all;
  for (const auto& of_model : by_model(heads)) {
    RunRequest one = request;
    one.inputs = inputs_of(of_model);
    for (Index& n : one.n) n = of_model.front().shape(n).nk;
    if (of_model.front().model != &byte_model) one.replicates = std::min(request.replicates, draws(recipe));
    all = all + recipe.run(one);
  }
  return all;
}

std::string heads_in_words(const std::vector<RealHead>& heads, Index n, bool own_masks) {
  std::vector<std::string> models;
  for (const auto& of_model : by_model(heads)) {
    const Shape shape = of_model.front().shape(n);
    const char* mask = !own_masks ? "" : shape.mask.causal ? "causal, " : "bidirectional, ";
    models.push_back(fmt::format("{} of {} ({}n = {}, d = {})", of_model.size(), of_model.front().model->title, mask,
                                 shape.nk, shape.d));
  }
  return fmt::format(
      "Heads: {}. On the byte-level model medians are over texts; on the others over draws of the method on one text, "
      "so "
      "that a method without draws gives one number there, and its interval says nothing about other texts",
      fmt::join(models, ", "));
}

std::vector<std::string> inputs_of(const std::vector<RealHead>& heads) {
  std::vector<std::string> inputs;
  for (const RealHead& head : heads) inputs.push_back(head.input());
  return inputs;
}

std::string LawOrHead::within(const std::string& more) const {
  if (part == name) return more;
  return more.empty() ? name : fmt::format("{}, {}", name, more);
}

std::vector<LawOrHead> laws_and_heads(std::vector<LawOrHead> laws, const std::vector<RealHead>& heads) {
  for (const RealHead& head : heads) laws.push_back({head.name(), head.input(), head.part(), head.shape(1).d});
  return laws;
}

std::vector<std::string> inputs_of(const std::vector<LawOrHead>& all) {
  std::vector<std::string> inputs;
  for (const LawOrHead& one : all) inputs.push_back(one.input);
  return inputs;
}

namespace {

Estimate extreme_of(const std::vector<Estimate>& all, const double& (*choose)(const double&, const double&)) {
  Estimate found = all.front();
  for (const Estimate& one : all) {
    if (!one.measured()) return unmeasured();
    found.value = choose(found.value, one.value);
    found.interval = {choose(found.interval.low, one.interval.low), choose(found.interval.high, one.interval.high)};
  }
  return found;
}

}  // namespace

Estimate least_of(const std::vector<Estimate>& all) { return extreme_of(all, std::min<double>); }
Estimate greatest_of(const std::vector<Estimate>& all) { return extreme_of(all, std::max<double>); }

Region& region(std::vector<Region>& regions, const std::string& name) {
  const auto found = std::find_if(regions.begin(), regions.end(), [&](const Region& one) { return one.name == name; });
  if (found != regions.end()) return *found;
  return regions.emplace_back(Region{name, {}});
}

}  // namespace attnbench
