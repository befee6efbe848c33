// Vector-quantised keys. Lingle, Transformer-VQ, arXiv:2309.16354, section 3.1.
//   A = softmax(q k^T) with k_j = the code nearest to k_j;  with n_y keys on code y and s_y the sum of their values
//   out_i = sum_y exp(q_i.c_y) s_y / sum_y exp(q_i.c_y) n_y                                        methods.md D
//         = softmax_y(q_i.c_y + log n_y) (s_y / n_y):  softmax attention to the codes, with one bias per code
// rank <= codes in use. |log A'_ij / A_ij| <= 2 max_j |q_i.(k_j - c_zj)|; codebook = keys is exact.
// Codes: codebook.hpp. Causal: earlier chunks enter as sums per code, the keys of the row's own chunk one by one.
#include <algorithm>
#include <cmath>

#include "approximations/codebook/code_sums.hpp"
#include "approximations/codebook/codebook.hpp"
#include "approximations/softmax/tiled_softmax.hpp"
#include "harness/linalg/exp.hpp"
#include "harness/linalg/per_row.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::vq_method {
namespace {

constexpr Index causal_chunk = 64;

template <class T>
class VectorQuantised final : public Approximation<T>, public Kernel<T>, public Rows<T> {
 public:
  explicit VectorQuantised(const Draw& draw)
      : codebook_(learn_codebook(draw).cast<T>()), half_norms_(static_cast<size_t>(codebook_.rows())) {
    half_squared_norms<T>(codebook_, half_norms_);
  }

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    if (mask.causal)
      attend_causally(head, mask, context, out);
    else
      attend_to_codes(head, mask.visible(0, head.K.rows()), context, out);
  }

  const Kernel<T>* kernel() const override { return this; }
  const Rows<T>* rows() const override { return this; }
  std::unique_ptr<Decoder<T>> decoder(const Shape& shape) const override {
    return std::make_unique<CodeDecoder<T>>(codebook_, half_norms_, shape.dv);
  }
  Tensors state() const override { return {{"codebook", codebook_.template cast<double>()}}; }

