// Dilated attention: every s-th key. methods.md F; source 003 ("stride attention").
//   convention=blocks:  row i sees j with (i - j) mod s = 0: with rows and keys sorted by i mod s, attention inside s
//                       diagonal blocks;  nnz = b (a + 1)^2 + (s - b) a^2, n = a s + b: n / s keys a row
//   convention=lee:     row i sees i - s, i and i + s;  nnz = n + 2 (n - s)
// s = 1 is softmax (blocks) or a window of 1 (lee); s >= n the identity.
#include "approximations/sparse/sparse_softmax.hpp"

namespace attnbench::dilated_method {
namespace {

class EveryStride final : public SparsePattern {
 public:
  EveryStride(Index stride, bool next_only) : stride_(stride), next_only_(next_only) {}

  std::vector<PatternPart> parts(Index nq, Mask) const override {
    return {{.end = nq, .stride = stride_, .tile_rows = next_only_ ? 2 : 64, .near = next_only_}};
  }
  void keys(size_t, Index position, Index visible, std::vector<IndexRun>& runs) const override {
    const Index begin = next_only_ ? std::max<Index>(0, position - stride_) : 0;
    const Index end = next_only_ ? std::min(visible, position + stride_ + 1) : visible;
    runs.push_back(run_between(begin, end, position, stride_));
  }

 private:
  Index stride_;
  bool next_only_;
};

const bool registered = add(sparse_method(
    {
        .text = {.name = "dilated",
                 .summary = "softmax over every s-th key, or over those s before and behind",
                 .formula = "row i sees (i - j) mod s = 0 (blocks), or j in {i - s, i, i + s} (lee)",
                 .reference = "Lee 2022, lecture on self-attention variants; Child et al. 2019, arXiv:1904.10509",
                 .cost = "O(n^2 / s (d + dv)) time (blocks), O(n (d + dv)) (lee); O(n / s) memory beyond input and "
                         "output"},
        .parameters = {Parameter::integer("stride", 4, "s: how far apart the keys of a row are", 1).as_budget(),
                       Parameter::choice("convention", "blocks", "all keys s apart, or only the next on each side",
                                         {"blocks", "lee"})},
    },
    [](const Draw& draw) {
      return std::make_shared<EveryStride>(draw.params.integer("stride"), draw.params.text("convention") == "lee");
    }));

}  // namespace
}  // namespace attnbench::dilated_method
