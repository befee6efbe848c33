// The fourth plug point: scores of the keys of a head, by which a method that evicts keys chooses those that it keeps.
#pragma once

#include "harness/core/approximation.hpp"

namespace attnbench {

struct KeyScoreEntry {
  static constexpr const char* kind = "key score";
  static constexpr const char* plural = "key-scores";

  Description text;
  std::vector<Parameter> parameters;
  // A score for each row of head.K and head.V, the keys that the last row of head.Q sees under the mask; the largest
  // are kept. In double for both scalar types, because a rounding error would keep another key. drawn: what `draw`
  // gave.
  std::function<std::vector<double>(const Params&, const Head<double>& head, Mask, Context&,
                                    const Matrix<double>& drawn)>
      score;
  // The number of last queries whose own keys come before all others, because they gave the score.
  std::function<Index(const Params&)> last_queries = [](const Params&) { return Index(0); };
  bool reads_values = false;  // the score depends on head.V: the method then has no attention matrix
  // nk x 1 random numbers, which are the state of the method; without it nothing is drawn.
  std::function<Matrix<double>(const Draw&)> draw = {};
  // Of the scores of all keys: the work, and the bytes beside the scores and the head in double.
  std::function<Work(const Params&, const Shape&)> work = [](const Params&, const Shape&) { return Work{}; };
  std::function<double(const Params&, const Shape&)> memory = [](const Params&, const Shape&) { return 0.0; };
  // Throws Misuse for parameters that do not go together.
  std::function<void(const Params&)> check = [](const Params&) {};
};

extern template class Registry<KeyScoreEntry>;

}  // namespace attnbench
