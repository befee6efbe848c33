// Which unit a worker does next. Units of one input belong together: a worker keeps to them, so that what is exact is
// computed once. So do the inputs of one replicate, which may all be made of one text. A worker without units takes the
// next input of its replicate, then a replicate that no worker has begun, then an input of the replicate that has most
// left, then single units from the back of the input that has most left.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace attnbench {

class UnitQueue {
 public:
  // Of each unit, the input it belongs to and its replicate. Units of one input are of one replicate.
  struct Group {
    std::string input;
    long replicate = 0;
  };
  UnitQueue(std::span<const Group> groups, size_t workers);

  struct Next {
    size_t unit, input;  // input: numbered in the order of first appearance
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
  size_t begun_ = 0;  // replicates before it have a worker, or had one
};

}  // namespace attnbench
