// The engine of hyper and kdeformer: exact softmax on blocks of neighbours in a hashed order, and drawn keys for the
// rest. methods.md S.
//   h(x): the signs of bits random projections of x, as the place of this pattern in the Gray code: neighbours differ
//   in one sign. Keys sorted by (h, position) form B = ceil(n / block) equal blocks, and a query attends to one of
//   them. o_i = (sum over its block of exp(q.k_j) v_j + sum over the drawn j outside of it of exp(q.k_j) v_j / (s p_j))
//   / the same sum without v_j.    All queries share the s drawn keys. One block, or s >= n: exact.
// Queries take blocks in one of two ways. sorted: those sorted by (h, position) are cut into B equal parts, part a
// attends to block a. hash: a query attends to the block where its h is among those of the keys, at the middle of equal
// ones, so that no other query has an influence.
// Causal form: the keys are halved until at most `block` are left. Rows of the second half attend to the first half by
// an unmasked problem of its own, with draws of its own, and the last parts are exact. The parts of a row are merged by
// the logarithms of their normalisers. Later queries move the blocks of `sorted`, so this is causal with `hash` only.
// Memory beyond input and output is O(n) for the order and O(block + s) keys; nothing is n x n.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>

#include "approximations/softmax/tiled_softmax.hpp"
#include "harness/core/estimates.hpp"
#include "harness/linalg/exponentials.hpp"
#include "harness/linalg/products.hpp"
#include "harness/random/uniform_numbers.hpp"

namespace attnbench {

// The numbers of a method's draws, or the injected tensor "u".
inline Matrix<double> numbers_of_draws(const Draw& draw, const char* method, Index rows, Index columns) {
  if (const auto* given = draw.injected("u", rows, columns)) return *given;
  Generator generator = draw.streams.stream("sampled", method, draw.head, draw.replicate);
  return uniform_numbers(generator, rows, columns);
}

// Keys drawn for one problem, some of them several times, with the logarithm of 1 / (s p_j) of each.
struct DrawnKeys {
  std::vector<Index> keys;
  std::vector<double> log_weights;
};

// An unmasked problem: all of `rows` rows from `row` on attend to keys [begin, begin + keys). Problem 1 is that of all
// keys or the first of a causal form; 2i and 2i + 1 are those of the halves of problem i.
struct HashedProblem {
  Index number, row, rows, begin, keys;
  bool causal = false;  // of a causal form
};

template <class T>
class HashedBlocks {
 public:
  using DrawKeys = std::function<DrawnKeys(const HashedProblem&)>;
  enum class Queries { sorted_if_square, sorted, hash };  // the first: if there are as many as keys and no causal mask
  struct Settings {
    Index block, samples;
    Queries queries = Queries::sorted_if_square;
    bool mask_own = true;  // leave out drawn keys of the query's own block
    bool maximum = true;   // subtract the largest logit of a row before the exponential
  };

  // Draws `bits` projections, the state "planes" (bits x d).
  HashedBlocks(const Draw& draw, const char* method, Settings settings) : settings_(settings) {
    const Index bits = draw.params.integer("bits");
    if (const auto* given = draw.injected("planes", bits, draw.shape.d)) {
      planes_ = *given;
    } else {
      auto generator = draw.streams.stream("projection", method, draw.shape.d, draw.head, draw.replicate);
      planes_ = standard_normal(generator, bits, draw.shape.d);
    }
  }

  const Matrix<double>& planes() const { return planes_; }

  // The largest number of a problem for nk keys.
  static Index problems(Index nk, bool causal, Index block) {
    Index parts = 1;
    if (causal)
      while ((nk + parts - 1) / parts > block) parts *= 2;
    return std::max<Index>(1, parts - 1);
  }

  // out: nq x dv. log_normalisers: the logarithm of each row's estimated sum of exp(q.k), -infinity for a row that sees
  // no key.
  void attend(const Head<T>& head, Mask mask, const DrawKeys& draw, Context& context, Out<T> out,
              std::span<T> log_normalisers) const {
    out.setZero();
    std::fill(log_normalisers.begin(), log_normalisers.end(), -std::numeric_limits<T>::infinity());
    const Sums sums{out, log_normalisers};
    walk(
        head, mask, [&](const HashedProblem& problem) { attend_problem(head, problem, draw, context, sums); },
        [&](const HashedProblem& last) { attend_last_part(head, mask, last, context, sums); });
  }

