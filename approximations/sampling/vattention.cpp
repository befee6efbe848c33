// vAttention: a few keys exactly, and of the rest as many uniform draws as a promise on the denominator needs. Desai et
// al. 2025, arXiv:2510.05688, algorithms 1 and 2.
//   exact: the first `sinks` keys, those with |i - j| <= window, and the `top` largest logits of the others
//   of the m keys that are left, `base` are drawn; mean and standard deviation sigma of their e_ij = exp(q_i.k_j) give
//   D~ = sum_exact e_ij + m mean,   b = ceil((z sigma m / (eps D~))^2),  at least 1
//   o_i = (sum_exact e_ij v_j + (m/b) sum over b fresh draws of e_ij v_j) / the same without v_j         methods.md S
// By the central limit theorem P(|D^ / D - 1| > eps) is delta for z = Phi^-1(1 - delta/2), apart from the errors of
// sigma and D~. All m keys are exact if m <= base or b >= m. Numerator and denominator are unbiased: the draws do not
// depend on those of the base sample. At least one sink is exact, so that no denominator is 0.
// quantile=one-sided: as the authors' library, z = Phi^-1(1 - delta), for which that probability is 2 delta.
// collapsed=true: a key that is drawn several times is added once, as in a dense mask of that library. D^ is then too
// small: of m keys b draws reach m (1 - (1 - 1/m)^b) in the mean, which is b (1 - b / 2m) for few.
//
// The logits of a row are all computed to find the largest: O(n^2 d). With top=0 only those of used keys are: O(n
// (exact + base + b) (d + dv)). Each row has two seeds, of its base sample and of its draws.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/core/estimates.hpp"
#include "harness/linalg/rows.hpp"
#include "harness/random/uniform_numbers.hpp"
#include "harness/theory/special_functions.hpp"

namespace attnbench::vattention_method {
namespace {

constexpr Index block_rows = 16;

double two_sided_or_published(const Params& params) {
  const double delta = params.real("delta");
  return normal_quantile(params.text("quantile") == "two-sided" ? 1 - delta / 2 : 1 - delta);
}

template <class T>
class VAttention final : public Approximation<T>, public Pattern<T>, public SampledRows<T> {
 public:
  explicit VAttention(const Draw& draw)
      : eps_(draw.params.real("eps")),
        z_(two_sided_or_published(draw.params)),
        sinks_(draw.params.integer("sinks")),
        window_(draw.params.integer("window")),
        top_(draw.params.integer("top")),
        base_(draw.params.integer("base")),
        collapsed_(draw.params.flag("collapsed")),
        base_seeds_(seeds(draw, "base")),
        draw_seeds_(seeds(draw, "draws")) {}

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    for_rows(head, mask, 0, out.rows(), context, [&](Context& single, Index i, Row& row) {
      const Sum sum = add_up(single, head, row, row_block(out, i, 1));
      if (sum.denominator > 0) out.row(i) /= sum.denominator;
    });
  }

  Tensors state() const override { return {{"base", base_seeds_}, {"draws", draw_seeds_}}; }
  std::vector<std::string> given() const override { return {"base"}; }
  const Pattern<T>* pattern() const override { return this; }

  // Without those of the base sample, which decide on the number of draws alone.
  void keys_of_rows(const Head<T>& head, Mask mask, Index first, Context& context,
                    std::span<std::vector<Index>> keys) const override {
    for_rows(head, mask, first, std::ssize(keys), context, [&](Context&, Index i, Row& row) {
      auto& of_row = keys[static_cast<size_t>(i)];
      of_row = row.exact;
      of_row.insert(of_row.end(), row.drawn.begin(), row.drawn.end());
      std::sort(of_row.begin(), of_row.end());
      of_row.erase(std::unique(of_row.begin(), of_row.end()), of_row.end());
    });
  }

  void sums(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> numerators, std::span<T> denominators,
            std::span<T> log_scale) const override {
    for_rows(head, mask, first, numerators.rows(), context, [&](Context& single, Index i, Row& row) {
      const Sum sum = add_up(single, head, row, row_block(numerators, i, 1));
      denominators[static_cast<size_t>(i)] = sum.denominator;
      log_scale[static_cast<size_t>(i)] = sum.log_scale;
    });
  }

