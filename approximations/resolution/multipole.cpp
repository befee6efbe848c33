// Multipole attention: keys near the query one by one, clusters of other keys as one key each. Hooper et al. 2025,
// arXiv:2506.13059.
//   k-means of the keys; c and w the means of the keys and of the values of a cluster of n_c keys
//   row i reads the clusters of the largest q_i.c, in this order, as long as they have at most `exact` keys together
//   out_i = (sum over their keys of exp(q_i.k_j) v_j + sum over other clusters of n_c exp(q_i.c) w_c) / (sum over their
//   keys of exp(q_i.k_j) + sum over other clusters of n_c exp(q_i.c))                                   methods.md T
// By Jensen's inequality n_c exp(q.c) is never above the weight that exp(q.k) gives the keys of the cluster. Exact if
// all keys are read one by one, or if keys are equal on the clusters. Of equal products the first cluster comes first.
// Each call clusters its own unpadded keys (k-means++, then Lloyd's sweeps); means are those of the last assignment.
// The random numbers of the seeding are the state "uniforms". Clusters and products that choose are in double for both
// scalar types. No causal form: clusters hold later keys.
// O(n clusters (d sweeps + d + dv) + n exact (d + dv)) time, O(n d + clusters (d + dv)) memory.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "approximations/clusters/clusters.hpp"
#include "harness/core/bounds.hpp"
#include "harness/linalg/gathered.hpp"
#include "harness/linalg/rows.hpp"
#include "harness/random/uniform_numbers.hpp"

namespace attnbench::multipole_method {
namespace {

constexpr Index block_rows = 64;

// Clusters that have keys.
template <class T>
struct Clusters {
  std::vector<std::vector<Index>> keys;  // ascending
  Matrix<double> centres;                // c x d
  Matrix<T> values;                      // c x dv
};

// The keys that a row reads one by one, then the clusters that it reads as one key each, with the weights of both.
template <class T>
struct Read {
  std::vector<Index> keys, clusters;
  Matrix<T> weights;  // 1 x (keys + clusters), summing to 1
};

template <class T>
class Multipole final : public Approximation<T>, public Rows<T>, public CoarseWeights<T> {
 public:
  explicit Multipole(const Draw& draw) : exact_(draw.params.integer("exact")), sweeps_(draw.params.integer("sweeps")) {
    const Index count = std::min(draw.params.integer("clusters"), draw.shape.nk);
    if (const auto* given = draw.injected("uniforms", 1, count)) {
      uniforms_ = *given;
      return;
    }
    Generator generator = draw.streams.stream("seeding", "keys", draw.head, draw.replicate);
    uniforms_ = uniform_numbers(generator, 1, count);
  }

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const Index keys = mask.visible(0, head.K.rows());
    if (keys == 0) return void(out.setZero());
    const auto clusters = clusters_of(head, keys, context);
    for_rows(head, clusters, 0, out.rows(), context, [&](Context& single, Index i, const Read<T>& read) {
      const Index exact = std::ssize(read.keys), others = std::ssize(read.clusters);
      Out<T> row = row_block(out, i, 1);
      row.setZero();
      add_gathered<T>(single, In<T>(read.weights.data(), 1, exact, exact), head.V, read.keys, row);
      add_gathered<T>(single, In<T>(read.weights.data() + exact, 1, others, others), clusters.values, read.clusters,
                      row);
    });
  }

  const Rows<T>* rows() const override { return this; }
  Tensors state() const override { return {{"uniforms", uniforms_}}; }

  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    A.setZero();
    const Index keys = mask.visible(0, head.K.rows());
    if (keys == 0) return;
    const auto clusters = clusters_of(head, keys, context);
    for_rows(head, clusters, first, A.rows(), context, [&](Context&, Index i, const Read<T>& read) {
      const Index exact = std::ssize(read.keys);
      for (Index t = 0; t < exact; ++t) A(i, read.keys[static_cast<size_t>(t)]) = read.weights(0, t);
      for (Index t = exact; t < read.weights.cols(); ++t) {
        const auto& members = clusters.keys[static_cast<size_t>(read.clusters[static_cast<size_t>(t - exact)])];
        for (const Index key : members) A(i, key) = read.weights(0, t) / static_cast<T>(members.size());
      }
    });
  }

