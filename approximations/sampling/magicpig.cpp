// MagicPIG: keys drawn by collisions of a locality-sensitive hash, weighed by how probable their collisions were. Chen
// et al. 2024, arXiv:2410.16179, section 4.
//   k'_j = k_j - c_j, theta_ij the angle between q_i and k'_j; `tables` hashes of `bits` signs of random projections
//   P(equal signs in one table) = p_ij = (1 - theta_ij / pi)^bits
//   j is drawn if it has the signs of q_i in at least `collisions` tables, one or two, with the probability
//   w_ij = 1 - (1 - p_ij)^L or 1 - (1 - p_ij)^(L-1) ((L - 1) p_ij + 1), L = tables
//   o_i = (sum_exact e_ij v_j + sum_drawn e_ij v_j / w_ij) / the same without v_j,  e_ij = exp(q_i.k_j)   methods.md S
// Exact are the first `sinks` keys and those with |i - j| <= window. Numerator and denominator are unbiased (Horvitz
// and Thompson), for any centres c. Without a causal mask c is the mean of the keys; with one, c_j is the mean of keys
// 0 to j, so that no later key moves a hash. At least one sink is exact, so that no denominator is 0. An angle with a
// vector 0 counts as pi/2: its signs are all the same, and half of the other vector's are so. Two vectors 0 always
// collide. Signs and angles are in double for both scalar types. Centred keys and tables take n (8 d + 4 tables) bytes.
// Two collisions are the paper's. The method of this name in another library takes one; both estimates have no bias.
// epsilon: 1 / (w_ij + epsilon), 1e-4 in the authors' code, which has a bias.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "approximations/sparse/gathered_softmax.hpp"
#include "harness/core/estimates.hpp"

namespace attnbench::magicpig_method {
namespace {

// The keys of each pattern of signs, ascending, in one table after another.
class Tables {
 public:
  Tables(Index tables, Index bits, Index keys)
      : patterns_(Index{1} << bits),
        keys_(keys),
        ends_(static_cast<size_t>(tables * (patterns_ + 1)), 0),
        members_(static_cast<size_t>(tables * keys)) {}

  // patterns: that of each key in this table.
  void fill(Index table, std::span<const std::uint16_t> patterns) {
    std::int32_t* begins = &ends_[static_cast<size_t>(table * (patterns_ + 1))];
    for (const auto pattern : patterns) ++begins[pattern + 1];
    for (Index p = 0; p < patterns_; ++p) begins[p + 1] += begins[p];
    std::vector<std::int32_t> next(begins, begins + patterns_);
    for (size_t j = 0; j < patterns.size(); ++j)
      members_[static_cast<size_t>(table * keys_ + next[patterns[j]]++)] = static_cast<std::int32_t>(j);
  }
  std::span<const std::int32_t> with_pattern(Index table, std::uint16_t pattern) const {
    const std::int32_t* begins = &ends_[static_cast<size_t>(table * (patterns_ + 1))];
    return std::span(members_).subspan(static_cast<size_t>(table * keys_ + begins[pattern]),
                                       static_cast<size_t>(begins[pattern + 1] - begins[pattern]));
  }

 private:
  Index patterns_, keys_;
  std::vector<std::int32_t> ends_;     // tables x (patterns + 1)
  std::vector<std::int32_t> members_;  // tables x keys
};

// Of two vectors with this inner product and these lengths.
double angle(double product, double length, double other) {
  if (length == 0 && other == 0) return 0;
  if (length == 0 || other == 0) return M_PI / 2;
  return std::acos(std::clamp(product / length / other, -1.0, 1.0));  // rounding may exceed 1
}

using Numbers = Eigen::ArrayXd;

// x^n by squaring: std::pow took a fifth of a call.
template <class X>
X power(X x, Index n, X product) {
  for (; n > 0; n /= 2, x *= x)
    if (n % 2 == 1) product *= x;
  return product;
}

struct Settings {
  Index bits, tables, collisions, sinks, window;
  double epsilon;

  bool is_exact(Index position, Index key) const { return key < sinks || std::abs(position - key) <= window; }

  // That keys at these angles are drawn.
  Numbers probabilities(const Numbers& angles) const {
    const double L = static_cast<double>(tables);
    const Numbers one = Numbers::Ones(angles.size()), p = power<Numbers>(1 - angles / M_PI, bits, one);
    if (collisions == 1) return -(L * (-p).log1p()).expm1();
    Numbers w = 1 - power<Numbers>(1 - p, tables - 1, one) * ((L - 1) * p + 1);
    for (Index t = 0; t < w.size(); ++t)
      if (L * p[t] <= 0.1) w[t] = sum_over_collisions(p[t]);  // small p cancel in that form
    return w;
  }

