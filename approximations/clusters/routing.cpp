// Routing attention: centroids choose the queries and the keys that see each other. Roy et al., arXiv:2003.05997,
// section 4 and Algorithm 1.
//   q~, k~: rows of q and k less their mean, over their standard deviation (layer norm without its affine part)
//   centroid mu_c (unit) takes the w queries of largest q~.mu_c and the w keys of largest k~.mu_c (ties: the first)
//   each cluster computes softmax(q k^T) V of its tokens; a query in several clusters gets the mean of its outputs, a
//   query in no cluster gets 0                                                                      methods.md F
// The softmax uses q and k without layer norm, so that one cluster of all tokens is exact attention. w = 0 means n over
// the number of clusters, rounded up (queries and keys each by their own number). Rows of A sum to 1 or to 0: of
// Gaussian tokens 19 % are outside all of 4 clusters, 31 % outside all of 32; (1 - 1/c)^c if routes were independent.
// Centroids are learnt by spherical k-means on queries and keys of the calibration head; in training they are moving
// averages, mu_c <- 0.999 mu_c + 0.001 (the mean of the tokens nearest to it).
// Causal: the earlier tokens that a centroid takes depend on later ones, which compete for its w places.
// O(n c d + c w^2 (d + dv)) time, O(n (c + dv)) memory.
#include <algorithm>
#include <cmath>

#include "approximations/clusters/clusters.hpp"
#include "approximations/softmax/tiled_softmax.hpp"
#include "harness/linalg/per_row.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::routing_method {
namespace {

void make_unit(Matrix<double>& X) {
  for (Index i = 0; i < X.rows(); ++i)
    if (const double norm = X.row(i).norm(); norm > 0) X.row(i) /= norm;
}

// Lloyd's sweeps on the sphere: each sweep rescales the means to length 1.
Matrix<double> spherical_kmeans(const In<double>& X, Index clusters, Index sweeps, Generator& generator) {
  Context context;
  Matrix<double> centroids = kmeans(context, X, clusters, {.most = 0}, generator).centres;
  make_unit(centroids);
  for (Index sweep = 0; sweep < sweeps; ++sweep) {
    const auto nearest = nearest_codes<double>(context, X, centroids);
    Matrix<double> sums = Matrix<double>::Zero(centroids.rows(), centroids.cols());
    for (Index i = 0; i < X.rows(); ++i) sums.row(nearest[static_cast<size_t>(i)]) += X.row(i);
    make_unit(sums);
    for (Index c = 0; c < sums.rows(); ++c)
      if (!sums.row(c).isZero(0)) centroids.row(c) = sums.row(c);
  }
  return centroids;
}

// c x d, with fewer than `clusters` rows if the calibration head has fewer tokens.
Matrix<double> learn_centroids(const Draw& draw) {
  const Index clusters = draw.params.integer("clusters");
  if (draw.state && draw.state->contains("centroids"))
    return *draw.injected("centroids", std::clamp<Index>(draw.state->at("centroids").rows(), 1, clusters),
                          draw.shape.d);
  if (!draw.calibration) throw Misuse("routing: centroids are learnt from a calibration head, but none was given");
  const auto& head = *draw.calibration;
  Matrix<double> tokens(head.Q.rows() + head.K.rows(), draw.shape.d);
  tokens << layer_norm<double>(head.Q), layer_norm<double>(head.K);
  make_unit(tokens);
  auto generator = draw.streams.stream("codebook", "routing", clusters, draw.shape.d, draw.head, draw.replicate);
  return spherical_kmeans(tokens, clusters, draw.params.integer("sweeps"), generator);
}

template <class T>
class Routing final : public Approximation<T>, public Rows<T>, public Pattern<T> {
 public:
  explicit Routing(const Draw& draw) : top_(draw.params.integer("top")), centroids_(learn_centroids(draw)) {}

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const auto queries = chosen(head.Q, context), keys = chosen(visible_keys(head, mask), context);
    std::vector<Matrix<T>> found(queries.size());
    context.for_blocks(std::ssize(found), 1, [&](Context& single, Index c, Index) {
      const auto& of_cluster = queries[static_cast<size_t>(c)];
      auto& outputs = found[static_cast<size_t>(c)];
      outputs.resize(std::ssize(of_cluster), head.V.cols());
      const auto& seen = keys[static_cast<size_t>(c)];
      const HeadData<T> cluster{gather<T>(head.Q, of_cluster), gather<T>(head.K, seen), gather<T>(head.V, seen)};
      tiled_softmax<T>(cluster.view(), {}, {}, single, outputs);
    });
    PerRow<Index> clusters_of(out.rows());
    for (const auto& cluster : queries)
      for (const Index i : cluster) ++clusters_of[i];
    out.setZero();
    for (size_t c = 0; c < found.size(); ++c)
      for (size_t a = 0; a < queries[c].size(); ++a) {
        const Index i = queries[c][a];
        out.row(i) += found[c].row(static_cast<Index>(a)) / static_cast<T>(clusters_of[i]);
      }
  }

  const Rows<T>* rows() const override { return this; }
  const Pattern<T>* pattern() const override { return this; }
  Tensors state() const override { return {{"centroids", centroids_}}; }

