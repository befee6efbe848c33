// MagicPIG: keys drawn by collisions of a locality-sensitive hash, weighed by how probable their collisions were. Chen
// et al. 2024, arXiv:2410.16179, section 4.
//   k'_j = k_j - c_j, theta_ij the angle between q_i and k'_j; `tables` hashes of `bits` signs of random projections
//   P(equal signs in one table) = p_ij = (1 - theta_ij / pi)^bits
//   j is drawn if it has the signs of q_i in at least two tables, with the probability
//   w_ij = 1 - (1 - p_ij)^(L-1) ((L - 1) p_ij + 1), L = tables
//   o_i = (sum_exact e_ij v_j + sum_drawn e_ij v_j / w_ij) / the same without v_j,  e_ij = exp(q_i.k_j)   methods.md S
// Exact are the first `sinks` keys and those with |i - j| <= window. Numerator and denominator are unbiased (Horvitz
// and Thompson), for any centres c. Without a causal mask c is the mean of the keys; with one, c_j is the mean of keys
// 0 to j, so that no later key moves a hash. At least one sink is exact, so that no denominator is 0. An angle with a
// vector 0 counts as pi/2: its signs are all the same, and half of the other vector's are so. Two vectors 0 always
// collide. Signs and angles are in double for both scalar types. Centred keys and tables take n (8 d + 4 tables) bytes.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "harness/core/estimates.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench {
namespace {

constexpr Index block_rows = 64;

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

template <class T>
class MagicPig final : public Approximation<T>, public Pattern<T>, public SampledRows<T> {
 public:
  explicit MagicPig(const Draw& draw)
      : bits_(draw.params.integer("bits")),
        tables_(draw.params.integer("tables")),
        sinks_(draw.params.integer("sinks")),
        window_(draw.params.integer("window")) {
    if (const auto* given = draw.injected("planes", tables_ * bits_, draw.shape.d)) {
      planes_ = *given;
      return;
    }
    auto generator = draw.streams.stream("projection", "magicpig", bits_, draw.shape.d, draw.head, draw.replicate);
    planes_ = standard_normal(generator, tables_ * bits_, draw.shape.d);
  }

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    for_rows(head, mask, 0, out.rows(), context, [&](Context& single, Index i, Used& used) {
      const Sum sum = add_up(single, head, used, row_block(out, i, 1));
      if (sum.denominator > 0) out.row(i) /= sum.denominator;
    });
  }

  Tensors state() const override { return {{"planes", planes_}}; }
  const Pattern<T>* pattern() const override { return this; }

  void keys_of_rows(const Head<T>& head, Mask mask, Index first, Context& context,
                    std::span<std::vector<Index>> keys) const override {
    for_rows(head, mask, first, std::ssize(keys), context, [&](Context&, Index i, Used& used) {
      auto& of_row = keys[static_cast<size_t>(i)];
      of_row = used.keys;
      std::sort(of_row.begin(), of_row.end());
    });
  }

  void sums(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> numerators, std::span<T> denominators,
            std::span<T> log_scale) const override {
    for_rows(head, mask, first, numerators.rows(), context, [&](Context& single, Index i, Used& used) {
      const Sum sum = add_up(single, head, used, row_block(numerators, i, 1));
      denominators[static_cast<size_t>(i)] = sum.denominator;
      log_scale[static_cast<size_t>(i)] = sum.log_scale;
    });
  }

  // One draw decides on each key, and keys share the hash: dependent draws.
  SamplingLaw law(const Head<T>& head, Mask mask, Index row) const override {
    const Index seen = mask.visible(row, head.K.rows());
    SamplingLaw law{.samples = 1, .draws = SamplingLaw::Draws::dependent};
    const Matrix<double> keys = centred(head, mask), q = row_block(head.Q, row, 1).template cast<double>();
    for (Index j = 0; j < seen; ++j) {
      law.exact.push_back(is_exact(row + mask.offset, j));
      law.p.push_back(probability(angle(keys.row(j).dot(q.row(0)), q.norm(), keys.row(j).norm())));
    }
    return law;
  }
  // Of ten bits, two vectors at a right angle collide once in a thousand tables.
  std::string tested_at() const override { return "bits=2,tables=6,sinks=1,window=1"; }

 private:
  // The keys that a row uses, and memory for their weights.
  struct Used {
    Index row = 0;
    std::vector<Index> keys;
    Index exact = 0;                  // of the keys, these first ones are added as they are
    std::vector<double> probability;  // of each drawn key
    Matrix<T> K, V, weights;
  };
  struct Sum {
    T denominator = 0, log_scale = 0;
  };

