// A sparse pattern with exact weights on top of an approximation of everything else. Scatterbrain: Chen et al.,
// arXiv:2110.15343, eq. 4 and Algorithm 1.
//   combine:[pattern],[base],  S_i: the keys that the pattern gives row i
// A base that estimates a kernel w_ij (performer, linear, vq ...) is corrected before it is normalised:
//   A_ij = exp(q_i.k_j) / D_i on S_i,  w_ij / D_i elsewhere,  D_i = sum_j w_ij + sum over S_i of (exp(q_i.k_j) - w_ij)
// The kernel of the base has to be normalised by row sums, as softmax is: with another normaliser w_ij is of another
// scale than exp(q.k). No pair is counted twice. top-k with performer is performer with each row's k largest weights
// corrected. A base with normalised factors L R^T (nystrom, linformer) keeps its total mass on S_i, which is
// redistributed within S_i in the proportions of softmax (Vyas et al., arXiv:2007.04825, section 3.2.2):
//   A_ij = (sum over S_i of (L R^T)_il) exp(q_i.k_j) / sum over S_i of exp(q_i.k_l) on S_i,  (L R^T)_ij elsewhere
// O(pattern + base) time: the base's attention, plus its weights on the pattern, computed for 64 rows at a time.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/core/approximation.hpp"
#include "harness/linalg/exp.hpp"
#include "harness/linalg/per_row.hpp"
#include "harness/linalg/products.hpp"
#include "harness/linalg/vector.hpp"

namespace attnbench::combine_method {
namespace {

constexpr Index block_rows = 64;

const MethodEntry& entry_of(const Params& params) { return find<MethodEntry>(params.name()); }

void check(const Params& params) {
  const auto parts = params.all_nested("parts");
  if (parts.size() != 2)
    throw Misuse(
        params.spec() + ": " + std::to_string(parts.size()) +
        " specs; expected two, a sparse pattern and then what it corrects, as in combine:[local:window=8],[performer]");
  for (const Params& one : parts) entry_of(one).check(one);
  require_row_sums(parts[1], "combine");
}

Params part(const Params& params, size_t place) {
  check(params);
  return params.all_nested("parts")[place];
}

// Whether ascending keys are neighbours, as those of a window are. Then whole vectors of their entries are copied.
bool neighbours(const std::vector<Index>& keys) {
  return !keys.empty() && keys.back() - keys.front() + 1 == std::ssize(keys);
}

// The places of a row's keys in the union of some rows' keys, ascending.
class Places {
 public:
  // place_of(key).
  Places(const std::vector<Index>& keys, const auto& place_of)
      : size_(std::ssize(keys)), first_(keys.empty() ? 0 : place_of(keys.front())) {
    if (neighbours(keys)) return;
    apart_.resize(keys.size());
    std::transform(keys.begin(), keys.end(), apart_.begin(), place_of);
  }
  Index size() const { return size_; }
  Index operator[](Index s) const { return apart_.empty() ? first_ + s : apart_[static_cast<size_t>(s)]; }

  // Entry s of the array is that of place s in the row; other entries are unchanged.
  void read(const auto& row, auto& entries) const {
    if (apart_.empty())
      entries.head(size_) = row.segment(first_, size_);
    else
      for (Index s = 0; s < size_; ++s) entries[s] = row[apart_[static_cast<size_t>(s)]];
  }
  void write(const auto& entries, auto&& row) const {
    if (apart_.empty())
      row.segment(first_, size_) = entries.head(size_);
    else
      for (Index s = 0; s < size_; ++s) row[apart_[static_cast<size_t>(s)]] = entries[s];
  }

