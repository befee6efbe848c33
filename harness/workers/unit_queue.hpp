// Decides which unit a worker runs next. Units of the same plugins follow each other, because a worker that has run
// code of a plugin takes no unit of another: each worker then changes its process once for each plugin. A worker keeps
// to the units of one input, so that the exact results are computed once. It also keeps to one replicate, whose inputs
// may all be made from one text. A worker without units takes the next input of its replicate, then a replicate that no
// worker has begun, then an input of the replicate that has most inputs left, then single units from the back of the
// input that has most units left.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace attnbench {

class UnitQueue {
 public:
  // The input, the replicate and the plugins of a unit. All units of one input and plugins belong to one replicate.
  struct Group {
    std::string input;
    long replicate = 0;
    size_t plugins = 0;  // a number for each set of plugins
  };
  UnitQueue(std::span<const Group> groups, size_t workers);

  struct Next {
    size_t unit, input;  // input: numbered, once for each set of plugins
  };
  std::optional<Next> next(size_t worker);

 private:
  struct Input {
    std::vector<size_t> units;  // [first, last) are left
    size_t first = 0, last = 0;
    size_t left() const { return last - first; }
  };
  struct Replicate {
    std::vector<size_t> inputs;  // those from begun on are left
    size_t begun = 0;
    size_t left() const { return inputs.size() - begun; }
  };
  struct Place {
    std::optional<size_t> replicate, input;
    bool from_the_back = false;
  };
  bool begin_input(Place& place);
  bool share_input(Place& place) const;

  std::vector<Input> inputs_;
  std::vector<Replicate> replicates_;
  std::vector<Place> places_;
  size_t begun_ = 0;  // replicates before this one have or had a worker
};

}  // namespace attnbench