 private:
  double sum_over_collisions(double p) const {
    const double L = static_cast<double>(tables);
    double sum = 0, term = L * (L - 1) / 2 * p * p * power(1 - p, tables - 2, 1.0);
    for (double c = 2; term > 1e-17 * sum; ++c) {
      sum += term;
      term *= (L - c) / (c + 1) * p / (1 - p);
    }
    return sum;
  }
};

// k_j - c_j, keys that are not padding.
template <class T>
Matrix<double> centred_keys(const Head<T>& head, Mask mask) {
  const Index n = Mask{.keys = mask.keys}.visible(0, head.K.rows());
  Matrix<double> keys = row_block(head.K, 0, n).template cast<double>();
  if (n == 0) return keys;
  if (!mask.causal) {
    const Eigen::RowVectorXd mean = keys.colwise().mean();
    keys.rowwise() -= mean;
    return keys;
  }
  Eigen::RowVectorXd sum = Eigen::RowVectorXd::Zero(keys.cols());
  for (Index j = 0; j < n; ++j) {
    sum += keys.row(j);
    keys.row(j) -= sum / static_cast<double>(j + 1);
  }
  return keys;
}

// The exact keys of each row, and those that collide with it, with the weights 1 / w.
template <class T>
class CollidingKeys final : public KeyChoice<T> {
 public:
  CollidingKeys(const Settings& settings, const Matrix<double>& planes, const Head<T>& head, Mask mask,
                Context& context)
      : settings_(settings),
        planes_(planes),
        head_(head),
        keys_(centred_keys(head, mask)),
        lengths_(keys_.rowwise().norm()),
        tables_(settings.tables, settings.bits, keys_.rows()) {
    const auto of_keys = patterns(keys_, context);
    const auto n = static_cast<size_t>(keys_.rows());
    for (size_t t = 0; n > 0 && t < static_cast<size_t>(settings.tables); ++t)
      tables_.fill(static_cast<Index>(t), std::span(of_keys).subspan(t * n, n));
  }

  void choose(Context& context, Mask mask, Index first, std::span<WeighedKeys<T>> rows,
              std::span<double>) const override {
    const Index count = std::ssize(rows);
    const Matrix<double> queries = row_block(head_.Q, first, count).template cast<double>();
    const auto of_queries = patterns(queries, context);
    std::vector<std::uint8_t> collisions(static_cast<size_t>(keys_.rows()), 0);
    std::vector<WeighedKeys<T>> drawn(static_cast<size_t>(count));
    for (Index i = 0; i < count; ++i) {
      const Index position = first + i + mask.offset, seen = mask.visible(first + i, head_.K.rows());
      list_exact(position, seen, rows[static_cast<size_t>(i)].keys);
      collect(of_queries, count, i, position, seen, collisions, drawn[static_cast<size_t>(i)].keys);
    }
    weigh(context, queries, drawn);
    for (size_t i = 0; i < drawn.size(); ++i) {
      auto& [keys, log_weights] = rows[i];
      log_weights.assign(keys.size(), 0);
      log_weights.insert(log_weights.end(), drawn[i].log_weights.begin(), drawn[i].log_weights.end());
      keys.insert(keys.end(), drawn[i].keys.begin(), drawn[i].keys.end());
      drawn[i] = {};
    }
  }

 private:
  // The pattern of each row of X in each table: pattern of row i in table t at t * rows + i.
  std::vector<std::uint16_t> patterns(const In<double>& X, Context& context) const {
    std::vector<std::uint16_t> all(static_cast<size_t>(settings_.tables * X.rows()));
    context.for_blocks(X.rows(), gathered_rows, [&](Context& single, Index begin, Index count) {
      Matrix<double> turned(count, planes_.rows());
      multiply_transposed<double>(single, row_block(X, begin, count), planes_, turned);
      for (Index i = 0; i < count; ++i)
        for (Index t = 0; t < settings_.tables; ++t) {
          const double* signs = &turned(i, t * settings_.bits);
          unsigned pattern = 0;
          for (Index b = 0; b < settings_.bits; ++b) pattern |= static_cast<unsigned>(signs[b] > 0) << b;
          all[static_cast<size_t>(t * X.rows() + begin + i)] = static_cast<std::uint16_t>(pattern);
        }
    });
    return all;
  }

  void list_exact(Index position, Index seen, std::vector<Index>& keys) const {
    const Index first = std::min(settings_.sinks, seen);
    for (Index j = 0; j < first; ++j) keys.push_back(j);
    const Index end = std::clamp<Index>(position + settings_.window + 1, 0, seen);
    for (Index j = std::max(first, std::clamp<Index>(position - settings_.window, 0, end)); j < end; ++j)
      keys.push_back(j);
  }

