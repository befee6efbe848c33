// The strided pattern of the Sparse Transformer. Child et al., arXiv:1904.10509, section 4.3.
//   window: |i - j| <= l;   column: (i - j) mod l = 0;   union: both                                  methods.md F
// With a causal mask 0 <= i - j <= l and every l-th key before i, as in the paper: any key before i is reached in two
// steps, one of each. The paper uses two heads, one per part (per-head:[strided:part=window],[strided:part=column]), or
// one head with their union. nnz of the union: about n (2l + n / l); l near sqrt(n) balances the two.
#include "approximations/sparse/window.hpp"

namespace attnbench::strided_method {
namespace {

// Every l-th key; keys within the window are omitted if another part has them.
class Strided final : public SparsePattern {
 public:
  Strided(Index stride, bool window) : stride_(stride), window_(0, stride), has_window_(window) {}

  std::vector<PatternPart> parts(Index nq, Mask mask) const override {
    std::vector<PatternPart> all{{.end = nq, .stride = stride_}};
    if (has_window_) all.push_back(window_.parts(nq, mask).front());
    return all;
  }
  void keys(size_t part, Index position, Index visible, std::vector<IndexRun>& runs) const override {
    if (part == 1) return window_.keys(0, position, visible, runs);
    if (!has_window_) return runs.push_back(run_between(0, visible, position, stride_));
    const Index before = std::min(visible, position - 2 * stride_ + 1);
    runs.push_back(run_between(0, before, position, stride_));
    runs.push_back(run_between(std::max<Index>(0, position + 2 * stride_), visible, position, stride_));
  }

 private:
  Index stride_;
  Window window_;
  bool has_window_;
};

const bool registered = add(sparse_method(
    {
        .text = {.name = "strided",
                 .printed = "Sparse Transformer, strided",
                 .summary = "softmax over a window and every l-th key (Sparse Transformer)",
                 .formula = "row i sees |i - j| <= l (window), (i - j) mod l = 0 (column), or either (union)",
                 .reference = "Child et al. 2019, arXiv:1904.10509, section 4.3",
                 .cost = "O(n (l + n / l) (d + dv)) time, O(n) memory beyond input and output"},
        .parameters =
            {Parameter::integer("stride", 64, "l: half width of the window and distance in the column", 1).as_budget(),
             Parameter::choice("part", "union", "one head's pattern of the two, or both in one",
                               {"union", "window", "column"})},
    },
    [](const Draw& draw) -> std::shared_ptr<const SparsePattern> {
      const Index stride = draw.params.integer("stride");
      if (draw.params.text("part") == "window") return std::make_shared<Window>(0, stride);
      return std::make_shared<Strided>(stride, draw.params.text("part") == "union");
    }));

}  // namespace
}  // namespace attnbench::strided_method
