// The engine of methods that give each row keys of its own: softmax over weighed keys, read where they are.
//   N_i = sum_t exp(q_i.k_t + log w_t) v_t,  D_i = sum_t exp(q_i.k_t + log w_t),  o_i = N_i / D_i   methods.md S, U
// Rows share keys by chance only, so that no product of matrices serves them. The keys of 64 rows are chosen at once,
// so that scores are one product, and are read in slabs that fit into the second-level cache: each slab comes from
// memory once for these rows and not once for each. Memory is that of 64 rows, in each thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "harness/core/approximation.hpp"
#include "harness/linalg/gathered.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench {

// In any order; a key may be there several times.
template <class T>
struct WeighedKeys {
  std::vector<Index> keys;
  std::vector<T> log_weights;  // of each key, minus infinity for 0; or none, if all weights are 1
};

// Visits the keys of several rows slab by slab.
template <class T>
class Slabs {
 public:
  // body(i, first, count) for each slab and each row i that has keys in it: those at the places [first, first + count).
  // `keys` keys of row_bytes each are cut into slabs. May reorder the keys of a row.
  template <class Body>
  void visit(Index keys, Index row_bytes, std::span<WeighedKeys<T>> rows, const Body& body) {
    constexpr Index slab_bytes = 1 << 19;  // half of a second-level cache of 1 MB
    const auto in_slab = static_cast<std::uint64_t>(slab_bytes / std::max<Index>(1, row_bytes));
    // A power of two, because a division by another number takes longer than a product over d.
    slab_bits_ = std::max(6, static_cast<int>(std::bit_width(in_slab)) - 1);
    slabs_ = (keys >> slab_bits_) + 1;
    ends_.clear();
    for (auto& row : rows) divide(row);
    for (Index slab = 0; slab < slabs_; ++slab)
      for (size_t i = 0; i < rows.size(); ++i) {
        const size_t* begin = &ends_[i * static_cast<size_t>(slabs_ + 1) + static_cast<size_t>(slab)];
        if (begin[0] != begin[1]) body(i, begin[0], begin[1] - begin[0]);
      }
  }

 private:
  // Sorts the keys of a row by their slab and appends the place where each slab ends, after a 0.
  void divide(WeighedKeys<T>& row) {
    const size_t first = ends_.size();
    ends_.resize(first + static_cast<size_t>(slabs_) + 1, 0);
    if (slabs_ == 1) {
      ends_.back() = row.keys.size();
      return;
    }
    size_t* ends = &ends_[first];
    const auto slab_of = [&](Index key) { return static_cast<size_t>(key >> slab_bits_); };
    bool ascending = true;
    for (size_t t = 0, before = 0; t < row.keys.size(); ++t) {
      const size_t slab = slab_of(row.keys[t]);
      ascending &= slab >= before;
      before = slab;
      ++ends[slab + 1];
    }
    for (Index slab = 0; slab < slabs_; ++slab) ends[slab + 1] += ends[slab];
    if (ascending) return;
    moved_.keys.resize(row.keys.size());
    moved_.log_weights.resize(row.log_weights.size());
    next_.assign(ends, ends + slabs_);
    for (size_t t = 0; t < row.keys.size(); ++t) {
      const size_t to = next_[slab_of(row.keys[t])]++;
      moved_.keys[to] = row.keys[t];
      if (!row.log_weights.empty()) moved_.log_weights[to] = row.log_weights[t];
    }
    std::swap(row, moved_);
  }

  int slab_bits_ = 0;  // the logarithm of the number of keys in a slab
  Index slabs_ = 1;
  std::vector<size_t> ends_;  // of each row and slab, after a 0 for each row
  std::vector<size_t> next_;
  WeighedKeys<T> moved_;
};

