// Transformer-XL: segments that also see the tokens before them, which a model keeps as its memory. Dai et al.,
// arXiv:1901.02860, section 3.2.
//   row i sees the `memory` tokens before its segment of `segment` tokens, and its segment                methods.md
//   F12
// A row at the start of a segment sees `memory` tokens behind it, one at its end `memory + segment - 1`. memory=0 is
// attention within blocks. In a model with several layers the reach grows with each layer, as it does for a window. The
// paper's terms of relative positions come with the input relative-positions, with drawn weights.
#include "approximations/sparse/window.hpp"

namespace attnbench::transformer_xl_method {
namespace {

class Segments final : public SparsePattern {
 public:
  explicit Segments(const Params& params) : segment_(params.integer("segment")), memory_(params.integer("memory")) {}

  std::vector<PatternPart> parts(Index nq, Mask) const override {
    return {{.end = nq, .tile_rows = std::min<Index>(64, segment_)}};
  }
  void keys(size_t, Index position, Index visible, std::vector<IndexRun>& runs) const override {
    // Rows before the first token, which only a mask without causality lets see any, belong to the first segment.
    const Index start = std::max<Index>(0, position) / segment_ * segment_, end = std::min(start + segment_, visible);
    runs.push_back(run_between(std::min(std::max<Index>(0, start - memory_), end), end));
  }

 private:
  Index segment_, memory_;
};

const bool registered = add(sparse_method(
    {
        .text = {.name = "transformer-xl",
                 .printed = "Transformer-XL",
                 .summary = "softmax over the row's segment and the tokens before it",
                 .formula = "A_ij = exp(q_i.k_j) / sum over l of exp(q_i.k_l), for the segment of i and its memory",
                 .reference = "Dai et al. 2019, arXiv:1901.02860, section 3.2",
                 .cost = "O(n (memory + segment) (d + dv)) time, O(tile) memory beyond input and output",
                 .departure = "terms of relative positions come with the input relative-positions, their weights drawn",
                 .aliases = {"txl"}},
        .parameters = {Parameter::integer("segment", 64, "tokens in a segment", 1),
                       Parameter::integer("memory", 64, "tokens before the segment that its rows see", 0).as_budget()},
        .claims =
            [](const Params&, const Shape&) {
              return Claims{.row_stochastic = true,
                            .non_negative = true,
                            .causal_exact = true,
                            .exact_when = "segment=1000000000"};
            },
    },
    [](const Draw& draw) { return std::make_shared<Segments>(draw.params); }));

}  // namespace
}  // namespace attnbench::transformer_xl_method