 private:
  Index size_, first_;
  std::vector<Index> apart_;  // all of them, unless they are neighbours
};

// The union of the keys that some rows see, with the head's rows of K and V for these keys.
template <class T>
struct Gathered {
  Gathered(const Head<T>& head, Index first, const std::vector<std::vector<Index>>& keys_of_rows) {
    Index begin = head.K.rows(), end = 0;
    for (const auto& of_row : keys_of_rows)
      if (!of_row.empty()) {
        begin = std::min(begin, of_row.front());
        end = std::max(end, of_row.back() + 1);
      }
    std::vector<Index> place(static_cast<size_t>(std::max<Index>(0, end - begin)), -1);  // of each key from begin on
    for (const auto& of_row : keys_of_rows)
      if (neighbours(of_row))
        std::fill_n(place.begin() + (of_row.front() - begin), of_row.size(), 0);
      else
        for (const Index key : of_row) place[static_cast<size_t>(key - begin)] = 0;
    for (size_t j = 0; j < place.size(); ++j)
      if (place[j] == 0) {
        place[j] = std::ssize(keys);
        keys.push_back(begin + static_cast<Index>(j));
      }
    for (const auto& of_row : keys_of_rows)
      places.emplace_back(of_row, [&](Index key) { return place[static_cast<size_t>(key - begin)]; });
    K.resize(std::ssize(keys), head.K.cols());
    V.resize(std::ssize(keys), head.V.cols());
    for (size_t j = 0; j < keys.size(); ++j) {
      K.row(static_cast<Index>(j)) = head.K.row(keys[j]);
      V.row(static_cast<Index>(j)) = head.V.row(keys[j]);
    }
    if (!head.extra || head.extra->empty()) return;
    std::vector<Index> rows(keys_of_rows.size());
    std::iota(rows.begin(), rows.end(), first);
    extra = part_of(*head.extra, rows, keys);
  }

  std::vector<Index> keys;
  std::vector<Places> places;  // of each row's keys
  Matrix<T> K, V;
  Extras extra;  // of these rows and keys
};

// The correction of one row of the base: out_i = scale * (row of the base) + corrections . V of the row's keys. `on`
// holds the entries of A on the pattern. Arrays end with a whole vector, because numbers one by one at the end took
// long: beyond the row's keys logits are -infinity and estimates 0, and so are the entries that follow from them.
template <class T>
struct Correction {
  using Array = Eigen::Array<T, 1, Eigen::Dynamic>;
  static constexpr T none = -std::numeric_limits<T>::infinity();

  // Replaces the weights of the pattern's keys by exp(logits), in numerator and normaliser. value exp(log_scale) is the
  // base's normaliser, estimates exp(log_estimates) its weights.
  void replace(T value, T log_scale, const Array& logits, const Array& estimates, const Array& log_estimates) {
    scale = 1;
    corrections = on = Array::Zero(logits.size());
    T shift = value == 0 ? none : log_scale + std::log(std::abs(value));
    if (logits.size() > 0)  // the logarithm of no weight is -infinity
      shift = std::max({shift, logits.maxCoeff(), (log_estimates + estimates.abs().log()).maxCoeff()});
    if (shift == none) return;  // no weight anywhere: the base's row is 0 as well
    const T of_base = value == 0 ? T(0) : value * std::exp(log_scale - shift);
    on = exponential(logits - shift);
    // The bound matters only where the estimate is 0, which an infinite factor would make NaN; the exponential of the
    // largest number's logarithm itself, rounded, is infinite. (Eigen does not vectorise a selection of the others; the
    // exponentials then took a third of a call.)
    const T most = std::log(std::numeric_limits<T>::max()) - 1;
    corrections = on - estimates * exponential((log_estimates - shift).min(most));
    const T normaliser = of_base + corrections.sum(), factor = normaliser == 0 ? T(0) : 1 / normaliser;
    scale = of_base * factor;
    corrections *= factor;
    on *= factor;
  }

  // Redistributes the mass that the base gives the pattern's keys, in the proportions of softmax.
  void share_out(const Array& logits, const Array& estimates) {
    scale = 1;
    corrections = on = Array::Zero(logits.size());
    const T largest = logits.size() == 0 ? none : logits.maxCoeff();
    if (largest == none) return;
    on = exponential(logits - largest);
    on *= estimates.sum() / on.sum();
    corrections = on - estimates;
  }