template <class T>
class GatheredSums {
 public:
  // Writes N_i exp(-log_scale_i) to row i of the numerators and D_i exp(-log_scale_i) to the denominators, for the rows
  // of Q. A row without keys gets zeros. May reorder the keys of a row.
  void add_up(Context& context, const In<T>& Q, const In<T>& K, const In<T>& V, std::span<WeighedKeys<T>> rows,
              Out<T> numerators, std::span<T> denominators, std::span<T> log_scale) {
    numerators.setZero();
    std::fill(denominators.begin(), denominators.end(), T(0));
    std::fill(log_scale.begin(), log_scale.end(), lowest);
    const Index row_bytes = (K.cols() + V.cols()) * static_cast<Index>(sizeof(T));
    slabs_.visit(K.rows(), row_bytes, rows, [&](size_t i, size_t first, size_t count) {
      const auto row = static_cast<Index>(i);
      add(context, row_block(Q, row, 1), K, V, rows[i], first, count, row_block(numerators, row, 1), denominators[i],
          log_scale[i]);
    });
    for (T& scale : log_scale)
      if (scale == lowest) scale = 0;
  }

 private:
  static constexpr T lowest = -std::numeric_limits<T>::infinity();

  // Adds `count` keys from the place `first` on.
  void add(Context& context, const In<T>& q, const In<T>& K, const In<T>& V, const WeighedKeys<T>& row, size_t first,
           size_t count, Out<T> numerator, T& denominator, T& log_scale) {
    const auto keys = std::span(row.keys).subspan(first, count);
    const auto columns = static_cast<Index>(count);
    if (weights_.cols() < columns) weights_.resize(1, columns);
    Out<T> W(weights_.data(), 1, columns, columns);
    multiply_gathered<T>(context, q, K, keys, W);
    if (!row.log_weights.empty())
      W += Eigen::Map<const Eigen::Matrix<T, 1, Eigen::Dynamic>>(row.log_weights.data() + first, columns);
    const T largest = std::max(log_scale, W.maxCoeff());
    if (denominator > 0 && largest > log_scale) {
      const T factor = std::exp(log_scale - largest);
      numerator *= factor;
      denominator *= factor;
    }
    if (largest == lowest && !W.hasNaN()) return;  // all weights are 0
    log_scale = largest;
    exponentiate_rows<T>(context, W, std::span(&largest, 1));
    denominator += W.sum();
    add_gathered<T>(context, W, V, keys, numerator);
  }

  Slabs<T> slabs_;
  Matrix<T> weights_;  // aligned: the order of a sum, and so its last bit, depends on that
};

// exp(q.k_t + log w_t) over their sum, for the keys of one row in their order.
template <class T>
Matrix<T> normalised_weights(Context& context, const In<T>& q, const In<T>& K, const WeighedKeys<T>& row) {
  Matrix<T> weights(1, std::ssize(row.keys));
  multiply_gathered<T>(context, q, K, row.keys, weights);
  for (size_t t = 0; t < row.log_weights.size(); ++t) weights(0, static_cast<Index>(t)) += row.log_weights[t];
  softmax_within<T>(context, weights, 0, 0, weights.cols());
  return weights;
}

constexpr Index gathered_rows = 64;

// Bytes that one thread holds for rows with so many keys each.
inline double memory_of_gathered(double keys, bool weighed, const Shape& shape) {
  return static_cast<double>(gathered_rows) * keys * (sizeof(Index) + (weighed ? bytes_of(shape.precision) : 0.0));
}

// Chooses the keys of rows. May hold numbers of each key, such as its projection, or of all, such as summaries of
// pages.
template <class T>
class KeyChoice {
 public:
  virtual ~KeyChoice() = default;
  // Computes what it holds of keys [first, end), which follow those that it has.
  virtual void extend(Context& /*context*/, Index /*first*/, Index /*end*/) {}
  // The bytes that it holds of so many keys.
  virtual size_t bytes(Index /*keys*/) const { return 0; }
  // Adds to rows[i], which is empty, the keys of row first + i for i < rows.size(), of those that it sees. shares[i],
  // which is 1: the share of the row that is softmax over these keys, where a method gives the rest to the mean value.
  virtual void choose(Context& context, Mask mask, Index first, std::span<WeighedKeys<T>> rows,
                      std::span<double> shares) const = 0;
  // Change rows of the output, or of the attention matrix, from softmax over the chosen keys to the method's own.
  virtual void complete_output(Mask, Index /*first*/, std::span<const double> /*shares*/, Out<T> /*out*/) const {}
  virtual void complete_attention(Mask, Index /*first*/, std::span<const double> /*shares*/, Out<T> /*A*/) const {}
};

