// Truncated linear attention: only the band |i - j| <= w of a linear attention matrix. Source 000 (kexue 8338).
//   renormalise=true:   A = rownorm((Q' K'^T) on the band); w = 0 is the identity
//   renormalise=false:  A = D^-1 (Q' K'^T) on the band with the full row's D; rows sum to less than one
// methods.md F. Only the band is formed: O(n w F). The base may be any method with a kernel, whose weights then take
// the place of Q' K'^T.
#include <algorithm>
#include <cmath>

#include "approximations/linear/linear_attention.hpp"
#include "approximations/linear/linear_cost.hpp"
#include "approximations/sparse/band.hpp"
#include "approximations/sparse/window.hpp"
#include "harness/linalg/per_row.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::truncated_method {
namespace {

const MethodEntry& entry_of(const Params& base) { return find<MethodEntry>(base.name()); }

template <class T>
std::unique_ptr<Approximation<T>> make_base(const Draw& draw) {
  const Params base = draw.params.nested("base");
  auto made = make_approximation<T>(draw.with(base));
  // The engine of linear attention knows positions in a block; any other kernel has to do without.
  const bool positions = dynamic_cast<LinearAttention<T>*>(made.get()) != nullptr;
  if (!made->kernel() || (!positions && !entry_of(base).claims(base, draw.shape).permutation_equivariant))
    throw Misuse(
        "truncated: base=" + base.spec() +
        " offers no kernel of content alone; expected one that does, such as linear, performer, vq or softmax");
  return made;
}

// The number of features, or of a logit's terms.
Index features_of(const Params& base, const Shape& shape) {
  return entry_of(base).claims(base, shape).rank_at_most.value_or(shape.d);
}

template <class T>
class Truncated final : public Approximation<T>, public Rows<T>, public Pattern<T> {
 public:
  explicit Truncated(const Draw& draw)
      : base_(make_base<T>(draw)),
        linear_(dynamic_cast<const LinearAttention<T>*>(base_.get())),
        window_(draw.params.integer("window")),
        renormalise_(draw.params.flag("renormalise")) {}

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const FullRows full = full_rows(head, mask, context);
    context.for_blocks(head.Q.rows(), band_rows, [&](Context& single, Index begin, Index count) {
      const KeyRange keys = band_of_rows(begin, count, window_, mask, head.K.rows());
      auto block = row_block(out, begin, count);
      block.setZero();
      if (keys.size() == 0) return;
      Matrix<T> A(count, keys.size());
      band(head, mask, full, begin, keys, single, A);
      multiply<T>(single, A, row_block(head.V, keys.begin, keys.size()), block);
    });
  }

  const Rows<T>* rows() const override { return this; }
  const Pattern<T>* pattern() const override { return this; }
  Tensors state() const override { return base_->state(); }

  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    const FullRows full = full_rows(head, mask, context);
    A.setZero();
    for (Index i = 0; i < A.rows(); ++i) {
      const KeyRange keys = band_of_row(first + i, window_, mask, A.cols());
      if (keys.size() == 0) continue;
      band(head, mask, full, first + i, keys, context,
           Out<T>(A.data() + i * A.outerStride() + keys.begin, 1, keys.size(), keys.size()));
    }
  }
  void keys_of_rows(const Head<T>& head, Mask mask, Index first, Context&,
                    std::span<std::vector<Index>> keys) const override {
    keys_of_pattern(Window(0, window_), head.Q.rows(), head.K.rows(), mask, first, keys);
  }

 private:
  // The normalisers of the full rows, value exp(log_scale); empty if the band is renormalised.
  struct FullRows {
    std::vector<T> value, log_scale;
  };

  FullRows full_rows(const Head<T>& head, Mask mask, Context& context) const {
    if (renormalise_) return {};
    const auto count = static_cast<size_t>(head.Q.rows());
    FullRows full{std::vector<T>(count), std::vector<T>(count)};
    base_->kernel()->normalisers(head, mask, context, full.value, full.log_scale);
    return full;
  }

  // Normalised rows [begin, begin + A.rows()) over the keys of the range; zero outside each row's own window.
  void band(const Head<T>& head, Mask mask, const FullRows& full, Index begin, KeyRange keys, Context& context,
            Out<T> A) const {
    PerRow<T> log_rows(A.rows()), log_columns(keys.size());
    if (linear_)
      linear_->weights(head, begin, keys.begin, context, A, log_rows, log_columns);
    else
      base_->kernel()->kernel(HeadPart<T>(head, begin, A.rows(), keys.begin, keys.size()).view(), context, A, log_rows,
                              log_columns);
    for (Index i = 0; i < A.rows(); ++i) {
      const KeyRange seen = band_of_row(begin + i, window_, mask, head.K.rows());
      const Index left = seen.begin - keys.begin;
      auto row = A.row(i).array();
      row.head(left).setZero();
      row.tail(keys.size() - left - seen.size()).setZero();
      if (seen.size() == 0) continue;
      const auto width = static_cast<size_t>(seen.size());
      const std::span<T> window(A.data() + i * A.outerStride() + left, width);
      const std::span<const T> columns(log_columns.data() + left, width);
      const T log_scale =
          linear_ ? linear_->stabilise_row(head, begin + i, seen.begin, context, window, log_rows[i], columns)
                  : log_rows[i] + scaled_by_largest(window, columns, context);
      const auto r = static_cast<size_t>(begin + i);
      const T normaliser = renormalise_ ? row.sum() : full.value[r] * std::exp(full.log_scale[r] - log_scale);
      if (normaliser == 0)
        row.setZero();
      else
        row /= normaliser;
    }
  }

  // Multiplies the weights by exp(log_columns) over its largest; returns the logarithm of that.
  static T scaled_by_largest(std::span<T> weights, std::span<const T> log_columns, Context& context) {
    const T largest = *std::max_element(log_columns.begin(), log_columns.end());
    for (size_t j = 0; j < weights.size(); ++j) weights[j] *= std::exp(log_columns[j] - largest);
    context.work.exps += static_cast<double>(weights.size());
    return largest;
  }

  std::unique_ptr<Approximation<T>> base_;
  const LinearAttention<T>* linear_;  // the base, if it is one
  Index window_;
  bool renormalise_;
};