  bool is_exact(Index position, Index key) const { return key < sinks_ || std::abs(position - key) <= window_; }

  // Of at least two collisions.
  double probability(double theta) const {
    const double p = std::pow(1 - theta / M_PI, static_cast<double>(bits_)), L = static_cast<double>(tables_);
    if (L * p > 0.5) return 1 - std::pow(1 - p, L - 1) * ((L - 1) * p + 1);
    // Small p cancel in this form: the sum over numbers of collisions instead.
    double sum = 0, term = L * (L - 1) / 2 * p * p * std::pow(1 - p, L - 2);
    for (double collisions = 2; term > 1e-17 * sum; ++collisions) {
      sum += term;
      term *= (L - collisions) / (collisions + 1) * p / (1 - p);
    }
    return sum;
  }

  // k_j - c_j, keys that are not padding.
  Matrix<double> centred(const Head<T>& head, Mask mask) const {
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

  // The pattern of each row of X in each table: pattern of row i in table t at t * rows + i.
  std::vector<std::uint16_t> patterns(const In<double>& X, Context& context) const {
    std::vector<std::uint16_t> all(static_cast<size_t>(tables_ * X.rows()));
    context.for_blocks(X.rows(), block_rows, [&](Context& single, Index begin, Index count) {
      Matrix<double> turned(count, planes_.rows());
      multiply_transposed<double>(single, row_block(X, begin, count), planes_, turned);
      for (Index i = 0; i < count; ++i)
        for (Index t = 0; t < tables_; ++t) {
          const double* signs = &turned(i, t * bits_);
          unsigned pattern = 0;
          for (Index b = 0; b < bits_; ++b) pattern |= static_cast<unsigned>(signs[b] > 0) << b;
          all[static_cast<size_t>(t * X.rows() + begin + i)] = static_cast<std::uint16_t>(pattern);
        }
    });
    return all;
  }

  // Calls body(context, i, keys of row first + i) for i in [0, total).
  template <class Body>
  void for_rows(const Head<T>& head, Mask mask, Index first, Index total, Context& context, const Body& body) const {
    const Index nk = head.K.rows();
    const Matrix<double> keys = centred(head, mask);
    Eigen::VectorXd lengths = keys.rowwise().norm();
    Tables tables(tables_, bits_, keys.rows());
    {
      const auto of_keys = patterns(keys, context);
      for (Index t = 0; t < tables_ && keys.rows() > 0; ++t)
        tables.fill(t,
                    std::span(of_keys).subspan(static_cast<size_t>(t * keys.rows()), static_cast<size_t>(keys.rows())));
    }
    context.for_blocks(total, block_rows, [&](Context& single, Index begin, Index count) {
      const Matrix<double> queries = row_block(head.Q, first + begin, count).template cast<double>();
      const auto of_queries = patterns(queries, single);
      std::vector<std::uint8_t> collisions(static_cast<size_t>(keys.rows()), 0);
      Used used;
      for (Index i = 0; i < count; ++i) {
        used.row = first + begin + i;
        const Index seen = mask.visible(used.row, nk);
        list_exact(used.row + mask.offset, seen, used);
        collect(tables, of_queries, count, i, used.row + mask.offset, seen, collisions, used);
        set_probabilities(single, keys, lengths, row_block(queries, i, 1), used);
        body(single, begin + i, used);
      }
    });
  }

  void list_exact(Index position, Index seen, Used& used) const {
    used.keys.clear();
    const Index first = std::min(sinks_, seen);
    for (Index j = 0; j < first; ++j) used.keys.push_back(j);
    const Index end = std::clamp<Index>(position + window_ + 1, 0, seen);
    for (Index j = std::max(first, std::clamp<Index>(position - window_, 0, end)); j < end; ++j) used.keys.push_back(j);
    used.exact = std::ssize(used.keys);
  }

  // Appends the other keys that collide with query i in at least two tables, ascending. `collisions` is left at 0.
  void collect(const Tables& tables, const std::vector<std::uint16_t>& of_queries, Index queries, Index i,
               Index position, Index seen, std::vector<std::uint8_t>& collisions, Used& used) const {
    const auto for_members = [&](const auto& visit) {
      for (Index t = 0; t < tables_; ++t)
        for (const auto key : tables.with_pattern(t, of_queries[static_cast<size_t>(t * queries + i)])) {
          if (key >= seen) break;
          visit(key);
        }
    };
    for_members([&](std::int32_t key) {
      auto& count = collisions[static_cast<size_t>(key)];
      if (count < 2 && ++count == 2 && !is_exact(position, key)) used.keys.push_back(key);
    });
    for_members([&](std::int32_t key) { collisions[static_cast<size_t>(key)] = 0; });
    std::sort(used.keys.begin() + used.exact, used.keys.end());
  }

  void set_probabilities(Context& context, const Matrix<double>& keys, const Eigen::VectorXd& lengths,
                         const In<double>& query, Used& used) const {
    const Index drawn = std::ssize(used.keys) - used.exact;
    used.probability.clear();
    if (drawn == 0) return;
    Matrix<double> K(drawn, keys.cols()), products(1, drawn);
    const auto key = [&](Index t) { return used.keys[static_cast<size_t>(used.exact + t)]; };
    for (Index t = 0; t < drawn; ++t) K.row(t) = keys.row(key(t));
    multiply_transposed<double>(context, query, K, products);
    const double length = query.norm();
    for (Index t = 0; t < drawn; ++t)
      used.probability.push_back(probability(angle(products(0, t), length, lengths[key(t)])));
  }

  // Writes the numerator (1 x dv). All numbers are 0 if the row uses no key.
  Sum add_up(Context& context, const Head<T>& head, Used& used, Out<T> numerator) const {
    const Index count = std::ssize(used.keys);
    if (count == 0) {
      numerator.setZero();
      return {};
    }
    used.K.resize(count, head.K.cols());
    used.V.resize(count, head.V.cols());
    used.weights.resize(1, count);
    for (Index t = 0; t < count; ++t) {
      used.K.row(t) = head.K.row(used.keys[static_cast<size_t>(t)]);
      used.V.row(t) = head.V.row(used.keys[static_cast<size_t>(t)]);
    }
    multiply_transposed<T>(context, row_block(head.Q, used.row, 1), used.K, used.weights);
    for (Index t = used.exact; t < count; ++t) {
      // An angle that rounds to pi never collides but by rounding: weight 0.
      const double w = used.probability[static_cast<size_t>(t - used.exact)];
      used.weights(0, t) =
          w > 0 ? used.weights(0, t) - static_cast<T>(std::log(w)) : -std::numeric_limits<T>::infinity();
    }
    const T largest = used.weights.maxCoeff();
    exponentiate_rows<T>(context, used.weights, std::span(&largest, 1));
    multiply<T>(context, used.weights, used.V, numerator);
    return {used.weights.sum(), largest};
  }

  Index bits_, tables_, sinks_, window_;
  Matrix<double> planes_;  // tables bits x d
};

// The mean number of keys that a row uses beyond the exact ones, for directions that are alike: every angle pi/2.
double drawn_keys(const Params& params, double rest) {
  const double p = std::exp2(-static_cast<double>(params.integer("bits")));
  const double others = static_cast<double>(params.integer("tables") - 1);
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
                        "v_j, w_ij = P(two collisions), e_ij = exp(q_i.k_j)",
             .reference = "Chen et al. 2024, arXiv:2410.16179",
             .cost = "O(n bits tables d) time for hashes, O(n tables 2^-bits) a row for collisions, O(d + dv) for each "
                     "key used; O(n (d + tables)) memory",
             .family = "sampling",
             .departure = "the window has both sides without a causal mask; under one, keys are centred by the mean of "
                          "those before them. The authors' code adds 1e-4 to w and takes arccos without a clamp",
             .aliases = {"magic-pig"}},
    .parameters =
        {Parameter::integer("bits", 8, "signs of a hash", 1, 16),
         Parameter::integer("tables", 75, "hashes; a key is drawn if it collides in two", 2, 4096).as_budget(),
         Parameter::integer("sinks", 4, "first keys, which are exact: at least one, so that no row is empty", 1),
         Parameter::integer("window", 64, "half width w: keys with |i - j| <= w are exact", 0)},
    .claims =
        [](const Params&, const Shape&) {
          return Claims{
              .row_stochastic = true, .non_negative = true, .causal_exact = true, .exact_when = "window=1000000000"};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          const double nk = static_cast<double>(shape.nk), tables = static_cast<double>(params.integer("tables"));
          const double channels = static_cast<double>(shape.d + shape.dv), exact = exact_keys(params, nk);
          const double used = exact + drawn_keys(params, nk - exact);
          return nk * (8 * static_cast<double>(shape.d) + 6 * tables) +
                 4 * tables * std::exp2(static_cast<double>(params.integer("bits"))) +
                 used * (channels * bytes_of(shape.precision) + 8 * static_cast<double>(shape.d));
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
}  // namespace attnbench