  SamplingLaw law(const Head<T>& head, Mask mask, Index row) const override {
    const auto seen = static_cast<size_t>(mask.visible(row, head.K.rows()));
    SamplingLaw law{.p = std::vector<double>(seen, 0), .samples = 1, .exact = std::vector<bool>(seen, true)};
    Context context;
    for_rows(head, mask, row, 1, context, [&](Context&, Index, Row& of_row) {
      if (of_row.drawn.empty()) return;
      law.samples = of_row.draws;
      for (const Index key : of_row.rest) {
        law.p[static_cast<size_t>(key)] = 1 / static_cast<double>(of_row.rest.size());
        law.exact[static_cast<size_t>(key)] = false;
      }
    });
    return law;
  }

 private:
  // The keys of a row. Those used are `exact`, which hold the rest as well if nothing is drawn, and `drawn`.
  struct Row {
    Index row = 0, draws = 0;
    std::vector<Index> exact, rest, drawn;
    std::span<const T> all;  // the logits of all keys that the row sees, if they are computed
    Matrix<T> K, V, weights;
  };
  struct Sum {
    T denominator = 0, log_scale = 0;
  };

  // A number below 2^53 for each row.
  static Matrix<double> seeds(const Draw& draw, const char* what) {
    if (const auto* given = draw.injected(what, draw.shape.nq, 1)) return *given;
    Matrix<double> seeds(draw.shape.nq, 1);
    Generator generator = draw.streams.stream("sampled", "vattention", what, draw.head, draw.replicate);
    for (Index i = 0; i < seeds.rows(); ++i) seeds(i, 0) = static_cast<double>(generator() >> 11);
    return seeds;
  }
  static Index drawn_below(Index count, Generator& generator) {
    return std::min(count - 1, static_cast<Index>(uniform_number(generator) * static_cast<double>(count)));
  }

  // Calls body(context, i, row first + i) for i in [0, total).
  template <class Body>
  void for_rows(const Head<T>& head, Mask mask, Index first, Index total, Context& context, const Body& body) const {
    const Index nk = head.K.rows();
    context.for_blocks(total, block_rows, [&](Context& single, Index begin, Index count) {
      const Index most_seen = mask.visible(first + begin + count - 1, nk);
      Matrix<T> all;  // logits, if they are all computed
      if (top_ > 0 && most_seen > 0) {
        all.resize(count, most_seen);
        multiply_transposed<T>(single, row_block(head.Q, first + begin, count), row_block(head.K, 0, most_seen), all);
      }
      Row row;
      for (Index i = 0; i < count; ++i) {
        row.row = first + begin + i;
        const Index seen = mask.visible(row.row, nk);
        row.all = {};
        if (all.size() > 0) row.all = {all.data() + i * all.cols(), static_cast<size_t>(seen)};
        split(row.row + mask.offset, seen, row);
        draw(single, head, row);
        body(single, begin + i, row);
      }
    });
  }

  // Which keys are exact, and the rest, both ascending.
  void split(Index position, Index seen, Row& row) const {
    row.exact.clear();
    row.rest.clear();
    for (Index j = 0; j < seen; ++j)
      (j < sinks_ || std::abs(position - j) <= window_ ? row.exact : row.rest).push_back(j);
    const auto top = static_cast<std::ptrdiff_t>(std::min(top_, std::ssize(row.rest)));
    if (top == 0) return;
    const auto logit = [&](Index j) { return row.all[static_cast<size_t>(j)]; };
    std::nth_element(row.rest.begin(), row.rest.begin() + (top - 1), row.rest.end(),
                     [&](Index a, Index b) { return logit(a) > logit(b) || (logit(a) == logit(b) && a < b); });
    row.exact.insert(row.exact.end(), row.rest.begin(), row.rest.begin() + top);
    row.rest.erase(row.rest.begin(), row.rest.begin() + top);
    std::sort(row.exact.begin(), row.exact.end());
    std::sort(row.rest.begin(), row.rest.end());
  }