  T scale = 1;
  Array corrections, on;
};

template <class T>
class Combine final : public Approximation<T>, public Rows<T> {
 public:
  explicit Combine(const Draw& draw) {
    const Params of_pattern = part(draw.params, 0), of_base = part(draw.params, 1);
    pattern_ = make_approximation<T>(draw.with(of_pattern));
    base_ = make_approximation<T>(draw.with(of_base));
    if (!pattern_->pattern())
      throw Misuse("combine: " + of_pattern.spec() +
                   " declares no pattern of keys; expected one that does, such as local or top-k, and then what it "
                   "corrects, as in combine:[local:window=8],[performer]");
    const bool content_only = find<MethodEntry>(of_base.name()).claims(of_base, draw.shape).permutation_equivariant;
    corrects_kernel_ = base_->kernel() && content_only;
    if (!corrects_kernel_ && (!base_->factored() || draw.shape.mask.causal))
      throw Misuse(
          "combine: " + of_base.spec() + " offers no weight of a pair by itself" +
          (draw.shape.mask.causal ? " under a causal mask" : "") +
          "; expected a base with a kernel of content alone (performer, linear, vq ...) or, bidirectional, with "
          "factors (nystrom, linformer)");
  }

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    base_->attend(head, mask, context, out);
    const Whole whole = of_whole(head, mask, context);
    context.for_blocks(head.Q.rows(), block_rows, [&](Context& single, Index begin, Index count) {
      const auto keys = keys_of_rows(head, mask, begin, count, single);
      const Gathered<T> gathered(head, begin, keys);
      Matrix<T> factors = Matrix<T>::Zero(count, gathered.K.rows());
      auto block = row_block(out, begin, count);
      for_corrections(head, whole, begin, gathered, single, [&](Index i, const Correction<T>& correction) {
        block.row(i) *= correction.scale;
        gathered.places[static_cast<size_t>(i)].write(correction.corrections, factors.row(i).array());
      });
      if (!gathered.keys.empty()) multiply_add<T>(single, factors, gathered.V, block);
    });
  }

  const Rows<T>* rows() const override { return base_->rows() ? this : nullptr; }
  Tensors state() const override {
    Tensors all = base_->state();
    all.merge(pattern_->state());
    return all;
  }

  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    base_->rows()->attention_rows(head, mask, first, context, A);
    const Gathered<T> gathered(head, first, keys_of_rows(head, mask, first, A.rows(), context));
    for_corrections(head, of_whole(head, mask, context), first, gathered, context,
                    [&](Index i, const Correction<T>& correction) {
                      A.row(i) *= correction.scale;
                      const Places& places = gathered.places[static_cast<size_t>(i)];
                      for (Index s = 0; s < places.size(); ++s)
                        A(i, gathered.keys[static_cast<size_t>(places[s])]) = correction.on[s];
                    });
  }

 private:
  // For all rows: the base's normalisers, value exp(log_scale), or its factors.
  struct Whole {
    std::vector<T> value, log_scale;
    Matrix<T> L, R;
  };

  Whole of_whole(const Head<T>& head, Mask mask, Context& context) const {
    Whole whole;
    if (!corrects_kernel_) {
      base_->factored()->factors(head, mask, context, whole.L, whole.R);
      return whole;
    }
    whole.value.resize(static_cast<size_t>(head.Q.rows()));
    whole.log_scale.resize(whole.value.size());
    base_->kernel()->normalisers(head, mask, context, whole.value, whole.log_scale);
    return whole;
  }

  std::vector<std::vector<Index>> keys_of_rows(const Head<T>& head, Mask mask, Index first, Index count,
                                               Context& context) const {
    std::vector<std::vector<Index>> keys(static_cast<size_t>(count));
    pattern_->pattern()->keys_of_rows(head, mask, first, context, keys);
    return keys;
  }

