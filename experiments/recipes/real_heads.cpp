#include "experiments/recipes/real_heads.hpp"

#include <algorithm>

namespace attnbench {

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

std::vector<std::string> inputs_of(const std::vector<RealHead>& heads) {
  std::vector<std::string> inputs;
  for (const RealHead& head : heads) inputs.push_back(head.input());
  return inputs;
}

std::vector<LawOrHead> laws_and_heads(const Recipe& recipe, std::vector<LawOrHead> laws) {
  for (const RealHead& head : telling_heads(recipe)) laws.push_back({head.name(), head.input(), "heads of the model"});
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