  void keys_of_rows(const Head<T>& head, Mask mask, Index first, Context& context,
                    std::span<std::vector<Index>> rows_keys) const override {
    const auto queries = chosen(head.Q, context), keys = chosen(visible_keys(head, mask), context);
    for (size_t a = 0; a < rows_keys.size(); ++a) {
      auto& all = rows_keys[a];
      all.clear();
      for (size_t c = 0; c < queries.size(); ++c)
        if (holds(queries[c], first + static_cast<Index>(a))) all.insert(all.end(), keys[c].begin(), keys[c].end());
      std::sort(all.begin(), all.end());
      all.erase(std::unique(all.begin(), all.end()), all.end());
    }
  }

  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    const auto queries = chosen(head.Q, context), keys = chosen(visible_keys(head, mask), context);
    A.setZero();
    Matrix<T> row(1, A.cols());
    for (Index a = 0; a < A.rows(); ++a) {
      Index clusters = 0;
      for (size_t c = 0; c < queries.size(); ++c) {
        if (!holds(queries[c], first + a)) continue;
        row.setZero();
        softmax_over<T>(context, row_block(head.Q, first + a, 1), head.K, keys[c], row);
        A.row(a) += row.row(0);
        ++clusters;
      }
      if (clusters > 1) A.row(a) /= static_cast<T>(clusters);
    }
  }

 private:
  static In<T> visible_keys(const Head<T>& head, Mask mask) {
    return row_block(head.K, 0, mask.visible(0, head.K.rows()));
  }
  static bool holds(const std::vector<Index>& tokens, Index i) {
    return std::binary_search(tokens.begin(), tokens.end(), i);
  }

  std::vector<std::vector<Index>> chosen(const In<T>& X, Context& context) const {
    return routes<T>(context, X, centroids_, top_);
  }

  Index top_;
  Matrix<double> centroids_;  // c x d
};

// The number of tokens that a centroid takes out of n.
double taken(const Params& params, Index n) {
  const Index top = params.integer("top"), clusters = params.integer("clusters");
  return static_cast<double>(std::min(n, top > 0 ? top : (n + clusters - 1) / clusters));
}

const bool registered = add(method<Routing>({
    .text = {.name = "routing",
             .summary = "softmax within clusters: each centroid takes its nearest queries and keys",
             .formula = "A_i = mean over the clusters c that took i of softmax(q_i k^T) over the keys that c took",
             .reference = "Roy et al. 2020, Routing Transformer, arXiv:2003.05997, section 4, Algorithm 1",
             .cost = "O(n clusters d + clusters top^2 (d + dv)) time, O(n (clusters + dv)) memory",
             .family = "clusters",
             .departure = "Algorithm 1 normalises rows of q and k (layer norm) for the softmax as well; here only to "
                          "choose clusters, so that one cluster of all tokens is exact attention",
             .aliases = {"routing-transformer"}},
    .parameters = {Parameter::integer("clusters", 8, "centroids; at most the calibration queries and keys", 1, 1 << 20),
                   Parameter::integer("top", 0,
                                      "queries, and keys, that a centroid takes; 0: their number over the clusters", 0)
                       .as_budget(),
                   Parameter::integer("sweeps", 10, "sweeps of spherical k-means on the calibration head", 0, 10000)},
    .claims =
        [](const Params&, const Shape& shape) {
          return Claims{
              .non_negative = true,
              // Layer norm leaves one direction at d = 1 and two at d = 2: tokens tie, and their order decides.
              .permutation_equivariant = shape.d > 2,
              .no_form = shape.mask.causal ? "which earlier tokens a centroid takes depends on later ones" : "",
              .exact_when = "clusters=1,top=1000000000"};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          const double c = static_cast<double>(params.integer("clusters")), d = static_cast<double>(shape.d);
          const double dv = static_cast<double>(shape.dv), bytes = bytes_of(shape.precision);
          const double w_q = taken(params, shape.nq), w_k = taken(params, shape.nk);
          return 8 * c * (static_cast<double>(std::max(shape.nq, shape.nk)) + w_q + w_k) +
                 bytes * (c * w_q * dv + w_q * d + w_k * (d + dv));
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const double c = static_cast<double>(params.integer("clusters"));
          const double pairs = c * taken(params, shape.nq) * taken(params, shape.nk);
          return Work{.flops = 2 * c * static_cast<double>((shape.nq + shape.nk) * shape.d) +
                               2 * pairs * static_cast<double>(shape.d + shape.dv),
                      .exps = pairs};
        },
    .fitted = [](const Params&) { return true; },
    .caveats =
        [](const Params& params, const Shape& shape) {
          const double c = static_cast<double>(params.integer("clusters"));
          const double missed = std::pow(1 - taken(params, shape.nq) / static_cast<double>(shape.nq), c);
          std::vector<std::string> caveats;
          if (missed > 0)
            caveats.push_back("queries that no centroid takes get 0: " + std::to_string(std::lround(100 * missed)) +
                              " % of them if routes were independent");
          return caveats;
        },
}));

}  // namespace
}  // namespace attnbench::routing_method
