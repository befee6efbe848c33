#include "harness/workers/unit_queue.hpp"

#include <unordered_map>

namespace attnbench {

UnitQueue::UnitQueue(std::span<const std::string> inputs, size_t workers) : places_(workers) {
  std::unordered_map<std::string, size_t> numbers;
  for (size_t unit = 0; unit < inputs.size(); ++unit) {
    const auto [place, fresh] = numbers.try_emplace(inputs[unit], inputs_.size());
    if (fresh) inputs_.emplace_back();
    inputs_[place->second].units.push_back(unit);
  }
  for (Input& input : inputs_) input.last = input.units.size();
}

std::optional<UnitQueue::Next> UnitQueue::next(size_t worker) {
  Place& place = places_[worker];
  if (!place.input || inputs_[*place.input].left() == 0) {
    if (begun_ < inputs_.size()) {
      place = {begun_++, false};
    } else {
      const Place* most = nullptr;  // whatever is left is some worker's
      for (const Place& other : places_)
        if (other.input && (!most || inputs_[*other.input].left() > inputs_[*most->input].left())) most = &other;
      if (!most || inputs_[*most->input].left() == 0) return std::nullopt;
      place = {most->input, true};
    }
  }
  Input& input = inputs_[*place.input];
  return Next{input.units[place.from_the_back ? --input.last : input.first++], *place.input};
}

}  // namespace attnbench