  // The keys that each row uses, ascending.
  std::vector<std::vector<Index>> keys_of_rows(const Head<T>& head, Mask mask, const DrawKeys& draw,
                                               Context& context) const {
    std::vector<std::vector<Index>> keys(static_cast<size_t>(head.Q.rows()));
    walk(
        head, mask,
        [&](const HashedProblem& problem) {
          const Layout layout = layout_of(head, problem, context);
          const DrawnKeys drawn = layout.blocks > 1 ? draw(problem) : DrawnKeys{};
          for (Index b = 0; b < layout.blocks; ++b)
            for (const Index row : layout.part(layout.queries, layout.query_ends, b)) {
              auto& of_row = keys[static_cast<size_t>(row)];
              const auto own = layout.part(layout.keys, layout.key_ends, b);
              of_row.insert(of_row.end(), own.begin(), own.end());
              of_row.insert(of_row.end(), drawn.keys.begin(), drawn.keys.end());
            }
        },
        [&](const HashedProblem& last) {
          for (Index row = last.row; row < last.row + last.rows; ++row)
            for (Index j = last.begin; j < mask.visible(row, head.K.rows()); ++j)
              keys[static_cast<size_t>(row)].push_back(j);
        });
    for (auto& of_row : keys) {
      std::sort(of_row.begin(), of_row.end());
      of_row.erase(std::unique(of_row.begin(), of_row.end()), of_row.end());
    }
    return keys;
  }

  // Of a row: problem by problem, each key's probability p (number of the problem, key), and the keys that are added
  // exactly. s draws are independent if the row has one problem.
  SamplingLaw law(const Head<T>& head, Mask mask, Index row,
                  const std::function<double(const HashedProblem&, Index)>& p) const {
    const auto seen = static_cast<size_t>(mask.visible(row, head.K.rows()));
    SamplingLaw law{.p = std::vector<double>(seen, 0), .samples = settings_.samples, .exact = std::vector<bool>(seen)};
    Index problems = 0;
    const auto add_exactly = [&](Index key) { law.exact[static_cast<size_t>(key)] = true; };
    walk(
        head, mask,
        [&](const HashedProblem& problem) {
          if (row < problem.row || row >= problem.row + problem.rows) return;
          ++problems;
          Context context;
          const Layout layout = layout_of(head, problem, context);
          for (const Index key : layout.block_of_row(row)) add_exactly(key);
          if (layout.blocks == 1) return;
          for (Index j = problem.begin; j < problem.begin + problem.keys; ++j)
            law.p[static_cast<size_t>(j)] = p(problem, j);
        },
        [&](const HashedProblem& last) {
          if (row < last.row || row >= last.row + last.rows) return;
          ++problems;
          for (Index j = last.begin; j < static_cast<Index>(seen); ++j) add_exactly(j);
        });
    if (problems > 1) law.draws = SamplingLaw::Draws::dependent;
    return law;
  }

 private:
  static constexpr Index hash_rows = 256, query_chunk = 256;

  struct Sums {
    Out<T> out;
    std::span<T> log_normalisers;
  };

  // Which keys and queries of a problem share a block.
  struct Layout {
    Index blocks = 1;
    std::vector<Index> keys;                  // in hashed order
    std::vector<Index> queries;               // rows, block by block
    std::vector<Index> key_ends, query_ends;  // of each block
    std::vector<Index> block_of_key;          // for keys - begin

    std::span<const Index> part(const std::vector<Index>& of, const std::vector<Index>& ends, Index block) const {
      const Index begin = block == 0 ? 0 : ends[static_cast<size_t>(block - 1)];
      return std::span(of).subspan(static_cast<size_t>(begin),
                                   static_cast<size_t>(ends[static_cast<size_t>(block)] - begin));
    }
    std::span<const Index> block_of_row(Index row) const {
      for (Index b = 0; b < blocks; ++b) {
        const auto rows = part(queries, query_ends, b);
        if (std::find(rows.begin(), rows.end(), row) != rows.end()) return part(keys, key_ends, b);
      }
      return {};
    }
  };