  // Draws as many of the rest as the base sample asks for, or makes all of the rest exact.
  void draw(Context& context, const Head<T>& head, Row& row) const {
    row.drawn.clear();
    row.draws = 0;
    const Index rest = std::ssize(row.rest);
    double budget = static_cast<double>(rest);
    if (rest > base_) {
      Generator generator(static_cast<std::uint64_t>(base_seeds_(row.row, 0)));
      std::vector<Index> keys = row.exact;
      for (Index t = 0; t < base_; ++t) keys.push_back(row.rest[static_cast<size_t>(drawn_below(rest, generator))]);
      read_logits(context, head, keys, row);
      budget = budget_of(context, row, static_cast<double>(rest));
    }
    if (budget >= static_cast<double>(rest)) {
      row.exact.insert(row.exact.end(), row.rest.begin(), row.rest.end());
      return;
    }
    Generator generator(static_cast<std::uint64_t>(draw_seeds_(row.row, 0)));
    row.draws = static_cast<Index>(budget);
    for (Index t = 0; t < row.draws; ++t)
      row.drawn.push_back(row.rest[static_cast<size_t>(drawn_below(rest, generator))]);
    if (!collapsed_) return;
    std::sort(row.drawn.begin(), row.drawn.end());
    row.drawn.erase(std::unique(row.drawn.begin(), row.drawn.end()), row.drawn.end());
  }

  // Sets row.weights to the logits of these keys.
  void read_logits(Context& context, const Head<T>& head, const std::vector<Index>& keys, Row& row) const {
    const Index count = std::ssize(keys);
    row.weights.resize(1, count);
    if (!row.all.empty()) {
      for (Index t = 0; t < count; ++t) row.weights(0, t) = row.all[static_cast<size_t>(keys[static_cast<size_t>(t)])];
      return;
    }
    row.K.resize(count, head.K.cols());
    for (Index t = 0; t < count; ++t) row.K.row(t) = head.K.row(keys[static_cast<size_t>(t)]);
    multiply_transposed<T>(context, row_block(head.Q, row.row, 1), row.K, row.weights);
  }

  // b, from row.weights: the logits of the exact keys and then of the base sample.
  double budget_of(Context& context, const Row& row, double rest) const {
    const double largest = static_cast<double>(row.weights.maxCoeff()), base = static_cast<double>(base_);
    double exact = 0, sum = 0;
    std::vector<double> of_base;
    for (Index t = 0; t < row.weights.cols(); ++t) {
      const double e = std::exp(static_cast<double>(row.weights(0, t)) - largest);
      if (t < std::ssize(row.exact)) {
        exact += e;
      } else {
        sum += e;
        of_base.push_back(e);
      }
    }
    context.work.exps += static_cast<double>(row.weights.cols());
    double squares = 0;
    for (const double e : of_base) squares += (e - sum / base) * (e - sum / base);
    const double sigma = std::sqrt(squares / (base - 1)), error = eps_ * (exact + rest * sum / base);
    return std::max(1.0, std::ceil(std::pow(z_ * sigma * rest / error, 2)));
  }

  // Writes the numerator (1 x dv). All numbers are 0 if the row sees no key.
  Sum add_up(Context& context, const Head<T>& head, Row& row, Out<T> numerator) const {
    std::vector<Index> keys = row.exact;
    keys.insert(keys.end(), row.drawn.begin(), row.drawn.end());
    if (keys.empty()) {
      numerator.setZero();
      return {};
    }
    const Index count = std::ssize(keys), drawn = std::ssize(row.drawn);
    read_logits(context, head, keys, row);
    if (drawn > 0)
      row.weights.rightCols(drawn).array() +=
          static_cast<T>(std::log(static_cast<double>(row.rest.size()) / static_cast<double>(row.draws)));
    const T largest = row.weights.maxCoeff();
    exponentiate_rows<T>(context, row.weights, std::span(&largest, 1));
    row.V.resize(count, head.V.cols());
    for (Index t = 0; t < count; ++t) row.V.row(t) = head.V.row(keys[static_cast<size_t>(t)]);
    multiply<T>(context, row.weights, row.V, numerator);
    return {row.weights.sum(), largest};
  }

