// Which unit a worker does next. Units of one input belong together: a worker keeps to them, so that what is exact is
// computed once. One without units takes the next input that none has begun, then single units from the back of the
// input that has most left.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace attnbench {

class UnitQueue {
 public:
  // inputs: of each unit, the input it belongs to.
  UnitQueue(std::span<const std::string> inputs, size_t workers);

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
  struct Place {
    std::optional<size_t> input;
    bool from_the_back = false;
  };
  std::vector<Input> inputs_;
  std::vector<Place> places_;
  size_t begun_ = 0;  // inputs before it have a worker, or had one
};

}  // namespace attnbench
