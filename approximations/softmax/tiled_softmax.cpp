#include "approximations/softmax/tiled_softmax.hpp"

#include <algorithm>
#include <cmath>

#include "harness/linalg/rounding.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench {

namespace {

constexpr Index query_block = 256;
constexpr Index key_block = 512;
constexpr Index exp_width = 64;  // entries exponentiated and summed at a time, so that they are read once

// The tile's logits over the first `keys` keys of each row.
template <class T>
void logits(Context& context, const Head<T>& head, std::span<const T> bias, Index row, Index rows, Index key,
            Out<T> tile) {
  multiply_transposed<T>(context, attnbench::rows(head.Q, row, rows), attnbench::rows(head.K, key, tile.cols()), tile);
  if (bias.empty()) return;
  const Eigen::Map<const Eigen::Array<T, 1, Eigen::Dynamic>> of_tile(bias.data() + key, tile.cols());
  tile.array().rowwise() += of_tile;
}

// x_j = exp(x_j - shift); returns their sum.
template <class T>
T exponentiate_and_sum(T* x, Index count, T shift) {
  using Strip = Eigen::Array<T, exp_width, 1>;
  Strip sums = Strip::Zero();
  Index j = 0;
  for (; j + exp_width <= count; j += exp_width) {
    Eigen::Map<Strip> strip(x + j);
    strip = (strip - shift).exp();
    sums += strip;
  }
  Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>> rest(x + j, count - j);
  rest = (rest - shift).exp();
  return sums.sum() + rest.sum();
}

// Running maximum, sum and output of a tile of rows.
template <class T>
struct RunningRows {
  explicit RunningRows(Index rows)
      : maximum(static_cast<size_t>(rows), -std::numeric_limits<T>::infinity()), sum(maximum.size(), T(0)) {}

  // Turns logits into weights over exp(maximum) and adds them to the sums. Row i sees its first visible(i) entries.
  template <class Visible>
  void add(Context& context, Out<T> tile, Out<T> output, const Visible& visible) {
    for (Index i = 0; i < tile.rows(); ++i) {
      const auto r = static_cast<size_t>(i);
      const Index seen = visible(i);
      auto row = tile.row(i);
      row.tail(tile.cols() - seen).setZero();
      if (seen == 0) continue;
      const T fresh = std::max(maximum[r], row.head(seen).maxCoeff());
      const T factor = std::exp(maximum[r] - fresh);
      sum[r] = sum[r] * factor + exponentiate_and_sum(row.data(), seen, fresh);
      if (factor != 1) output.row(i) *= factor;
      maximum[r] = fresh;
      context.work.exps += static_cast<double>(seen);
    }
    round_to<T>(context.rounding(), tile);
  }

  std::vector<T> maximum, sum;
};

}  // namespace

template <class T>
void tiled_softmax(const Head<T>& head, Mask mask, std::span<const T> bias, Context& context, Out<T> out,
                   std::span<T> log_normalisers) {
  const Index nk = head.K.rows();
  context.for_blocks(head.Q.rows(), query_block, [&](Context& single, Index begin, Index count) {
    Matrix<T> scratch(count, std::min(key_block, nk));
    Out<T> output = attnbench::rows(out, begin, count);
    output.setZero();
    RunningRows<T> running(count);
    const Index needed = mask.visible(begin + count - 1, nk);
    for (Index j = 0; j < needed; j += key_block) {
      const Index keys = std::min(key_block, needed - j);
      const auto tile = corner(scratch, count, keys);
      logits(single, head, bias, begin, count, j, tile);
      running.add(single, tile, output,
                  [&](Index i) { return std::clamp<Index>(mask.visible(begin + i, nk) - j, 0, keys); });
      multiply_add<T>(single, tile, attnbench::rows(head.V, j, keys), output);
    }
    for (Index i = 0; i < count; ++i) {
      const T sum = running.sum[static_cast<size_t>(i)];
      if (sum > 0) output.row(i) *= 1 / sum;
      if (!log_normalisers.empty())
        log_normalisers[static_cast<size_t>(begin + i)] = running.maximum[static_cast<size_t>(i)] + std::log(sum);
    }
  });
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
  Matrix<T> weights_memory(query_block, std::min(key_block, nk)), gradient_memory(query_block, std::min(key_block, nk));
  std::vector<T> along_out(static_cast<size_t>(nq));  // G_i.out_i
  for (Index i = 0; i < nq; ++i) along_out[static_cast<size_t>(i)] = G.row(i).dot(out.row(i));
  for (Index begin = 0; begin < nq; begin += query_block) {
    const Index count = std::min(query_block, nq - begin);
    const Index needed = mask.visible(begin + count - 1, nk);
    for (Index j = 0; j < needed; j += key_block) {
      const Index keys = std::min(key_block, needed - j);
      auto p = corner(weights_memory, count, keys), ds = corner(gradient_memory, count, keys);
      logits(context, head, bias, begin, count, j, p);
      multiply_transposed<T>(context, attnbench::rows(G, begin, count), attnbench::rows(head.V, j, keys), ds);
      for (Index i = 0; i < count; ++i) {
        const Index seen = std::clamp<Index>(mask.visible(begin + i, nk) - j, 0, keys);
        const auto r = static_cast<size_t>(begin + i);
        auto row = p.row(i).head(seen).array();
        row = (row - log_normalisers[r]).exp();
        ds.row(i).head(seen).array() = row * (ds.row(i).head(seen).array() - along_out[r]);
        p.row(i).tail(keys - seen).setZero();
        ds.row(i).tail(keys - seen).setZero();
        context.work.exps += static_cast<double>(seen);
      }
      multiply_add<T>(context, ds, attnbench::rows(head.K, j, keys), attnbench::rows(gradients.Q, begin, count));
      transposed_multiply_add<T>(context, ds, attnbench::rows(head.Q, begin, count),
                                 attnbench::rows(gradients.K, j, keys));
      transposed_multiply_add<T>(context, p, attnbench::rows(G, begin, count), attnbench::rows(gradients.V, j, keys));
      if (!bias_gradient.empty())
        add_column_sums<T>(ds, bias_gradient.subspan(static_cast<size_t>(j), static_cast<size_t>(keys)));
    }
  }
}

#define ATTNBENCH_INSTANTIATE(T)                                                                                 \
  template void tiled_softmax<T>(const Head<T>&, Mask, std::span<const T>, Context&, Out<T>, std::span<T>);      \
  template void tiled_softmax_backward<T>(const Head<T>&, Mask, std::span<const T>, const In<T>&,                \
                                          std::span<const T>, const In<T>&, Context&, Gradients<T>, std::span<T>);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
#undef ATTNBENCH_INSTANTIATE

}  // namespace attnbench