  // The place of each row's pattern of signs in the Gray code.
  std::vector<std::uint32_t> hashes(const In<T>& X, Context& context) const {
    std::vector<std::uint32_t> hash(static_cast<size_t>(X.rows()));
    context.for_blocks(X.rows(), hash_rows, [&](Context& single, Index begin, Index count) {
      const Matrix<double> tokens = row_block(X, begin, count).template cast<double>();
      Matrix<double> turned(count, planes_.rows());
      multiply_transposed<double>(single, tokens, planes_, turned);
      for (Index i = 0; i < count; ++i) {
        std::uint32_t pattern = 0;
        for (Index b = 0; b < planes_.rows(); ++b) pattern |= static_cast<std::uint32_t>(turned(i, b) > 0) << b;
        for (unsigned shift = 1; shift < 32; shift *= 2) pattern ^= pattern >> shift;
        hash[static_cast<size_t>(begin + i)] = pattern;
      }
    });
    return hash;
  }

  static std::vector<Index> sorted_by(const std::vector<std::uint32_t>& hash, Index first) {
    std::vector<Index> order(hash.size());
    std::iota(order.begin(), order.end(), first);
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) {
      return hash[static_cast<size_t>(a - first)] < hash[static_cast<size_t>(b - first)];
    });
    return order;
  }
  static std::vector<Index> equal_parts(Index count, Index parts) {
    std::vector<Index> ends;
    for (Index a = 1; a <= parts; ++a) ends.push_back(a * count / parts);
    return ends;
  }

  Layout layout_of(const Head<T>& head, const HashedProblem& problem, Context& context) const {
    Layout layout;
    if (settings_.samples < problem.keys) layout.blocks = (problem.keys + settings_.block - 1) / settings_.block;
    layout.key_ends = equal_parts(problem.keys, layout.blocks);
    if (layout.blocks == 1) {
      layout.keys.resize(static_cast<size_t>(problem.keys));
      std::iota(layout.keys.begin(), layout.keys.end(), problem.begin);
      layout.queries.resize(static_cast<size_t>(problem.rows));
      std::iota(layout.queries.begin(), layout.queries.end(), problem.row);
      layout.query_ends = {problem.rows};
      return layout;
    }
    const auto of_keys = hashes(row_block(head.K, problem.begin, problem.keys), context);
    const auto of_queries = hashes(row_block(head.Q, problem.row, problem.rows), context);
    layout.keys = sorted_by(of_keys, problem.begin);
    layout.block_of_key.resize(of_keys.size());
    std::vector<std::uint32_t> sorted_hashes;
    std::vector<Index> block_at;  // of each place in the hashed order
    for (Index b = 0, at = 0; b < layout.blocks; ++b)
      for (; at < layout.key_ends[static_cast<size_t>(b)]; ++at) {
        const Index key = layout.keys[static_cast<size_t>(at)] - problem.begin;
        layout.block_of_key[static_cast<size_t>(key)] = b;
        sorted_hashes.push_back(of_keys[static_cast<size_t>(key)]);
        block_at.push_back(b);
      }
    layout.queries = sorted_by(of_queries, problem.row);
    const bool square = !problem.causal && head.Q.rows() == head.K.rows();
    if (settings_.queries == Queries::sorted || (settings_.queries == Queries::sorted_if_square && square)) {
      layout.query_ends = equal_parts(problem.rows, layout.blocks);
      return layout;
    }
    // Queries in hashed order take blocks in ascending order.
    for (Index i = 0; i < problem.rows; ++i) {
      const auto hash = of_queries[static_cast<size_t>(layout.queries[static_cast<size_t>(i)] - problem.row)];
      const auto [low, high] = std::equal_range(sorted_hashes.begin(), sorted_hashes.end(), hash);
      const Index middle = ((low - sorted_hashes.begin()) + (high - sorted_hashes.begin())) / 2;
      const Index block = block_at[static_cast<size_t>(std::min(middle, problem.keys - 1))];
      while (std::ssize(layout.query_ends) < block) layout.query_ends.push_back(i);
    }
    layout.query_ends.resize(static_cast<size_t>(layout.blocks), problem.rows);
    return layout;
  }

  // Calls unmasked(problem) for each unmasked problem and exact(part) for each last part of a causal form.
  template <class Unmasked, class Exact>
  void walk(const Head<T>& head, Mask mask, const Unmasked& unmasked, const Exact& exact) const {
    const Index nq = head.Q.rows(), keys = Mask{.keys = mask.keys}.visible(0, head.K.rows());
    if (keys == 0 || nq == 0) return;
    if (!mask.causal) return unmasked({1, 0, nq, 0, keys});
    // The first row that sees more than that many keys.
    const auto first_beyond = [&](Index seen) { return std::clamp<Index>(seen - mask.offset, 0, nq); };
    const std::function<void(HashedProblem)> halve = [&](HashedProblem part) {
      if (part.rows == 0) return;
      if (part.keys <= settings_.block) return exact(part);
      const Index half = part.keys / 2, end = part.row + part.rows;
      const Index split = std::clamp(first_beyond(part.begin + half), part.row, end);
      halve({2 * part.number, part.row, split - part.row, part.begin, half, true});
      if (split < end) unmasked({part.number, split, end - split, part.begin, half, true});
      halve({2 * part.number + 1, split, end - split, part.begin + half, part.keys - half, true});
    };
    const Index first = first_beyond(0);
    halve({1, first, nq - first, 0, keys, true});
  }

  // Adds one part of a row, given as its output and the logarithm of its normaliser.
  static void merge(const Sums& sums, Index row, const Out<T>& found, Index i, T log_normaliser) {
    T& before = sums.log_normalisers[static_cast<size_t>(row)];
    Out<T> out = row_block(sums.out, row, 1);
    if (before == -std::numeric_limits<T>::infinity()) {
      out.row(0) = found.row(i).head(out.cols());
      before = log_normaliser;
      return;
    }
    const T largest = std::max(before, log_normaliser);
    const T of_before = std::exp(before - largest), of_found = std::exp(log_normaliser - largest);
    const T sum = of_before + of_found;
    out = (of_before / sum) * out + (of_found / sum) * found.row(i).head(out.cols());
    before = largest + std::log(sum);
  }

  // Rows of a last part attend to its keys under the causal mask.
  void attend_last_part(const Head<T>& head, Mask mask, const HashedProblem& part, Context& context,
                        const Sums& sums) const {
    Matrix<T> found(part.rows, head.V.cols());
    std::vector<T> log_normalisers(static_cast<size_t>(part.rows));
    const Mask own{.causal = true, .offset = mask.offset + part.row - part.begin};
    tiled_softmax<T>({row_block(head.Q, part.row, part.rows), row_block(head.K, part.begin, part.keys),
                      row_block(head.V, part.begin, part.keys)},
                     own, {}, context, found, log_normalisers);
    for (Index i = 0; i < part.rows; ++i) merge(sums, part.row + i, found, i, log_normalisers[static_cast<size_t>(i)]);
  }

  void attend_problem(const Head<T>& head, const HashedProblem& problem, const DrawKeys& draw, Context& context,
                      const Sums& sums) const {
    const Layout layout = layout_of(head, problem, context);
    const DrawnKeys drawn = layout.blocks > 1 ? draw(problem) : DrawnKeys{};
    struct Chunk {
      Index block;
      std::span<const Index> rows;
    };
    std::vector<Chunk> chunks;
    for (Index b = 0; b < layout.blocks; ++b)
      for (auto rows = layout.part(layout.queries, layout.query_ends, b); !rows.empty();) {
        const size_t count = std::min<size_t>(rows.size(), query_chunk);
        chunks.push_back({b, rows.first(count)});
        rows = rows.subspan(count);
      }
    context.for_blocks(std::ssize(chunks), 1, [&](Context& single, Index c, Index) {
      const Chunk& chunk = chunks[static_cast<size_t>(c)];
      const auto own = layout.part(layout.keys, layout.key_ends, chunk.block);
      std::vector<Index> keys(own.begin(), own.end());
      std::vector<T> log_weights(keys.size(), T(0));
      for (size_t t = 0; t < drawn.keys.size(); ++t) {
        const Index block = layout.block_of_key[static_cast<size_t>(drawn.keys[t] - problem.begin)];
        if (settings_.mask_own && block == chunk.block) continue;
        keys.push_back(drawn.keys[t]);
        log_weights.push_back(static_cast<T>(drawn.log_weights[t]));
      }
      // At least two queries and two columns of values: products of one have other bits, and a later query that hashes
      // elsewhere may leave an earlier one alone.
      const Matrix<T> Q = gathered(head.Q, chunk.rows, 2, 0), K = gathered(head.K, keys, 0, 0),
                      V = gathered(head.V, keys, 0, 2);
      Matrix<T> found(Q.rows(), V.cols());
      std::vector<T> log_normalisers(static_cast<size_t>(Q.rows()));
      if (settings_.maximum)
        tiled_softmax<T>({Q, K, V}, {}, log_weights, single, found, log_normalisers);
      else
        softmax_without_maximum(Q, K, V, log_weights, single, found, log_normalisers);
      for (size_t i = 0; i < chunk.rows.size(); ++i)
        merge(sums, chunk.rows[i], found, static_cast<Index>(i), log_normalisers[i]);
    });
  }

  // tiled_softmax, with exponentials that overflow.
  static void softmax_without_maximum(const Matrix<T>& Q, const Matrix<T>& K, const Matrix<T>& V,
                                      const std::vector<T>& log_weights, Context& context, Matrix<T>& out,
                                      std::vector<T>& log_normalisers) {
    Matrix<T> weights(Q.rows(), K.rows());
    multiply_transposed<T>(context, Q, K, weights);
    const std::vector<T> no_shift(log_normalisers.size(), T(0));
    exponentiate<T>(context, weights, std::span<const T>(no_shift), std::span<const T>(log_weights));
    multiply<T>(context, weights, V, out);
    for (Index i = 0; i < weights.rows(); ++i) {
      const T sum = weights.row(i).sum();
      out.row(i) /= sum;
      log_normalisers[static_cast<size_t>(i)] = std::log(sum);
    }
  }

  // Padded with zeroes to that many rows and columns at least.
  static Matrix<T> gathered(const In<T>& X, std::span<const Index> rows, Index least_rows, Index least_columns) {
    Matrix<T> part = Matrix<T>::Zero(std::max(std::ssize(rows), least_rows), std::max(X.cols(), least_columns));
    for (size_t i = 0; i < rows.size(); ++i) part.row(static_cast<Index>(i)).head(X.cols()) = X.row(rows[i]);
    return part;
  }

  Settings settings_;
  Matrix<double> planes_;  // bits x d
};

