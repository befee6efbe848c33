// Longformer: a sliding window, and a few tokens that see all and are seen by all. Beltagy et al., arXiv:2004.05150,
// section 3.1.
//   row i sees j with |i - j| <= w or j < g; the rows i < g see every key                             methods.md F
// In the paper the task determines the global tokens; here they are the first g, as [CLS] is. Its window W is w = W/2.
// Its second set of projections for global rows is part of the model and omitted. g = 0 is local, w >= n - 1 exact.
// nnz = n (2w + 1) - w (w + 1) + 2 sum over i < g of max(0, n - 1 - w - i), for w < n.
#include "approximations/sparse/global_rows.hpp"
#include "approximations/sparse/window.hpp"

namespace attnbench::longformer_method {
namespace {

class Longformer final : public SparsePattern {
 public:
  Longformer(Index global, Index window) : global_(global), window_(global, window) {}

  std::vector<PatternPart> parts(Index nq, Mask mask) const override {
    return global_.parts(nq, mask, window_.parts(nq, mask).front().tile_rows);
  }
  void keys(size_t part, Index position, Index visible, std::vector<IndexRun>& runs) const override {
    if (part == 0) return runs.push_back(run_between(0, visible));
    window_.keys(part, position, visible, runs);
  }

 private:
  GlobalRows global_;
  Window window_;
};

const bool registered = add(sparse_method(
    {
        .text = {.name = "longformer",
                 .summary = "softmax over a sliding window, with first tokens that see all and are seen by all",
                 .formula = "row i sees |i - j| <= w or j < g; all keys where i < g",
                 .reference = "Beltagy et al. 2020, arXiv:2004.05150, section 3.1",
                 .cost = "O(n (w + g) (d + dv)) time, O(n) memory beyond input and output",
                 .departure = "the first g tokens are global, as [CLS] is; in the paper the task determines them, and "
                              "global rows have projections of their own"},
        .parameters = {Parameter::integer("window", 64, "half width w: row i sees |i - j| <= w", 0).as_budget(),
                       Parameter::integer("global", 4, "g: first tokens that see all and are seen by all", 0)},
        .claims = exact_with_a_full_window,
    },
    [](const Draw& draw) {
      return std::make_shared<Longformer>(draw.params.integer("global"), draw.params.integer("window"));
    }));

}  // namespace
}  // namespace attnbench::longformer_method
