#include "approximations/softmax/tiled_softmax.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "approximations/softmax/running_softmax.hpp"
#include "harness/linalg/exp.hpp"

namespace attnbench {

namespace {

// Tiles are keys x queries: maxima and sums over keys then run down columns, one SIMD vector of queries at a time, and
// the kernel of products.cpp can read all operands in place, without packing.
constexpr Index query_block = 256;  // queries in one thread's block; its panels share the keys in the cache
// A multiple of the six rows of the product kernel; with it a tile stays in the first-level cache.
constexpr Index key_block = 96;
template <class T>
constexpr Index panel_width = 256 / static_cast<Index>(sizeof(T));  // queries

template <class T>
using Columns = Eigen::Array<T, 1, panel_width<T>>;  // one number per query of a panel
template <class T>
using Row = Eigen::Map<Columns<T>>;

template <class T>
constexpr T lowest = -std::numeric_limits<T>::infinity();

// Queries [row, row + rows) and how many of the first keys each sees.
struct PanelOfRows {
  Index row, rows;
  Mask mask;
  Index nk;

  Index needed() const { return mask.visible(row + rows - 1, nk); }  // keys that any of them sees
  // The first of these rows that sees key j; all later ones see it too.
  Index first_that_sees(Index j) const {
    if (j >= Mask{.keys = mask.keys}.visible(0, nk)) return rows;
    return mask.causal ? std::clamp<Index>(j - mask.offset - row, 0, rows) : 0;
  }
  // Of the tile with keys [j, j + keys): all of it, or on the diagonal what its queries see.
  std::vector<Band> bands(Index j, Index keys) const {
    if (first_that_sees(j + keys - 1) == 0) return {{.queries = rows, .end = keys}};
    std::vector<Band> found;
    for (Index query = 0; query < rows; query += Band::step) {
      const Index count = std::min(Band::step, rows - query);
      const Index end = std::clamp<Index>(mask.visible(row + query + count - 1, nk) - j, 0, keys);
      if (end > 0) found.push_back({query, count, 0, end});
    }
    return found;
  }
};

// X^T for the rows of a panel, d x panel_width; columns without a row are 0.
template <class T>
Matrix<T> columns_of(const In<T>& X, const PanelOfRows& panel) {
  return transposed<T>(row_block(X, panel.row, panel.rows), panel_width<T>);
}

// The logits of a panel's queries: writes those of keys [j, j + tile.rows()) to a tile of keys x panel_width, those of
// its bands at least. Of numbers in the scalar type, with a bias of each key if there are any.
template <class T>
class RealLogits {
 public:
  RealLogits(const Head<T>& head, std::span<const T> bias, const PanelOfRows& panel)
      : K_(head.K), bias_(bias), Qt_(columns_of(head.Q, panel)) {}
  void operator()(Context& context, Index j, std::span<const Band> bands, const Out<T>& tile) {
    find_needed<T>(bands, 0, tile.rows(), needed_);
    multiply_needed<T>(context, row_block(K_, j, tile.rows()), Qt_, needed_, tile);
  }
  // Of keys [j, j + count), or empty.
  std::span<const T> bias(Index j, Index count) const {
    return bias_.empty() ? bias_ : bias_.subspan(static_cast<size_t>(j), static_cast<size_t>(count));
  }

 private:
  In<T> K_;
  std::span<const T> bias_;
  Matrix<T> Qt_;  // d x panel_width
  std::vector<ColumnRange> needed_;
};

class CodeLogits {
 public:
  CodeLogits(const Codes& Q, const Codes& K, const PanelOfRows& panel) : K_(K), Q_(Q, panel.row, panel.rows) {}
  void operator()(Context& context, Index j, std::span<const Band>, const Out<float>& tile) const {
    multiply_codes(context, K_, j, Q_, tile);
  }
  static std::span<const float> bias(Index, Index) { return {}; }

 private:
  static_assert(CodePanel::width == panel_width<float>);
  const Codes& K_;
  CodePanel Q_;
};

// One panel of the forward pass.
template <class T, class Logits>
class Panel {
 public:
  Panel(const PanelOfRows& rows, Logits logits, Out<T> out)
      : rows_(rows), logits_(std::move(logits)), softmax_(row_block(out, rows.row, rows.rows)) {
    row_block(out, rows.row, rows.rows).setZero();
  }

  Index needed() const { return rows_.needed(); }

  // Adds keys [j, j + tile.rows()).
  void add(Context& context, const In<T>& V, Index j, Out<T> tile) {
    const auto bias = logits_.bias(j, tile.rows());
    const std::vector<Band> bands = rows_.bands(j, tile.rows());
    logits_(context, j, bands, tile);
    for (Index k = tile.rows() - 1; k >= 0 && rows_.first_that_sees(j + k) > 0; --k)
      tile.row(k).head(rows_.first_that_sees(j + k)).setConstant(softmax_.none);
    softmax_.raise(tile, bands, bias);
    softmax_.rescale();
    softmax_.weigh(context, tile, bands, bias);
    for (const auto& [query, queries, first, end] : bands) {
      context.work.exps += static_cast<double>(end * queries);
      const In<T> weights(tile.data() + query, end, queries, tile.cols());
      transposed_multiply_add<T>(context, weights, row_block(V, j, end), row_block(softmax_.output(), query, queries));
    }
  }

  void finish(std::span<T> log_normalisers) {
    softmax_.finish();
    if (log_normalisers.empty()) return;
    for (Index i = 0; i < rows_.rows; ++i)
      log_normalisers[static_cast<size_t>(rows_.row + i)] = softmax_.maximum(i) + std::log(softmax_.sum(i));
  }