// A method whose rows are those of the engine, once a derived class says which keys it draws.
template <class T>
class HashedBlockRows : public Approximation<T>, public Pattern<T>, public SampledRows<T> {
 public:
  HashedBlockRows(const Draw& draw, const char* method, typename HashedBlocks<T>::Settings settings)
      : blocks_(draw, method, settings),
        u_(numbers_of_draws(draw, method,
                            HashedBlocks<T>::problems(draw.shape.nk, draw.shape.mask.causal, settings.block),
                            std::min(settings.samples, draw.shape.nk))) {}

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    std::vector<T> log_normalisers(static_cast<size_t>(out.rows()));
    blocks_.attend(head, mask, draw_keys(head, context), context, out, log_normalisers);
  }
  Tensors state() const override { return {{"planes", blocks_.planes()}, {"u", u_}}; }
  std::vector<std::string> given() const override { return {"planes"}; }
  std::string tested_at() const override { return "block=4,s=6,bits=3"; }  // longer blocks need longer heads
  const Pattern<T>* pattern() const override { return this; }

  void keys_of_rows(const Head<T>& head, Mask mask, Index first, Context& context,
                    std::span<std::vector<Index>> keys) const override {
    auto all = blocks_.keys_of_rows(head, mask, draw_keys(head, context), context);
    std::move(all.begin() + first, all.begin() + first + std::ssize(keys), keys.begin());
  }

  // Blocks depend on all queries, so that all rows are computed.
  void sums(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> numerators, std::span<T> denominators,
            std::span<T> log_scale) const override {
    Matrix<T> out(head.Q.rows(), head.V.cols());
    std::vector<T> log_normalisers(static_cast<size_t>(out.rows()));
    blocks_.attend(head, mask, draw_keys(head, context), context, out, log_normalisers);
    for (Index i = 0; i < numerators.rows(); ++i) {
      const T log_normaliser = log_normalisers[static_cast<size_t>(first + i)];
      const bool sees = log_normaliser > -std::numeric_limits<T>::infinity();
      numerators.row(i) = out.row(first + i);
      denominators[static_cast<size_t>(i)] = sees ? T(1) : T(0);
      log_scale[static_cast<size_t>(i)] = sees ? log_normaliser : T(0);
    }
  }

 protected:
  // Draws from one problem after another of this head.
  virtual typename HashedBlocks<T>::DrawKeys draw_keys(const Head<T>& head, Context& context) const = 0;

  const HashedBlocks<T>& blocks() const { return blocks_; }
  // The numbers of a problem's draws.
  std::span<const double> numbers(const HashedProblem& problem) const {
    return {&u_(problem.number - 1, 0), static_cast<size_t>(u_.cols())};
  }

 private:
  HashedBlocks<T> blocks_;
  Matrix<double> u_;  // problems x s
};