  std::vector<CoarseWeight> coarse_weights(const Head<T>& head, Mask mask, Context& context) const override {
    const Index keys = mask.visible(0, head.K.rows());
    if (keys == 0) return {};
    const auto clusters = clusters_of(head, keys, context);
    std::vector<std::vector<CoarseWeight>> of_rows(static_cast<size_t>(head.Q.rows()));
    for_rows(head, clusters, 0, head.Q.rows(), context, [&](Context&, Index i, const Read<T>& read) {
      const Eigen::RowVectorXd query = head.Q.row(i).template cast<double>();
      for (const Index c : read.clusters) {
        const auto& members = clusters.keys[static_cast<size_t>(c)];
        of_rows[static_cast<size_t>(i)].push_back(
            {i, 1, members, query.dot(clusters.centres.row(c)) + std::log(static_cast<double>(members.size()))});
      }
    });
    std::vector<CoarseWeight> all;
    for (auto& of_row : of_rows) std::ranges::move(of_row, std::back_inserter(all));
    return all;
  }

 private:
  Clusters<T> clusters_of(const Head<T>& head, Index keys, Context& context) const {
    const Matrix<double> K = row_block(head.K, 0, keys).template cast<double>();
    const auto count = static_cast<size_t>(std::min<Index>(uniforms_.size(), keys));
    const Groups groups = group_queries(context, K, {uniforms_.data(), count}, sweeps_);
    Clusters<T> clusters;
    clusters.keys.resize(count);
    for (Index j = 0; j < keys; ++j)
      clusters.keys[static_cast<size_t>(groups.nearest[static_cast<size_t>(j)])].push_back(j);
    std::erase_if(clusters.keys, [](const auto& members) { return members.empty(); });
    clusters.centres = Matrix<double>::Zero(std::ssize(clusters.keys), K.cols());
    clusters.values.resize(clusters.centres.rows(), head.V.cols());
    for (Index c = 0; c < clusters.centres.rows(); ++c) {
      const auto& members = clusters.keys[static_cast<size_t>(c)];
      Eigen::RowVectorXd value = Eigen::RowVectorXd::Zero(head.V.cols());
      for (const Index j : members) {
        clusters.centres.row(c) += K.row(j);
        value += head.V.row(j).template cast<double>();
      }
      clusters.centres.row(c) /= static_cast<double>(members.size());
      clusters.values.row(c) = (value / static_cast<double>(members.size())).template cast<T>();
    }
    return clusters;
  }

  // Calls body(context, i, what row first + i reads) for i in [0, total).
  template <class Body>
  void for_rows(const Head<T>& head, const Clusters<T>& clusters, Index first, Index total, Context& context,
                const Body& body) const {
    context.for_blocks(total, block_rows, [&](Context& single, Index begin, Index count) {
      const Matrix<double> queries = row_block(head.Q, first + begin, count).template cast<double>();
      Matrix<double> products(count, clusters.centres.rows());
      multiply_transposed<double>(single, queries, clusters.centres, products);
      Read<T> read;
      for (Index i = 0; i < count; ++i) {
        choose(clusters, {products.row(i).data(), static_cast<size_t>(products.cols())}, read);
        weigh(single, row_block(head.Q, first + begin + i, 1), head.K, clusters, products.row(i), read);
        body(single, begin + i, read);
      }
    });
  }

  void choose(const Clusters<T>& clusters, std::span<const double> products, Read<T>& read) const {
    read.clusters.resize(products.size());
    std::iota(read.clusters.begin(), read.clusters.end(), Index(0));
    std::sort(read.clusters.begin(), read.clusters.end(), [&](Index a, Index b) {
      const double of_a = products[static_cast<size_t>(a)], of_b = products[static_cast<size_t>(b)];
      return of_a > of_b || (of_a == of_b && a < b);
    });
    read.keys.clear();
    auto next = read.clusters.begin();
    for (; next != read.clusters.end(); ++next) {
      const auto& members = clusters.keys[static_cast<size_t>(*next)];
      if (std::ssize(read.keys) + std::ssize(members) > exact_) break;
      read.keys.insert(read.keys.end(), members.begin(), members.end());
    }
    read.clusters.erase(read.clusters.begin(), next);
  }