  // The other keys that collide with query i in enough tables. collisions: 2 i + 1 or 2 i + 2 after one or more of this
  // query's, less before.
  void collect(const std::vector<std::uint16_t>& of_queries, Index queries, Index i, Index position, Index seen,
               std::vector<std::uint8_t>& collisions, std::vector<Index>& keys) const {
    static_assert(2 * gathered_rows <= std::numeric_limits<std::uint8_t>::max());
    const auto one = static_cast<std::uint8_t>(2 * i + 1), more = static_cast<std::uint8_t>(2 * i + 2);
    size_t found = 0;
    for (Index t = 0; t < settings_.tables; ++t) {
      const auto alike = tables_.with_pattern(t, of_queries[static_cast<size_t>(t * queries + i)]);
      // Every key is written, and stays if it counts: whether it does is a branch that no processor can foresee.
      keys.resize(found + alike.size());
      for (const auto key : alike) {
        if (key >= seen) break;
        auto& count = collisions[static_cast<size_t>(key)];
        const bool enough = settings_.collisions == 1 ? count < one : count == one;
        keys[found] = key;
        found += static_cast<size_t>(enough & !settings_.is_exact(position, key));
        count = count < one ? one : more;
      }
    }
    keys.resize(found);
  }

  // Sets the weights of keys. An angle that rounds to pi never collides but by rounding: weight 0.
  void weigh(Context& context, const Matrix<double>& queries, std::span<WeighedKeys<T>> drawn) const {
    for (auto& row : drawn) row.log_weights.resize(row.keys.size());
    const Eigen::VectorXd lengths = queries.rowwise().norm();
    Numbers angles;
    const auto row_bytes = keys_.cols() * static_cast<Index>(sizeof(double));
    Slabs<T>().visit(keys_.rows(), row_bytes, drawn, [&](size_t i, size_t first, size_t count) {
      const auto row = static_cast<Index>(i), columns = static_cast<Index>(count);
      const auto keys = std::span(std::as_const(drawn[i].keys)).subspan(first, count);
      angles.resize(columns);
      multiply_gathered<double>(context, row_block(queries, row, 1), keys_, keys,
                                Out<double>(angles.data(), 1, columns, columns));
      for (Index t = 0; t < columns; ++t)
        angles[t] = angle(angles[t], lengths[row], lengths_[keys[static_cast<size_t>(t)]]);
      const Numbers w = settings_.probabilities(angles) + settings_.epsilon, log_weights = -w.log();
      for (Index t = 0; t < columns; ++t)
        drawn[i].log_weights[first + static_cast<size_t>(t)] =
            w[t] > 0 ? static_cast<T>(log_weights[t]) : -std::numeric_limits<T>::infinity();
    });
  }

  Settings settings_;
  const Matrix<double>& planes_;
  Head<T> head_;
  Matrix<double> keys_;
  Eigen::VectorXd lengths_;
  Tables tables_;
};

template <class T>
class MagicPig final : public GatheredSoftmax<T>, public SampledRows<T> {
 public:
  explicit MagicPig(const Draw& draw)
      : settings_{.bits = draw.params.integer("bits"),
                  .tables = draw.params.integer("tables"),
                  .collisions = draw.params.integer("collisions"),
                  .sinks = draw.params.integer("sinks"),
                  .window = draw.params.integer("window"),
                  .epsilon = draw.params.real("epsilon")} {
    const Index signs = settings_.tables * settings_.bits;
    if (const auto* given = draw.injected("planes", signs, draw.shape.d)) {
      planes_ = *given;
      return;
    }
    auto generator =
        draw.streams.stream("projection", "magicpig", settings_.bits, draw.shape.d, draw.head, draw.replicate);
    planes_ = standard_normal(generator, signs, draw.shape.d);
  }

  Tensors state() const override { return {{"planes", planes_}}; }

  void sums(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> numerators, std::span<T> denominators,
            std::span<T> log_scale) const override {
    this->add_up(head, mask, first, context, numerators, denominators, log_scale);
  }