// Pairs of a query and a key that are computed for each query of an unmasked problem with so many keys.
inline double hashed_pairs(double keys, Index block, double samples) {
  if (samples >= keys) return keys;
  const double blocks = std::ceil(keys / static_cast<double>(block));
  return keys / blocks + samples * (1 - 1 / blocks);
}

// FLOPs and exponentials of attend.
inline Work hashed_cost(const Params& params, const Shape& shape) {
  const Index block = params.integer("block");
  const double samples = static_cast<double>(params.integer("s")), bits = static_cast<double>(params.integer("bits"));
  const double nq = static_cast<double>(shape.nq), d = static_cast<double>(shape.d);
  double nk = static_cast<double>(Mask{.keys = shape.mask.keys}.visible(0, shape.nk));
  Work work;
  const auto add = [&](double rows, double keys, double pairs) {
    const bool hashed = samples < keys && keys > static_cast<double>(block);
    const double blocks = hashed ? std::ceil(keys / static_cast<double>(block)) : 1;
    // tiled_softmax computes logits for whole panels of queries.
    const double panel = shape.precision == Precision::f32 ? 64 : 32;
    const double computed = blocks * panel * std::ceil(rows / blocks / panel);
    work += {.flops = 2 * pairs * (computed * d + rows * static_cast<double>(shape.dv)) +
                      (hashed ? 2 * (rows + keys) * d * bits : 0),
             .exps = rows * pairs};
  };
  if (!shape.mask.causal) {
    add(nq, nk, hashed_pairs(nk, block, samples));
    return work;
  }
  // Halves, as if each row had its own key.
  double parts = 1;
  for (; nk > static_cast<double>(block); nk /= 2, parts *= 2)
    for (double part = 0; part < parts; ++part) add(nq / (2 * parts), nk / 2, hashed_pairs(nk / 2, block, samples));
  work += {.flops = nq * nk * (d + static_cast<double>(shape.dv)), .exps = nq * nk / 2};
  return work;
}

// Bytes of the order, and of the queries and keys of one chunk.
inline double hashed_memory(const Params& params, const Shape& shape) {
  const double channels = static_cast<double>(shape.d + shape.dv), nk = static_cast<double>(shape.nk);
  const double n = nk + static_cast<double>(shape.nq), samples = static_cast<double>(params.integer("s"));
  const double keys = std::min(nk, samples >= nk ? nk : static_cast<double>(params.integer("block")) + samples);
  return 24 * n + (keys + 256) * channels * bytes_of(shape.precision);
}

}  // namespace attnbench
