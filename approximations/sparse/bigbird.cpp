// BigBird: blocks of a window, the first blocks and random ones. Zaheer et al., arXiv:2007.14062, section 2 and
// appendix D (ITC: the global tokens are among the tokens themselves).
//   a row of block I (tokens b I to b (I + 1) - 1; the last may be shorter) sees blocks I - w to I + w, the first g,
//   and r others drawn without replacement from the rest;  rows of the first g blocks see every key     methods.md F
// The blocks drawn for a row block depend only on its position, not on the draws of other row blocks. With a causal
// mask they are drawn from the blocks before the window (the row sees all of them), otherwise from all blocks that hold
// keys. If there are fewer than r candidates, all are taken.
#include <algorithm>

#include "approximations/sparse/global_rows.hpp"
#include "approximations/sparse/window.hpp"

namespace attnbench::bigbird_method {
namespace {

Index block_of(Index position, Index size) {
  return run_between(position - size + 1, position + 1, 0, size).first / size;
}

// A uniformly drawn subset of [0, total) with `count` elements, ascending. R. W. Floyd's algorithm (Bentley, CACM
// 30:754, 1987).
std::vector<Index> subset(Generator& generator, Index count, Index total) {
  std::vector<Index> chosen;
  for (Index last = total - count; last < total; ++last) {
    const auto candidate = static_cast<Index>(generator() % static_cast<std::uint64_t>(last + 1));
    const bool taken = std::find(chosen.begin(), chosen.end(), candidate) != chosen.end();
    chosen.push_back(taken ? last : candidate);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

class BigBird final : public SparsePattern {
 public:
  explicit BigBird(const Draw& draw)
      : size_(draw.params.integer("block")),
        window_(draw.params.integer("window")),
        global_blocks_(draw.params.integer("global")),
        global_(global_blocks_ * size_),
        first_block_(block_of(draw.shape.mask.offset, size_)) {
    const Index last_block = block_of(draw.shape.nq - 1 + draw.shape.mask.offset, size_);
    const Index key_blocks = (Mask{.keys = draw.shape.mask.keys}.visible(0, draw.shape.nk) + size_ - 1) / size_;
    const Index rows = last_block - first_block_ + 1, columns = std::min(draw.params.integer("random"), key_blocks);
    if (const auto* given = draw.injected("random_blocks", rows, columns)) {
      random_ = *given;
      return;
    }
    random_ = Matrix<double>::Constant(rows, columns, -1);
    for (Index I = first_block_; I <= last_block; ++I) {
      // Candidates: the blocks between the first g and the window, then those after the window.
      const Index before = std::max<Index>(0, std::min(I - window_, key_blocks) - global_blocks_);
      const Index behind_from = std::max({I + window_ + 1, global_blocks_, Index(0)});
      const Index behind = draw.shape.mask.causal ? 0 : std::max<Index>(0, key_blocks - behind_from);
      auto generator = draw.streams.stream("pattern", "bigbird", I, draw.head, draw.replicate);
      const auto chosen = subset(generator, std::min(columns, before + behind), before + behind);
      for (size_t c = 0; c < chosen.size(); ++c)
        random_(I - first_block_, static_cast<Index>(c)) =
            static_cast<double>(chosen[c] < before ? global_blocks_ + chosen[c] : behind_from + chosen[c] - before);
    }
  }

  std::vector<PatternPart> parts(Index nq, Mask mask) const override {
    return global_.parts(nq, mask, std::min<Index>(size_, 64));
  }
  void keys(size_t part, Index position, Index visible, std::vector<IndexRun>& runs) const override {
    if (part == 0) return runs.push_back(run_between(0, visible));
    const Index I = block_of(position, size_), first = std::min(global_.count(), visible);
    runs.push_back(run_between(0, first));
    runs.push_back(run_between(std::max(first, (I - window_) * size_), std::min(visible, (I + window_ + 1) * size_)));
    if (I < first_block_ || I >= first_block_ + random_.rows()) return;
    for (Index c = 0; c < random_.cols(); ++c) {
      const auto J = static_cast<Index>(random_(I - first_block_, c));
      if (J >= global_blocks_ && (J < I - window_ || J > I + window_))
        runs.push_back(run_between(J * size_, std::min(visible, (J + 1) * size_)));
    }
  }
  Tensors state() const override {
    if (random_.cols() == 0) return {};
    return {{"random_blocks", random_}};
  }

 private:
  Index size_, window_, global_blocks_;
  GlobalRows global_;
  Index first_block_;      // the block of the first row's position
  Matrix<double> random_;  // row blocks x r: which key blocks, ascending; -1 where there are fewer
};

const bool registered = add(sparse_method(
    {
        .text = {.name = "bigbird",
                 .printed = "BigBird",
                 .summary = "softmax over a window of blocks, the first blocks and random ones",
                 .formula = "a row of block I sees blocks I - w .. I + w, 0 .. g - 1 and r random others; all if I < g",
                 .reference = "Zaheer et al. 2020, arXiv:2007.14062, section 2",
                 .cost = "O(n b (w + g + r) (d + dv)) time, O(n) memory beyond input and output"},
        .parameters = {Parameter::integer("window", 1, "w: blocks seen on each side of the own", 0),
                       Parameter::integer("block", 64, "b: tokens of a block; the last may be shorter", 1).as_budget(),
                       Parameter::integer("global", 2, "g: first blocks that see all and are seen by all", 0),
                       Parameter::integer("random", 3, "r: other blocks drawn for each block of rows", 0)},
        .claims = exact_with_a_full_window,
    },
    [](const Draw& draw) { return std::make_shared<BigBird>(draw); }));

}  // namespace
}  // namespace attnbench::bigbird_method