  // One draw decides on each key, and keys share the hash: dependent draws.
  SamplingLaw law(const Head<T>& head, Mask mask, Index row) const override {
    const Index seen = mask.visible(row, head.K.rows());
    SamplingLaw law{.samples = 1, .draws = SamplingLaw::Draws::dependent};
    const Matrix<double> keys = centred_keys(head, mask), q = row_block(head.Q, row, 1).template cast<double>();
    Numbers angles(seen);
    for (Index j = 0; j < seen; ++j) {
      law.exact.push_back(settings_.is_exact(row + mask.offset, j));
      angles[j] = angle(keys.row(j).dot(q.row(0)), q.norm(), keys.row(j).norm());
    }
    const Numbers p = settings_.probabilities(angles);
    law.p.assign(p.begin(), p.end());
    return law;
  }
  // Of ten bits, two vectors at a right angle collide once in a thousand tables. 1e-4 shows beside probabilities that
  // are as small: 2.4e-4 at a right angle for six bits and two collisions, 1e-3 for ten bits and one.
  std::string tested_at() const override {
    if (settings_.epsilon == 0) return "bits=2,tables=6,sinks=1,window=1";
    return settings_.collisions == 1 ? "bits=10,tables=2,sinks=1,window=1" : "bits=6,tables=2,sinks=1,window=1";
  }

 private:
  std::unique_ptr<KeyChoice<T>> choice(const Head<T>& head, Mask mask, Context& context) const override {
    return std::make_unique<CollidingKeys<T>>(settings_, planes_, head, mask, context);
  }

  Settings settings_;
  Matrix<double> planes_;  // tables bits x d
};

// The mean number of keys that a row uses beyond the exact ones, for directions that are alike: every angle pi/2.
double drawn_keys(const Params& params, double rest) {
  const double p = std::exp2(-static_cast<double>(params.integer("bits")));
  const double others = static_cast<double>(params.integer("tables") - 1);
  if (params.integer("collisions") == 1) return rest * -std::expm1((others + 1) * std::log1p(-p));
  return rest * (1 - std::pow(1 - p, others) * (others * p + 1));
}
double exact_keys(const Params& params, double keys) {
  return std::min(keys, static_cast<double>(params.integer("sinks") + 2 * params.integer("window") + 1));
}

const bool registered = add(method<MagicPig>({
    .text = {.name = "magicpig",
             .printed = "MagicPIG",
             .summary = "softmax over keys that collide with the query in two hash tables, weighed by how probable "
                        "that was, and over sinks and a window",
             .formula = "o_i = (sum over exact j of e_ij v_j + sum over drawn j of e_ij v_j / w_ij) / the same without "
                        "v_j, w_ij = P(j is drawn), e_ij = exp(q_i.k_j)",
             .reference = "Chen et al. 2024, arXiv:2410.16179",
             .cost = "O(n bits tables d) time for hashes, O(n tables 2^-bits) a row for collisions, O(d + dv) for each "
                     "key used; O(n (d + tables)) memory",
             .family = "sampling",
             .departure = "the window has both sides without a causal mask; under one, keys are centred by the mean of "
                          "those before them; arccos is clamped, which the authors' code leaves to NaN",
             .aliases = {"magic-pig"}},
    .parameters = {Parameter::integer("bits", 8, "signs of a hash", 1, 16),
                   Parameter::integer("tables", 75, "hashes", 2, 4096).as_budget(),
                   Parameter::integer("collisions", 2, "a key is drawn if it collides in so many tables", 1, 2),
                   Parameter::integer("sinks", 4, "first keys, which are exact: at least one, so that no row is empty",
                                      1),
                   Parameter::integer("window", 64, "half width w: keys with |i - j| <= w are exact", 0),
                   Parameter::real("epsilon", 0, "added to w, 1e-4 in the authors' code", 0, 1).as_published()},
    .claims =
        [](const Params&, const Shape&) {
          return Claims{
              .row_stochastic = true, .non_negative = true, .causal_exact = true, .exact_when = "window=1000000000"};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          const double nk = static_cast<double>(shape.nk), tables = static_cast<double>(params.integer("tables"));
          const double exact = exact_keys(params, nk), used = exact + drawn_keys(params, nk - exact);
          return nk * (8 * static_cast<double>(shape.d) + 6 * tables) +
                 4 * tables * std::exp2(static_cast<double>(params.integer("bits"))) +
                 memory_of_gathered(used, true, shape);
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const double n = static_cast<double>(shape.nq), d = static_cast<double>(shape.d);
          const double dv = static_cast<double>(shape.dv), nk = static_cast<double>(shape.nk);
          const double seen = shape.mask.causal ? (nk + 1) / 2 : nk, exact = exact_keys(params, seen);
          const double drawn = drawn_keys(params, seen - exact);
          const double planes = static_cast<double>(params.integer("bits") * params.integer("tables"));
          return Work{.flops = 2 * (n + nk) * planes * d + 2 * n * ((exact + drawn) * (d + dv) + drawn * d),
                      .exps = n * (exact + drawn)};
        },
}));

}  // namespace
}  // namespace attnbench::magicpig_method