 private:
  PanelOfRows rows_;
  Logits logits_;
  RunningSoftmax<T> softmax_;
};

// logits_of(panel): those of its queries. fetch(first, count): keys that will be read next.
template <class T, class Logits, class Fetch>
void tiled(Index nq, const In<T>& V, Mask mask, Context& context, const Out<T>& out, std::span<T> log_normalisers,
           const Logits& logits_of, const Fetch& fetch) {
  context.for_blocks(nq, query_block, [&](Context& single, Index begin, Index count) {
    Matrix<T> scratch(key_block, panel_width<T>);
    std::vector<Panel<T, std::invoke_result_t<Logits, PanelOfRows>>> panels;
    for (Index i = begin; i < begin + count; i += panel_width<T>) {
      const PanelOfRows rows{i, std::min(panel_width<T>, begin + count - i), mask, V.rows()};
      panels.emplace_back(rows, logits_of(rows), out);
    }
    const Index needed = panels.back().needed();
    for (Index j = 0; j < needed; j += key_block) {
      fetch(j + key_block, std::clamp<Index>(needed - j - key_block, 0, key_block));
      for (auto& panel : panels)
        if (const Index keys = std::min(key_block, panel.needed() - j); keys > 0)
          panel.add(single, V, j, row_block(scratch, 0, keys));
    }
    for (auto& panel : panels) panel.finish(log_normalisers);
  });
}

}  // namespace

template <class T>
void tiled_softmax(const Head<T>& head, Mask mask, std::span<const T> bias, Context& context, Out<T> out,
                   std::span<T> log_normalisers) {
  tiled<T>(
      head.Q.rows(), head.V, mask, context, out, log_normalisers,
      [&](const PanelOfRows& rows) { return RealLogits<T>(head, bias, rows); },
      [&](Index first, Index count) {
        fetch_during_products<T>({row_block(head.K, first, count), row_block(head.V, first, count)});
      });
}

void tiled_softmax_of_codes(const Codes& Q, const Codes& K, const In<float>& V, Mask mask, Context& context,
                            const Out<float>& out) {
  tiled<float>(
      Q.rows(), V, mask, context, out, {}, [&](const PanelOfRows& rows) { return CodeLogits(Q, K, rows); },
      [&](Index first, Index count) { fetch_during_products<float>({row_block(V, first, count)}); });
}

template <class T>
void tiled_softmax_backward(const Head<T>& head, Mask mask, std::span<const T> bias, const In<T>& out,
                            std::span<const T> log_normalisers, const In<T>& G, Context& context,
                            Gradients<T> gradients, std::span<T> bias_gradient) {
  const Index nq = head.Q.rows(), nk = head.K.rows();
  gradients.Q.setZero();
  gradients.K.setZero();
  gradients.V.setZero();
  std::fill(bias_gradient.begin(), bias_gradient.end(), T(0));
  Matrix<T> weights_memory(key_block, panel_width<T>), gradient_memory(key_block, panel_width<T>);
  for (Index begin = 0; begin < nq; begin += panel_width<T>) {
    const PanelOfRows panel{begin, std::min(panel_width<T>, nq - begin), mask, nk};
    const Matrix<T> Qt = columns_of(head.Q, panel), Gt = columns_of(G, panel);
    const In<T> Q = row_block(head.Q, begin, panel.rows), G_rows = row_block(G, begin, panel.rows);
    Columns<T> log_normaliser = Columns<T>::Zero(), along_out = Columns<T>::Zero();  // G_i.out_i
    for (Index i = 0; i < panel.rows; ++i) {
      const T log_sum = log_normalisers[static_cast<size_t>(begin + i)];
      log_normaliser[i] = log_sum == lowest<T> ? T(0) : log_sum;
      along_out[i] = G_rows.row(i).dot(out.row(begin + i));
    }
    for (Index j = 0; j < panel.needed(); j += key_block) {
      const Index keys = std::min(key_block, panel.needed() - j);
      auto p = row_block(weights_memory, 0, keys), ds = row_block(gradient_memory, 0, keys);
      multiply<T>(context, row_block(head.K, j, keys), Qt, p);
      multiply<T>(context, row_block(head.V, j, keys), Gt, ds);
      for (Index k = 0; k < keys; ++k) {
        Row<T> weights(p.data() + k * panel_width<T>), gradient(ds.data() + k * panel_width<T>);
        const T shift = bias.empty() ? T(0) : bias[static_cast<size_t>(j + k)];
        weights = exponential(weights + shift - log_normaliser);
        weights.head(panel.first_that_sees(j + k)).setZero();
        weights.tail(panel_width<T> - panel.rows).setZero();
        gradient = weights * (gradient - along_out);
        if (!bias_gradient.empty()) bias_gradient[static_cast<size_t>(j + k)] += gradient.sum();
      }
      context.work.exps += static_cast<double>(keys * panel.rows);
      const In<T> ds_seen(ds.data(), keys, panel.rows, panel_width<T>),
          p_seen(p.data(), keys, panel.rows, panel_width<T>);
      transposed_multiply_add<T>(context, ds_seen, row_block(head.K, j, keys),
                                 row_block(gradients.Q, begin, panel.rows));
      multiply_add<T>(context, ds_seen, Q, row_block(gradients.K, j, keys));
      multiply_add<T>(context, p_seen, G_rows, row_block(gradients.V, j, keys));
    }
  }
}

#define ATTNBENCH_INSTANTIATE(T)                                                                                      \
  template void tiled_softmax<T>(const Head<T>&, Mask, std::span<const T>, Context&, Out<T>, std::span<T>);           \
  template void tiled_softmax_backward<T>(const Head<T>&, Mask, std::span<const T>, const In<T>&, std::span<const T>, \
                                          const In<T>&, Context&, Gradients<T>, std::span<T>);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
#undef ATTNBENCH_INSTANTIATE

}  // namespace attnbench
