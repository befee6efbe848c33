// The fixed pattern of the Sparse Transformer. Child et al., arXiv:1904.10509, section 4.3.
//   block: floor(i / l) = floor(j / l);   summary: j mod l >= l - c;   union: both                    methods.md F
// The last c tokens of each block of l summarise it; the last block may be shorter and have fewer summaries, or none.
// With a causal mask every key before i is reached in two steps: into a summary of its block, then from there. With
// part=summary, rows before the first summary are empty. c >= l is softmax.
#include "approximations/sparse/sparse_softmax.hpp"

namespace attnbench::sparse_fixed_method {
namespace {

class Fixed final : public SparsePattern {
 public:
  Fixed(Index block, Index summary, bool own_block)
      : block_(block), summary_(std::min(block, summary)), own_block_(own_block) {}

  std::vector<PatternPart> parts(Index nq, Mask) const override {
    return {{.end = nq, .tile_rows = own_block_ ? tile_rows_for(block_) : 64}};
  }
  void keys(size_t, Index position, Index visible, std::vector<IndexRun>& runs) const override {
    const Index own = run_between(position - block_ + 1, position + 1, 0, block_).first;  // where its block begins
    const Index begin = own_block_ ? std::clamp<Index>(own, 0, visible) : visible;
    const Index end = own_block_ ? std::clamp<Index>(own + block_, 0, visible) : visible;
    runs.push_back(run_between(begin, end));
    if (summary_ == block_) {
      runs.push_back(run_between(0, begin));
      runs.push_back(run_between(end, visible));
      return;
    }
    for (Index residue = block_ - summary_; residue < block_; ++residue) {
      runs.push_back(run_between(0, begin, residue, block_));
      runs.push_back(run_between(end, visible, residue, block_));
    }
  }
  bool sees_itself() const override { return own_block_; }

 private:
  Index block_, summary_;
  bool own_block_;
};

const bool registered = add(sparse_method(
    {
        .text = {.name = "sparse-fixed",
                 .printed = "Sparse Transformer, fixed",
                 .summary = "softmax over the own block and the last tokens of every block (Sparse Transformer)",
                 .formula = "row i sees floor(i / l) = floor(j / l) (block), j mod l >= l - c (summary), or either",
                 .reference = "Child et al. 2019, arXiv:1904.10509, section 4.3",
                 .cost = "O(n (l + n c / l) (d + dv)) time, O(l + n c / l) memory beyond input and output"},
        .parameters = {Parameter::integer("stride", 64, "l: tokens of a block", 1).as_budget(),
                       Parameter::integer("c", 2, "last tokens of a block that all rows see", 1),
                       Parameter::choice("part", "union", "one head's pattern of the two, or both in one",
                                         {"union", "block", "summary"})},
        .claims =
            [](const Params& params, const Shape&) {
              const std::string& part = params.text("part");
              return Claims{.row_stochastic = part != "summary",
                            .non_negative = true,
                            .causal_exact = true,
                            .exact_when = part == "block" ? "" : "c=1000000000"};
            },
    },
    [](const Draw& draw) {
      const std::string& part = draw.params.text("part");
      return std::make_shared<Fixed>(draw.params.integer("stride"), part == "block" ? 0 : draw.params.integer("c"),
                                     part != "summary");
    }));

}  // namespace
}  // namespace attnbench::sparse_fixed_method