const bool registered = add(method<Truncated>({
    .text = {.name = "truncated",
             .printed = "Truncated",
             .summary = "the band of a linear attention matrix, or of another kernel, renormalised or not",
             .formula = "A = rownorm(phi(Q) phi(K)^T on |i - j| <= w)",
             .reference = "Su 2021, kexue.fm/archives/8338",
             .cost = "O(n w F) time, O(w F) memory beyond input and output",
             .family = "sparse"},
    .parameters = {Parameter::entry("base", "linear", "the method with a kernel that is truncated", "methods"),
                   Parameter::integer("window", 64, "half width w: row i sees |i - j| <= w", 0).as_budget(),
                   Parameter::flag("renormalise", true, "normalise over the band; false: over the full row")},
    .claims =
        [](const Params& params, const Shape& shape) {
          const Params base = params.nested("base");
          const Claims linear = entry_of(base).claims(base, shape);
          return Claims{.row_stochastic = params.flag("renormalise") && linear.row_stochastic,
                        .non_negative = linear.non_negative,
                        .causal_exact = true};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          // The features of a block's rows and of the keys in their windows, and the block's part of A.
          const Params base = params.nested("base");
          const Index width = std::min(band_rows + 2 * params.integer("window"), shape.nk);
          return static_cast<double>((band_rows + width) * features_of(base, shape) + band_rows * width) *
                 bytes_of(shape.precision);
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const Params base = params.nested("base");
          const Index window = params.integer("window"), reach = shape.mask.causal ? window : 2 * window;
          // A block of rows gathers the keys of all its windows and, if the base has features, maps them.
          const Index width = std::min(band_rows + reach, shape.nk), blocks = (shape.nq + band_rows - 1) / band_rows;
          Work work;
          if (base.has("features"))
            work = mapping_cost(feature_map_entry(base), base, shape.d, shape.nq + blocks * width);
          work.flops +=
              2 * static_cast<double>(shape.nq * width) * static_cast<double>(features_of(base, shape) + shape.dv);
          work.exps += static_cast<double>(shape.nq * std::min(reach + 1, shape.nk));
          if (!params.flag("renormalise"))  // the full rows' normalisers
            work += entry_of(base).cost(base, Shape{.nq = shape.nq, .nk = shape.nk, .d = shape.d, .dv = 1});
          return work;
        },
    .fitted =
        [](const Params& params) {
          const Params base = params.nested("base");
          return entry_of(base).fitted(base);
        },
    .check =
        [](const Params& params) {
          const Params base = params.nested("base");
          entry_of(base).check(base);
          require_row_sums(base, "truncated");
        },
}));

}  // namespace
}  // namespace attnbench::truncated_method