  // Calls body(i, correction) for each of the rows first + i whose keys are gathered.
  template <class Body>
  void for_corrections(const Head<T>& head, const Whole& whole, Index first, const Gathered<T>& gathered,
                       Context& context, const Body& body) const {
    const Index count = std::ssize(gathered.places), width = gathered.K.rows();
    const In<T> Q = row_block(head.Q, first, count);
    Matrix<T> logits(count, width), weights(count, width);
    PerRow<T> log_rows(count, T(0)), log_columns(width, T(0));
    if (width > 0) {
      multiply_transposed<T>(context, Q, gathered.K, logits);
      if (corrects_kernel_) {
        base_->kernel()->kernel({Q, gathered.K, gathered.V, &gathered.extra}, context, weights, log_rows, log_columns);
      } else {
        Matrix<T> R(width, whole.R.cols());
        for (Index j = 0; j < width; ++j) R.row(j) = whole.R.row(gathered.keys[static_cast<size_t>(j)]);
        multiply_transposed<T>(context, row_block(whole.L, first, count), R, weights);
      }
    }
    Correction<T> correction;
    using Array = typename Correction<T>::Array;
    Array exact, estimates, log_estimates;
    const Eigen::Map<const Array> of_columns(log_columns.data(), width);
    for (Index i = 0; i < count; ++i) {
      const Places& places = gathered.places[static_cast<size_t>(i)];
      const Index padded = in_whole_vectors<T>(places.size());
      exact.setConstant(padded, Correction<T>::none);
      estimates.setZero(padded);
      log_estimates.setZero(padded);
      places.read(logits.row(i).array(), exact);
      places.read(weights.row(i).array(), estimates);
      places.read(of_columns, log_estimates);
      log_estimates += log_rows[i];
      const auto row = static_cast<size_t>(first + i);
      if (corrects_kernel_)
        correction.replace(whole.value[row], whole.log_scale[row], exact, estimates, log_estimates);
      else
        correction.share_out(exact, estimates);
      context.work.exps += static_cast<double>(places.size() * (corrects_kernel_ ? 2 : 1));
      body(i, correction);
    }
  }

  std::unique_ptr<Approximation<T>> pattern_, base_;
  bool corrects_kernel_ = false;
};

Claims claims(const Params& params, const Shape& shape) {
  const Params of_pattern = part(params, 0), of_base = part(params, 1);
  const Claims pattern = entry_of(of_pattern).claims(of_pattern, shape),
               base = entry_of(of_base).claims(of_base, shape);
  // Never claims non_negative: even with a non-negative base, removing a weight that was added can round below 0.
  return {.row_stochastic = base.row_stochastic,
          .permutation_equivariant = pattern.permutation_equivariant && base.permutation_equivariant,
          .no_form = pattern.no_form.empty() ? base.no_form : pattern.no_form,
          .causal_exact = pattern.causal_exact && base.causal_exact};
}

// The cost of the base and its normalisers, plus logits, the base's weights and values on the pattern. The pattern's
// FLOPs are 2 (d + dv) a pair.
Work cost(const Params& params, const Shape& shape) {
  const Params of_pattern = part(params, 0), of_base = part(params, 1);
  const Work pattern = entry_of(of_pattern).cost(of_pattern, shape);
  const Claims base = entry_of(of_base).claims(of_base, shape);
  Shape normalisers = shape;
  normalisers.dv = 1;
  Work work = entry_of(of_base).cost(of_base, shape);
  work += entry_of(of_base).cost(of_base, normalisers);
  work += pattern;
  work.flops += pattern.flops * static_cast<double>(base.rank_at_most.value_or(shape.d)) /
                static_cast<double>(shape.d + shape.dv);
  work.exps += pattern.exps;
  return work;
}

const bool registered = add(method<Combine>({
    .text = {.name = "combine",
             .printed = "Combination",
             .summary = "exact weights on a sparse pattern, an approximation elsewhere",
             .formula = "A = rownorm(exp(Q K^T) on the pattern, the base's weights off it)",
             .reference = "Chen et al. 2021, Scatterbrain, arXiv:2110.15343, eq. 4",
             .cost = "the base's, and O(pattern (d + F + dv))",
             .family = "sparse",
             .aliases = {"scatterbrain"}},
    .parameters = {Parameter::specs("parts", "[local],[performer]", "a sparse pattern, and what it corrects",
                                    "methods")},
    .claims = claims,
    .memory =
        [](const Params& params, const Shape& shape) {
          const Params of_pattern = part(params, 0), of_base = part(params, 1);
          return entry_of(of_pattern).memory(of_pattern, shape) + entry_of(of_base).memory(of_base, shape);
        },
    .cost = cost,
    .fitted =
        [](const Params& params) {
          const auto parts = params.all_nested("parts");
          return std::any_of(parts.begin(), parts.end(), [](const Params& one) { return entry_of(one).fitted(one); });
        },
    .check = check,
}));

}  // namespace
}  // namespace attnbench::combine_method
