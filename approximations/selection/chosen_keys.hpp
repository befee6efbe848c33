// The engine of methods that choose keys for each row by what they know of its query: softmax over the keys chosen.
//   A_ij = exp(q_i.k_j) / sum over l in M_i of exp(q_i.k_l) for j in M_i, 0 elsewhere; a row with M_i empty is 0
//                                                                                                     methods.md U
// The keys of 64 rows are chosen at once, so that scores are one product; then the sparse engine attends to them, a row
// at a time, because rows share keys by chance only. Memory is that of 64 rows, in each thread.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "approximations/sparse/sparse_softmax.hpp"
#include "harness/linalg/products.hpp"

namespace attnbench {

constexpr Index chosen_rows = 64;

struct ChosenRow {
  std::vector<IndexRun> runs;
  double share = 1;  // of the row that is softmax over these keys, where a method gives the rest to the mean value
};

// Chooses the keys of rows. Holds numbers that are computed once a call from all keys, such as summaries of pages.
template <class T>
class KeyChoice {
 public:
  virtual ~KeyChoice() = default;
  // Sets rows[i] to the keys of row first + i for i < rows.size(): keys that it sees, none of them twice.
  virtual void choose(Context& context, Index first, std::span<ChosenRow> rows) const = 0;
  // Change rows of the output, or of the attention matrix, from softmax over the chosen keys to the method's own.
  virtual void complete_output(Index /*first*/, std::span<const ChosenRow>, Out<T> /*out*/) const {}
  virtual void complete_attention(Index /*first*/, std::span<const ChosenRow>, Out<T> /*A*/) const {}
};

// The keys of consecutive rows, the first of which has this position.
class ChosenKeys final : public SparsePattern {
 public:
  ChosenKeys(Index position, std::span<const ChosenRow> rows) : position_(position), rows_(rows) {}
  std::vector<PatternPart> parts(Index nq, Mask) const override { return {{.end = nq, .tile_rows = 1}}; }
  void keys(size_t, Index position, Index, std::vector<IndexRun>& runs) const override {
    const auto& row = rows_[static_cast<size_t>(position - position_)].runs;
    runs.insert(runs.end(), row.begin(), row.end());
  }

 private:
  Index position_;
  std::span<const ChosenRow> rows_;
};

template <class T>
class ChosenSoftmax : public Approximation<T>, public Rows<T>, public Pattern<T> {
 public:
  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    for_chosen(head, mask, 0, out.rows(), context, [&](Context& single, const Part& part) {
      const Out<T> of_part = row_block(out, part.begin, part.count);
      sparse_softmax<T>(part.keys, part.head, part.mask, single, of_part);
      part.choice.complete_output(part.begin, part.rows, of_part);
    });
  }
  const Rows<T>* rows() const override { return this; }
  const Pattern<T>* pattern() const override { return this; }

  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    for_chosen(head, mask, first, A.rows(), context, [&](Context& single, const Part& part) {
      const Out<T> of_part = row_block(A, part.begin, part.count);
      sparse_softmax_rows<T>(part.keys, part.head, part.mask, 0, single, of_part);
      part.choice.complete_attention(first + part.begin, part.rows, of_part);
    });
  }
  void keys_of_rows(const Head<T>& head, Mask mask, Index first, Context& context,
                    std::span<std::vector<Index>> keys) const override {
    for_chosen(head, mask, first, std::ssize(keys), context, [&](Context&, const Part& part) {
      keys_of_pattern(part.keys, part.count, head.K.rows(), part.mask, 0,
                      keys.subspan(static_cast<size_t>(part.begin), static_cast<size_t>(part.count)));
    });
  }

 protected:
  virtual std::unique_ptr<const KeyChoice<T>> choice(const Head<T>& head, Mask mask, Context& context) const = 0;

 private:
  // Rows [begin, begin + count) of those asked for, as a head of their own.
  struct Part {
    Index begin, count;
    Head<T> head;
    Mask mask;
    const KeyChoice<T>& choice;
    std::span<const ChosenRow> rows;
    ChosenKeys keys;
  };

  template <class Body>
  void for_chosen(const Head<T>& head, Mask mask, Index first, Index total, Context& context, const Body& body) const {
    const auto chooser = choice(head, mask, context);
    context.for_blocks(total, chosen_rows, [&](Context& single, Index begin, Index count) {
      std::vector<ChosenRow> rows(static_cast<size_t>(count));
      chooser->choose(single, first + begin, rows);
      Mask of_part = mask;
      of_part.offset += first + begin;
      body(single, Part{.begin = begin,
                        .count = count,
                        .head = {row_block(head.Q, first + begin, count), head.K, head.V, head.extra},
                        .mask = of_part,
                        .choice = *chooser,
                        .rows = rows,
                        .keys = ChosenKeys(of_part.offset, rows)});
    });
  }
};

// These indices, in any order, as runs of consecutive ones. Sorts them.
inline std::vector<IndexRun> runs_of(std::vector<Index>& indices) {
  std::sort(indices.begin(), indices.end());
  std::vector<IndexRun> runs;
  for (const Index j : indices) {
    if (!runs.empty() && runs.back().first + runs.back().count == j)
      ++runs.back().count;
    else
      runs.push_back({j, 1});
  }
  return runs;
}

// Leaves the `count` of these candidates with the largest scores: score(candidate). Ties go to the lowest candidate.
template <class Score>
void keep_largest(std::vector<Index>& candidates, Index count, const Score& score) {
  if (std::ssize(candidates) <= count) return;
  const auto before = [&](Index a, Index b) {
    const auto of_a = score(a), of_b = score(b);
    return of_a > of_b || (of_a == of_b && a < b);
  };
  if (count > 0) std::nth_element(candidates.begin(), candidates.begin() + (count - 1), candidates.end(), before);
  candidates.resize(static_cast<size_t>(count));
}

// Appends the places of the `count` largest of these scores, in ascending order and counted from `first`. Ties go to
// the lowest place. memory keeps a copy of the scores from row to row.
template <class T>
void append_largest(std::span<const T> scores, Index count, Index first, std::vector<T>& memory,
                    std::vector<Index>& places) {
  if (count <= 0) return;
  T least = -std::numeric_limits<T>::infinity();
  Index equal = std::ssize(scores);  // that may still be taken
  if (count < std::ssize(scores)) {
    memory.assign(scores.begin(), scores.end());
    const auto last = memory.begin() + (count - 1);
    std::nth_element(memory.begin(), last, memory.end(), std::greater<>());
    least = *last;
    equal = count - std::count_if(memory.begin(), last, [&](T score) { return score > least; });
  }
  for (Index j = 0; j < std::ssize(scores); ++j) {
    const T score = scores[static_cast<size_t>(j)];
    if (score > least || (score == least && equal-- > 0)) places.push_back(first + j);
  }
}

// The sum over all rows of number(keys that the row sees, its position).
template <class Number>
double sum_over_rows(const Shape& shape, const Number& number) {
  double sum = 0;
  for (Index i = 0; i < shape.nq; ++i)
    sum += static_cast<double>(number(shape.mask.visible(i, shape.nk), i + shape.mask.offset));
  return sum;
}

// The same if each row counts as the last one of those chosen for together, which see most: number(keys).
template <class Number>
double sum_over_blocks(const Shape& shape, const Number& number) {
  double sum = 0;
  for (Index first = 0; first < shape.nq; first += chosen_rows) {
    const Index rows = std::min(chosen_rows, shape.nq - first);
    sum += static_cast<double>(rows * number(shape.mask.visible(first + rows - 1, shape.nk)));
  }
  return sum;
}

}  // namespace attnbench