  void kernel(const Head<T>& head, Context& context, Out<T> block, std::span<T> log_rows,
              std::span<T> log_columns) const override {
    logits(head, 0, context, block);
    row_maxima<T>(block, log_rows);
    exponentiate_rows<T>(context, block, log_rows);
    std::fill(log_columns.begin(), log_columns.end(), T(0));
  }

  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    logits(head, first, context, A);
    for (Index i = 0; i < A.rows(); ++i) softmax_within<T>(context, A, i, 0, mask.visible(first + i, A.cols()));
  }

 private:
  // A code without keys has the bias log 0 and is replaced by the zero vector, because its score might overflow.
  void attend_to_codes(const Head<T>& head, Index keys, Context& context, Out<T> out) const {
    if (keys == 0) return void(out.setZero());
    const auto codes = nearest_codes<T>(context, row_block(head.K, 0, keys), codebook_, half_norms_);
    CodeSums<T> sums = sums_of<T>(context, codes, row_block(head.V, 0, keys), codebook_.rows());
    PerRow<T> log_counts(codebook_.rows());
    Matrix<T> used = codebook_;
    for (Index y = 0; y < codebook_.rows(); ++y) {
      const T count = sums.counts(y, 0);
      log_counts[y] = std::log(count);
      if (count > 0)
        sums.values.row(y) /= count;
      else
        used.row(y).setZero();
    }
    tiled_softmax<T>({head.Q, used, sums.values}, {}, log_counts, context, out);
  }

  void attend_causally(const Head<T>& head, Mask mask, Context& context, Out<T> out) const {
    const Index nq = head.Q.rows(), nk = head.K.rows();
    const auto codes =
        nearest_codes<T>(context, row_block(head.K, 0, mask.visible(nq - 1, nk)), codebook_, half_norms_);
    CodeSums<T> sums(codebook_.rows(), head.V.cols());
    for (Index begin = 0, absorbed = 0; begin < nq; begin += causal_chunk) {
      for (const Index seen_by_all = mask.visible(begin, nk); absorbed < seen_by_all; ++absorbed)
        sums.add(codes[static_cast<size_t>(absorbed)], head.V, absorbed);
      const Index count = std::min(causal_chunk, nq - begin);
      attend_rows(head, mask, sums, codes, absorbed, begin, context, row_block(out, begin, count));
    }
  }

  // q_i.c_{z_j} for rows [first, first + block.rows()), computed from the quantised keys.
  void logits(const Head<T>& head, Index first, Context& context, Out<T> block) const {
    const auto codes = nearest_codes<T>(context, head.K, codebook_, half_norms_);
    Matrix<T> quantised(head.K.rows(), head.K.cols());
    for (Index j = 0; j < quantised.rows(); ++j) quantised.row(j) = codebook_.row(codes[static_cast<size_t>(j)]);
    multiply_transposed<T>(context, row_block(head.Q, first, block.rows()), quantised, block);
  }

  // Rows from `begin` on: `sums` holds keys [0, absorbed); the other keys that a row sees are added one by one.
  void attend_rows(const Head<T>& head, Mask mask, const CodeSums<T>& sums, const std::vector<Index>& codes,
                   Index absorbed, Index begin, Context& context, Out<T> out) const {
    const Index count = out.rows(), c = codebook_.rows(), nk = head.K.rows();
    const Index own = std::max<Index>(0, mask.visible(begin + count - 1, nk) - absorbed);
    Matrix<T> weights(count, c), own_weights = Matrix<T>::Zero(count, own);
    PerRow<T> normalisers(count);
    PerRow<char> used(c);
    multiply_transposed<T>(context, row_block(head.Q, begin, count), codebook_, weights);
    for (Index y = 0; y < c; ++y) used[y] = sums.counts(y, 0) > 0;
    Index seen = 0;
    for (Index i = 0; i < count; ++i) {
      for (const Index visible = mask.visible(begin + i, nk) - absorbed; seen < visible; ++seen)
        used[codes[static_cast<size_t>(absorbed + seen)]] = 1;
      auto row = weights.row(i);
      T largest = -std::numeric_limits<T>::infinity();
      for (Index y = 0; y < c; ++y)
        if (used[y]) largest = std::max(largest, row[y]);
      if (seen == 0 && largest == -std::numeric_limits<T>::infinity()) {
        row.setZero();
        continue;
      }
      row.array() = exponential(row.array() - largest);
      for (Index y = 0; y < c; ++y)  // the weight of an unused code may have overflowed, and 0 times infinity is NaN
        if (!used[y]) row[y] = 0;
      for (Index j = 0; j < seen; ++j) own_weights(i, j) = row[codes[static_cast<size_t>(absorbed + j)]];
    }
    context.work.exps += static_cast<double>(weights.size());
    multiply<T>(context, weights, sums.counts, Out<T>(normalisers.data(), count, 1, 1));
    multiply<T>(context, weights, sums.values, out);
    if (own > 0) multiply_add<T>(context, own_weights, row_block(head.V, absorbed, own), out);
    for (Index i = 0; i < count; ++i) {
      const T normaliser = normalisers[i] + own_weights.row(i).sum();
      if (normaliser > 0) out.row(i) /= normaliser;
    }
  }

  Matrix<T> codebook_;         // c x d
  std::vector<T> half_norms_;  // of its rows
};

const bool registered = add(method<VectorQuantised>({
    .text = {.name = "vq",
             .printed = "VQ",
             .summary = "softmax on keys quantised to a codebook",
             .formula = "A = softmax(q c^T), c_j the code nearest to k_j",
             .reference = "Lingle 2023, Transformer-VQ, arXiv:2309.16354, section 3.1",
             .cost = "O(n c (d + dv)) time, O(c dv + n) memory beyond input and output",
             .family = "codebook",
             .aliases = {"transformer-vq"}},
    .parameters = codebook_parameters(),
    .claims =
        [](const Params& params, const Shape&) {
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .permutation_equivariant = true,
                        .causal_exact = true,
                        .rank_at_most = rank_bound(params)};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          const double c = static_cast<double>(std::min(expected_codes(params, shape), shape.nk));
          return static_cast<double>(shape.nk * static_cast<Index>(sizeof(Index))) +
                 c * static_cast<double>(shape.dv + (shape.mask.causal ? causal_chunk : shape.d)) *
                     bytes_of(shape.precision);
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const double c = static_cast<double>(expected_codes(params, shape));
          const double nq = static_cast<double>(shape.nq), nk = static_cast<double>(shape.nk);
          return Work{.flops = 2 * nk * c * static_cast<double>(shape.d) + nk * static_cast<double>(shape.dv) +
                               2 * nq * c * static_cast<double>(shape.d + shape.dv + 1),
                      .exps = nq * c};
        },
    .fitted = codes_are_learnt,
    .caveats = codebook_caveats,
}));

}  // namespace
}  // namespace attnbench::vq_method
