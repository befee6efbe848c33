// A method for each head of a model: the order in which softmax is replaced, and the spec of the result.
#pragma once

#include <string>
#include <vector>

namespace attnbench {

// A method that one head may have instead of softmax.
struct HeadOption {
  std::string method;
  double loss;  // bits per byte above exact attention if this head alone has the method
  double cost;  // of a call, over softmax's: below 1, or the option saves nothing
};

// One method for every head, layer by layer.
struct Assignment {
  std::vector<HeadOption> heads;

  double loss() const;  // the sum over heads
  double cost() const;  // the mean over heads
};

// From softmax everywhere on, each step gives one head another option: the step that saves most cost for the bits that
// it adds, and before all others those that add none. Stops when every head has its cheapest option. This is the greedy
// solution of the multiple-choice knapsack problem (Sinha and Zoltners 1979, Operations Research 27:503), whose steps
// have falling returns, so each assignment is near the cheapest of its loss. options: of every head.
std::vector<Assignment> greedy_path(const std::vector<std::vector<HeadOption>>& options);

// The method itself if all heads have it; otherwise per-head with as many specs as it takes until they repeat.
std::string spec_of(const Assignment& assignment);
// The same for the heads of one layer.
std::string spec_of_layer(const Assignment& assignment, size_t layer, size_t heads);

}  // namespace attnbench
