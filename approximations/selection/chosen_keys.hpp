// Softmax over the keys that a method selects for each row by what it knows of its query, and their selection by score.
//   A_ij = exp(q_i.k_j) / sum over l in M_i of exp(q_i.k_l) for j in M_i, 0 elsewhere; a row with M_i empty is 0
//                                                                                                     methods.md U
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "approximations/sparse/gathered_softmax.hpp"
#include "approximations/sparse/largest_scores.hpp"
#include "approximations/sparse/sparse_softmax.hpp"

namespace attnbench {

// A cache of keys and values, and what a choice of keys holds of them. A step chooses among all of them.
template <class T>
class ChoosingDecoder final : public Decoder<T> {
 public:
  using Choose = std::function<std::unique_ptr<KeyChoice<T>>(const Head<T>&)>;

  ChoosingDecoder(const Shape& shape, const Choose& choose)
      : q_(Matrix<T>::Zero(1, shape.d)),
        K_(Matrix<T>::Zero(shape.nk, shape.d)),
        V_(Matrix<T>::Zero(shape.nk, shape.dv)),
        choice_(choose({q_, K_, V_})) {}

  void prefill(const Head<T>& tokens, Context& context) override {
    const Index first = came_;
    for (Index j = 0; j < tokens.K.rows(); ++j) add(tokens, j);
    choice_->extend(context, first, came_);
  }

  void step(const Head<T>& token, Context& context, Out<T> out) override {
    add(token, 0);
    choice_->extend(context, came_ - 1, came_);
    q_ = token.Q;
    const Mask mask{.causal = true, .offset = came_ - 1};
    row_.keys.clear();
    row_.log_weights.clear();
    double share = 1;
    choice_->choose(context, mask, 0, {&row_, 1}, {&share, 1});
    T denominator = 0, log_scale = 0;
    sums_.add_up(context, q_, K_, V_, {&row_, 1}, out, {&denominator, 1}, {&log_scale, 1});
    if (denominator > 0) out /= denominator;
    choice_->complete_output(mask, 0, {&share, 1}, out);
  }

  size_t bytes() const override {
    return static_cast<size_t>(came_ * (K_.cols() + V_.cols())) * sizeof(T) + choice_->bytes(came_);
  }

 private:
  void add(const Head<T>& tokens, Index j) {
    if (came_ == K_.rows())
      throw Misuse(
          fmt::format("a decoder for {} tokens was given one more; make it with a larger shape.nk", K_.rows()));
    K_.row(came_) = tokens.K.row(j);
    V_.row(came_) = tokens.V.row(j);
    ++came_;
  }

  Matrix<T> q_, K_, V_;
  std::unique_ptr<KeyChoice<T>> choice_;
  WeighedKeys<T> row_;
  GatheredSums<T> sums_;
  Index came_ = 0;
};

// No key of a row is there twice.
template <class T>
class SelectedSoftmax : public GatheredSoftmax<T>, public Rows<T> {
 public:
  std::unique_ptr<Decoder<T>> decoder(const Shape& shape) const override {
    return std::make_unique<ChoosingDecoder<T>>(shape, [this](const Head<T>& head) {
      Context context;
      return this->choice(head, {.causal = true}, context);
    });
  }
  const Rows<T>* rows() const override { return this; }
  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    this->attention(head, mask, first, context, A);
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
  for (Index first = 0; first < shape.nq; first += gathered_rows) {
    const Index rows = std::min(gathered_rows, shape.nq - first);
    sum += static_cast<double>(rows * number(shape.mask.visible(first + rows - 1, shape.nk)));
  }
  return sum;
}

}  // namespace attnbench