  double eps_, z_;
  Index sinks_, window_, top_, base_;
  bool collapsed_;
  Matrix<double> base_seeds_, draw_seeds_;  // nq x 1 each
};

// The mean numbers of keys that a row uses. How many it draws depends on the head: here as if sigma m were D / 2, or D
// (e - 1)^1/2 without largest logits that are exact, as it is where logits are standard normal.
struct Keys {
  double exact, rest, drawn;
};
Keys keys_of(const Params& params, double seen) {
  const double apart = static_cast<double>(params.integer("sinks") + 2 * params.integer("window") + 1);
  Keys keys{.exact = std::min(seen, apart + static_cast<double>(params.integer("top"))), .rest = 0, .drawn = 0};
  keys.rest = seen - keys.exact;
  if (keys.rest <= static_cast<double>(params.integer("base"))) return {seen, 0, 0};
  const double spread = params.integer("top") > 0 ? 0.5 : std::sqrt(std::exp(1.0) - 1);
  keys.drawn = std::ceil(std::pow(spread * two_sided_or_published(params) / params.real("eps"), 2));
  return keys.drawn >= keys.rest ? Keys{seen, 0, 0} : keys;
}

Work cost(const Params& params, const Shape& shape) {
  const double n = static_cast<double>(shape.nq), nk = static_cast<double>(shape.nk);
  const double d = static_cast<double>(shape.d), dv = static_cast<double>(shape.dv);
  const double seen = shape.mask.causal ? (nk + 1) / 2 : nk;
  const Keys keys = keys_of(params, seen);
  const double used = keys.exact + keys.drawn;
  const double apart = static_cast<double>(params.integer("sinks") + 2 * params.integer("window") + 1 +
                                           params.integer("top") + params.integer("base"));
  const double looked_at = apart < seen ? apart : 0;
  const double logits = params.integer("top") > 0 ? seen : used + looked_at;
  return {.flops = 2 * n * (logits * d + used * dv), .exps = n * (used + looked_at)};
}

double memory(const Params& params, const Shape& shape) {
  const double nk = static_cast<double>(shape.nk), bytes = bytes_of(shape.precision);
  const Keys keys = keys_of(params, nk);
  const bool searched = params.integer("top") > 0;
  // Without exact logits some row of a head mostly needs as many draws as there are keys.
  const double used = searched ? keys.exact + keys.drawn : nk;
  return (searched ? block_rows * nk * bytes : 0) + 16 * nk + used * static_cast<double>(shape.d + shape.dv) * bytes;
}

const bool registered = add(method<VAttention>({
    .text = {.name = "vattention",
             .printed = "vAttention",
             .summary = "softmax over sinks, a window and the largest logits, and over as many drawn keys as a promise "
                        "on the denominator needs",
             .formula = "o_i = (sum over exact j of e_ij v_j + (m/b) sum over b drawn j of e_ij v_j) / the same "
                        "without v_j, b = (z sigma m / (eps D))^2, e_ij = exp(q_i.k_j)",
             .reference = "Desai et al. 2025, arXiv:2510.05688",
             .cost = "O(n^2 d + n (exact + b) dv) time, with top=0 O(n (exact + base + b) (d + dv)); O(n + (exact + b) "
                     "(d + dv)) memory",
             .family = "sampling",
             .departure = "base sample and draws are two samples with replacement; `base` keys are drawn in every row "
                          "(there: a share of n); the window has both sides without a causal mask; the quantile is "
                          "that of a two-sided promise"},
    .parameters =
        {Parameter::real("eps", 0.1, "relative error of the denominator that is promised", 1e-6, 0.999),
         Parameter::real("delta", 0.1, "probability of a larger error", 1e-6, 0.999),
         Parameter::integer("sinks", 4, "first keys, which are exact: at least one, so that no row is empty", 1),
         Parameter::integer("window", 32, "half width w: keys with |i - j| <= w are exact", 0),
         Parameter::integer("top", 32, "largest logits of the others, which are exact; 0: they are not searched for", 0)
             .as_budget(),
         Parameter::integer("base", 64, "keys of the sample that the number of draws is computed from", 2, 1 << 20),
         Parameter::choice("quantile", "two-sided", "one-sided: errors beyond eps are twice as frequent as delta",
                           {"two-sided", "one-sided"})
             .as_published(),
         Parameter::flag("collapsed", false, "true: a key that is drawn several times is added once").as_published()},
    .claims =
        [](const Params&, const Shape&) {
          return Claims{
              .row_stochastic = true, .non_negative = true, .causal_exact = true, .exact_when = "top=1000000000"};
        },
    .memory = memory,
    .cost = cost,
}));

}  // namespace
}  // namespace attnbench::vattention_method
