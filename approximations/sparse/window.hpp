// The window and the first tokens: row i sees j < s and |i - j| <= w. This is the pattern of local and sink-window, and
// of longformer except for the rows of its global tokens.
#pragma once

#include "approximations/sparse/sparse_softmax.hpp"

namespace attnbench {

class Window final : public SparsePattern {
 public:
  Window(Index first_tokens, Index window) : first_tokens_(first_tokens), window_(window) {}

  std::vector<PatternPart> parts(Index nq, Mask) const override {
    return {{.end = nq, .tile_rows = tile_rows_for(window_)}};
  }
  void keys(size_t, Index position, Index visible, std::vector<IndexRun>& runs) const override {
    const Index end = std::clamp<Index>(position + window_ + 1, 0, visible);
    const Index begin = std::clamp<Index>(position - window_, 0, end), first = std::min(first_tokens_, visible);
    if (first > 0) runs.push_back({0, first});
    runs.push_back(run_between(std::max(begin, first), end));
  }
  std::optional<Recent> recent() const override { return Recent{first_tokens_, window_}; }

 private:
  Index first_tokens_, window_;
};

inline Claims exact_with_a_full_window(const Params&, const Shape&) {
  return {.row_stochastic = true, .non_negative = true, .causal_exact = true, .exact_when = "window=1000000000"};
}

}  // namespace attnbench