template <class T>
class GatheredSoftmax : public Approximation<T>, public Pattern<T> {
 public:
  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    for_chosen(head, mask, 0, out.rows(), context, [&](Context& single, Part part, GatheredSums<T>& sums) {
      Out<T> of_part = row_block(out, part.begin, std::ssize(part.rows));
      std::vector<T> denominators(part.rows.size()), log_scale(part.rows.size());
      sums.add_up(single, row_block(head.Q, part.begin, std::ssize(part.rows)), head.K, head.V, part.rows, of_part,
                  denominators, log_scale);
      for (Index i = 0; i < of_part.rows(); ++i)
        if (const T sum = denominators[static_cast<size_t>(i)]; sum > 0) of_part.row(i) /= sum;
      part.choice.complete_output(mask, part.begin, part.shares, of_part);
    });
  }
  const Pattern<T>* pattern() const override { return this; }

  void keys_of_rows(const Head<T>& head, Mask mask, Index first, Context& context,
                    std::span<std::vector<Index>> keys) const override {
    for_chosen(head, mask, first, std::ssize(keys), context, [&](Context&, Part part, GatheredSums<T>&) {
      for (size_t i = 0; i < part.rows.size(); ++i) {
        auto& of_row = keys[static_cast<size_t>(part.begin) + i];
        of_row = part.rows[i].keys;
        std::sort(of_row.begin(), of_row.end());
        of_row.erase(std::unique(of_row.begin(), of_row.end()), of_row.end());
      }
    });
  }

 protected:
  // For rows that `mask` lets see keys of the head. It has no keys yet, unless extend does nothing.
  virtual std::unique_ptr<KeyChoice<T>> choice(const Head<T>& head, Mask mask, Context& context) const = 0;

  // N_i, D_i and their scale, as SampledRows::sums.
  void add_up(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> numerators,
              std::span<T> denominators, std::span<T> log_scale) const {
    for_chosen(head, mask, first, numerators.rows(), context, [&](Context& single, Part part, GatheredSums<T>& sums) {
      const auto begin = static_cast<size_t>(part.begin);
      const Index count = std::ssize(part.rows);
      sums.add_up(single, row_block(head.Q, first + part.begin, count), head.K, head.V, part.rows,
                  row_block(numerators, part.begin, count), denominators.subspan(begin, part.rows.size()),
                  log_scale.subspan(begin, part.rows.size()));
    });
  }

  // Rows [first, first + A.rows()) of the attention matrix.
  void attention(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const {
    A.setZero();
    for_chosen(head, mask, first, A.rows(), context, [&](Context& single, Part part, GatheredSums<T>&) {
      for (size_t i = 0; i < part.rows.size(); ++i) {
        const Index row = part.begin + static_cast<Index>(i);
        const auto& keys = part.rows[i].keys;
        if (keys.empty()) continue;
        const auto weights = normalised_weights<T>(single, row_block(head.Q, first + row, 1), head.K, part.rows[i]);
        for (size_t t = 0; t < keys.size(); ++t) A(row, keys[t]) += weights(0, static_cast<Index>(t));
      }
      part.choice.complete_attention(mask, first + part.begin, part.shares,
                                     row_block(A, part.begin, std::ssize(part.rows)));
    });
  }

 private:
  // Rows begin, begin + 1, ... of those asked for.
  struct Part {
    Index begin;
    const KeyChoice<T>& choice;
    std::span<WeighedKeys<T>> rows;
    std::span<const double> shares;
  };

  template <class Body>
  void for_chosen(const Head<T>& head, Mask mask, Index first, Index total, Context& context, const Body& body) const {
    const auto chooser = choice(head, mask, context);
    chooser->extend(context, 0, head.K.rows());
    context.for_blocks(total, gathered_rows, [&](Context& single, Index begin, Index count) {
      std::vector<WeighedKeys<T>> rows(static_cast<size_t>(count));
      std::vector<double> shares(static_cast<size_t>(count), 1);
      chooser->choose(single, mask, first + begin, rows, shares);
      GatheredSums<T> sums;
      body(single, Part{begin, *chooser, rows, shares}, sums);
    });
  }
};

}  // namespace attnbench
