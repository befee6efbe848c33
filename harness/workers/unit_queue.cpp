#include "harness/workers/unit_queue.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>

namespace attnbench {

UnitQueue::UnitQueue(std::span<const Group> groups, size_t workers) : places_(workers) {
  std::unordered_map<std::string_view, size_t> numbers;  // of inputs and replicates with the last plugins
  std::unordered_map<long, size_t> replicates;
  std::vector<size_t> units(groups.size());
  size_t last = 0;
  std::iota(units.begin(), units.end(), 0);
  std::stable_sort(units.begin(), units.end(),
                   [&](size_t a, size_t b) { return groups[a].plugins < groups[b].plugins; });
  for (const size_t unit : units) {
    const auto& [name, replicate, plugins] = groups[unit];
    if (plugins != last) {
      numbers.clear();
      replicates.clear();
      last = plugins;
    }
    const auto [input, fresh] = numbers.try_emplace(name, inputs_.size());
    if (fresh) {
      const auto [place, first] = replicates.try_emplace(replicate, replicates_.size());
      if (first) replicates_.emplace_back();
      replicates_[place->second].inputs.push_back(inputs_.size());
      inputs_.emplace_back();
    }
    inputs_[input->second].units.push_back(unit);
  }
  for (Input& input : inputs_) input.last = input.units.size();
}

// Takes an input that no worker has begun: from the worker's own replicate, else from a new replicate, else from the
// replicate that has most inputs left.
bool UnitQueue::begin_input(Place& place) {
  if (!place.replicate || replicates_[*place.replicate].left() == 0) {
    if (begun_ < replicates_.size()) {
      place.replicate = begun_++;
    } else {
      for (const Place& other : places_)
        if (other.replicate &&
            (!place.replicate || replicates_[*other.replicate].left() > replicates_[*place.replicate].left()))
          place.replicate = other.replicate;
      if (!place.replicate || replicates_[*place.replicate].left() == 0) return false;
    }
  }
  Replicate& replicate = replicates_[*place.replicate];
  place.input = replicate.inputs[replicate.begun++];
  place.from_the_back = false;
  return true;
}

// Takes units of an input that another worker has begun.
bool UnitQueue::share_input(Place& place) const {
  const Place* most = nullptr;
  for (const Place& other : places_)
    if (other.input && (!most || inputs_[*other.input].left() > inputs_[*most->input].left())) most = &other;
  if (!most || inputs_[*most->input].left() == 0) return false;
  place.input = most->input;
  place.from_the_back = true;
  return true;
}

std::optional<UnitQueue::Next> UnitQueue::next(size_t worker) {
  Place& place = places_[worker];
  if ((!place.input || inputs_[*place.input].left() == 0) && !begin_input(place) && !share_input(place))
    return std::nullopt;
  Input& input = inputs_[*place.input];
  return Next{input.units[place.from_the_back ? --input.last : input.first++], *place.input};
}

}  // namespace attnbench
