// The engine of sparse patterns: softmax over the keys that each row is given.
//   A_ij = exp(q_i.k_j) / sum over l in M_i of exp(q_i.k_l) for j in M_i, 0 elsewhere; a row with M_i empty is 0
//   nnz = sum_i |M_i|;  2 nnz (d + dv) FLOPs, nnz exponentials                                       methods.md F and H
// A pattern lists the keys of each row as runs (ranges, or every s-th key of a range) and groups rows that share keys.
// Rows are processed a tile at a time: the keys that any row of the tile sees form the columns of one product, read in
// place from K and V at any step, and each row's softmax is over its own columns. Keys that no row of a tile sees are
// not read. A pattern may have several parts (window and column; the few rows that see everything), each with its own
// grouping of rows. Running maxima and sums combine a row's parts exactly, and likewise the pieces of rows longer than
// a tile. O(tile) memory and two numbers per row.
#pragma once

#include <memory>
#include <optional>

#include "harness/core/approximation.hpp"

namespace attnbench {

// The indices first, first + step, ... : count of them.
struct IndexRun {
  Index first = 0, count = 0, step = 1;
};

// The indices of [begin, end) that are first modulo step, as a run.
IndexRun run_between(Index begin, Index end, Index first = 0, Index step = 1);

// Rows [begin, end), in tiles of at most tile_rows rows, 64 at most, that are equal modulo stride.
struct PatternPart {
  Index begin = 0, end = 0;
  Index stride = 1;
  Index tile_rows = 64;
  bool near = false;  // keys are near their rows: process tiles of neighbouring rows consecutively, for all residues
};

// A tile height for which a tile computes fewer than twice the pairs that its rows see, if each sees `keys` keys near
// its own position.
inline Index tile_rows_for(Index keys) { return std::clamp<Index>(keys, 2, 64); }

class SparsePattern {
 public:
  virtual ~SparsePattern() = default;
  virtual std::vector<PatternPart> parts(Index nq, Mask) const { return {{.end = nq}}; }
  // Appends the keys below `visible` that the row at that position (i + mask.offset; it may be negative or beyond the
  // keys) has in that part. No key may be in two runs of a row, even in different parts.
  virtual void keys(size_t part, Index position, Index visible, std::vector<IndexRun>& runs) const = 0;
  // The drawn tensors.
  virtual Tensors state() const { return {}; }
  // For patterns that with a causal mask consist of the first `sinks` and the last `window` + 1 tokens: a decoder keeps
  // only these tokens.
  struct Recent {
    Index sinks = 0, window = 0;
  };
  virtual std::optional<Recent> recent() const { return {}; }
  // Whether every row sees its own token. Patterns without this have no decoder: a decoder adds the new token to its
  // cache before it answers.
  virtual bool sees_itself() const { return true; }
};

// log_normalisers: nq entries to write, log sum over M_i of exp(q_i.k_j), -infinity for an empty row; or empty.
template <class T>
void sparse_softmax(const SparsePattern& pattern, const Head<T>& head, Mask mask, Context& context, Out<T> out,
                    std::span<T> log_normalisers = {});
// Rows [first, first + A.rows()) of A.
template <class T>
void sparse_softmax_rows(const SparsePattern& pattern, const Head<T>& head, Mask mask, Index first, Context& context,
                         Out<T> A);
// The keys of rows first, first + 1, ..., ascending.
void keys_of_pattern(const SparsePattern& pattern, Index nq, Index nk, Mask mask, Index first,
                     std::span<std::vector<Index>> keys);
// nnz.
double pairs_of(const SparsePattern& pattern, const Shape& shape);

// A pattern as a method.
template <class T>
class SparseSoftmax final : public Approximation<T>, public Rows<T>, public Pattern<T> {
 public:
  explicit SparseSoftmax(std::shared_ptr<const SparsePattern> pattern) : pattern_(std::move(pattern)) {}

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    sparse_softmax<T>(*pattern_, head, mask, context, out);
  }
  Tensors state() const override { return pattern_->state(); }
  const Rows<T>* rows() const override { return this; }
  const Pattern<T>* pattern() const override { return this; }
  std::unique_ptr<Decoder<T>> decoder(const Shape& shape) const override;

  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    sparse_softmax_rows<T>(*pattern_, head, mask, first, context, A);
  }
  void keys_of_rows(const Head<T>& head, Mask mask, Index first, Context&,
                    std::span<std::vector<Index>> keys) const override {
    keys_of_pattern(*pattern_, head.Q.rows(), head.K.rows(), mask, first, keys);
  }

 private:
  std::shared_ptr<const SparsePattern> pattern_;
};

using MakePattern = std::function<std::shared_ptr<const SparsePattern>(const Draw&)>;

// Completes the entry of a method that is a pattern: makers, family, cost (from nnz) and memory. An entry without
// claims gets those that hold for every pattern: rows sum to one, no entry is negative, causal rows are exact.
MethodEntry sparse_method(MethodEntry entry, const MakePattern& make);

}  // namespace attnbench