  template <class Products>
  static void weigh(Context& context, const In<T>& query, const In<T>& K, const Clusters<T>& clusters,
                    const Products& products, Read<T>& read) {
    const Index exact = std::ssize(read.keys), others = std::ssize(read.clusters);
    read.weights.resize(1, exact + others);
    if (exact > 0) multiply_gathered<T>(context, query, K, read.keys, Out<T>(read.weights.data(), 1, exact, exact));
    for (Index t = 0; t < others; ++t) {
      const Index c = read.clusters[static_cast<size_t>(t)];
      const double keys = static_cast<double>(clusters.keys[static_cast<size_t>(c)].size());
      read.weights(0, exact + t) = static_cast<T>(products[c] + std::log(keys));
    }
    softmax_within<T>(context, read.weights, 0, 0, read.weights.cols());
  }

  Index exact_, sweeps_;
  Matrix<double> uniforms_;  // 1 x clusters
};

// Of a row in the mean, if clusters are of one size: the last one that fits leaves half a cluster unread.
struct Sizes {
  double clusters, exact, others;
};
Sizes sizes(const Params& params, const Shape& shape) {
  const double n = static_cast<double>(shape.nk), budget = static_cast<double>(params.integer("exact"));
  const double clusters = std::min(static_cast<double>(params.integer("clusters")), n);
  const double exact = budget >= n ? n : std::max(0.0, budget - n / clusters / 2);
  return {clusters, exact, clusters * (1 - exact / n)};
}

const bool registered = add(method<Multipole>({
    .text = {.name = "multipole",
             .printed = "Multipole",
             .summary = "keys of the clusters nearest to the query one by one, every other cluster as one key",
             .formula = "out_i = (sum of exp(q_i.k_j) v_j over near keys + sum of n_c exp(q_i.c) w_c over other "
                        "clusters) / the same without values",
             .reference = "Hooper et al. 2025, arXiv:2506.13059",
             .cost = "O(n clusters (d sweeps + d + dv) + n exact (d + dv)) time, O(n d + clusters (d + dv)) memory",
             .family = "resolution",
             .departure = "every query chooses its own clusters, where the authors' kernel averages scores over heads "
                          "that share keys, and never reads the last cluster key by key"},
    .parameters = {Parameter::integer("clusters", 64, "clusters of keys; no more than there are keys", 1, 1e9),
                   Parameter::integer("exact", 256, "keys that a row reads one by one, at most", 0).as_budget(),
                   Parameter::integer("sweeps", 5, "sweeps of Lloyd's algorithm at most", 0, 10000)},
    .claims =
        [](const Params&, const Shape& shape) {
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .no_form = shape.mask.causal ? "the clusters of the keys hold later ones" : "",
                        .exact_when = "exact=1000000000"};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          const auto [clusters, exact, others] = sizes(params, shape);
          const double n = static_cast<double>(shape.nk), d = static_cast<double>(shape.d);
          const double dv = static_cast<double>(shape.dv), bytes = bytes_of(shape.precision);
          return 8 * (n * (d + 4) + 3 * clusters * d) + clusters * dv * bytes + exact * (d + dv) * bytes;
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const auto [clusters, exact, others] = sizes(params, shape);
          const double nq = static_cast<double>(shape.nq), d = static_cast<double>(shape.d);
          const double dv = static_cast<double>(shape.dv);
          return Work{
              .flops = grouping_flops(shape.nk, shape.d, static_cast<Index>(clusters), params.integer("sweeps")) +
                       2 * nq * (clusters * d + exact * (d + dv) + others * dv),
              .exps = nq * (exact + others)};
        },
}));

}  // namespace
}  // namespace attnbench::multipole_method
