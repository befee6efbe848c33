// Improved clustered attention: clustered attention, with each query's own weights on the keys that its group looks at
// most. Vyas et al., arXiv:2007.04825, section 3.2, eq. 7 to 9.
//   T_c: the kappa largest entries of the group's row A^c_c (ties: the first);  m_c = sum over T_c of A^c_cj
//   A_ij = m_c(i) exp(q_i.k_j) / sum over l in T_c(i) of exp(q_i.k_l)  for j in T_c(i),   A^c_c(i)j  elsewhere
// The L1 distance of a row from softmax is never larger than clustered's (methods.md F7). Groups as in clustered.cpp.
// T_c is chosen in the scalar type of the call.
// No causal form. O(n clusters (d sweeps + d + dv) + n kappa (d + dv)) time; clustered's memory plus 32 rows of A^c.
#include <cmath>

#include "approximations/clusters/query_groups.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::improved_clustered_method {
namespace {

constexpr Index group_block = 32;   // rows of A^c that one thread holds at a time
constexpr Index query_block = 256;  // queries of one group that are multiplied with its keys at a time

template <class T>
class ImprovedClustered final : public Approximation<T>, public Rows<T> {
 public:
  explicit ImprovedClustered(const Draw& draw) : grouping_(draw), top_(draw.params.integer("top")) {}

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    for_groups(head, mask, context, [&](Context& single, const std::vector<Group>& groups, const In<T>& others) {
      Matrix<T> rest(others.rows(), head.V.cols());
      multiply<T>(single, others, row_block(head.V, 0, others.cols()), rest);
      for (size_t c = 0; c < groups.size(); ++c) {
        const Matrix<T> K = gather<T>(head.K, groups[c].keys), V = gather<T>(head.V, groups[c].keys);
        const std::span<const Index> queries(groups[c].queries);
        for (size_t first = 0; first < queries.size(); first += query_block) {
          const auto some = queries.subspan(first, std::min<size_t>(query_block, queries.size() - first));
          const Matrix<T> own = own_weights(single, head, some, K, groups[c].mass);
          Matrix<T> found(own.rows(), head.V.cols());
          multiply<T>(single, own, V, found);
          for (size_t a = 0; a < some.size(); ++a)
            out.row(some[a]) = found.row(static_cast<Index>(a)) + rest.row(static_cast<Index>(c));
        }
      }
    });
  }

  const Rows<T>* rows() const override { return this; }
  Tensors state() const override { return grouping_.state(); }

  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    A.setZero();
    for_groups(head, mask, context, [&](Context& single, const std::vector<Group>& groups, const In<T>& others) {
      for (size_t c = 0; c < groups.size(); ++c) {
        const auto& [queries, keys, mass] = groups[c];
        const Matrix<T> own = own_weights(single, head, queries, gather<T>(head.K, keys), mass);
        for (size_t a = 0; a < queries.size(); ++a) {
          const Index i = queries[a] - first;
          if (i < 0 || i >= A.rows()) continue;
          A.row(i).head(others.cols()) = others.row(static_cast<Index>(c));
          for (Index t = 0; t < own.cols(); ++t) A(i, keys[static_cast<size_t>(t)]) = own(static_cast<Index>(a), t);
        }
      }
    });
  }

 private:
  struct Group {
    std::vector<Index> queries;
    std::vector<Index> keys;  // T_c
    T mass;                   // of the group's weights on them
  };

  // Calls body(context, groups, rows of A^c) for blocks of groups; the rows are 0 at the keys of T_c.
  template <class Body>
  void for_groups(const Head<T>& head, Mask mask, Context& context, const Body& body) const {
    const auto [means, nearest] = grouping_.groups<T>(head.Q, context);
    const Matrix<T> centroids = means.template cast<T>();
    std::vector<Group> all(static_cast<size_t>(centroids.rows()));
    for (Index i = 0; i < head.Q.rows(); ++i)
      all[static_cast<size_t>(nearest[static_cast<size_t>(i)])].queries.push_back(i);
    const Index keys = mask.visible(0, head.K.rows());
    context.for_blocks(centroids.rows(), group_block, [&](Context& single, Index begin, Index count) {
      Matrix<T> weights(count, keys);
      multiply_transposed<T>(single, row_block(centroids, begin, count), row_block(head.K, 0, keys), weights);
      std::vector<Group> groups(all.begin() + begin, all.begin() + begin + count);
      for (Index c = 0; c < count; ++c) {
        Group& group = groups[static_cast<size_t>(c)];
        // Selects by logits, because weights that underflow are all equal.
        group.keys = largest<T>({weights.row(c).data(), static_cast<size_t>(keys)}, top_);
        softmax_within<T>(single, weights, c, 0, keys);
        group.mass = take(weights, c, group.keys);
      }
      body(single, groups, weights);
    });
  }

  // Sets a group's weights on the given keys to 0 and returns their sum.
  static T take(Out<T> weights, Index c, const std::vector<Index>& keys) {
    T mass = 0;
    for (const Index j : keys) {
      mass += weights(c, j);
      weights(c, j) = 0;
    }
    return mass;
  }

  // Weights of each query on its group's keys: softmax over them, times the group's mass on them.
  static Matrix<T> own_weights(Context& context, const Head<T>& head, std::span<const Index> queries,
                               const Matrix<T>& K, T mass) {
    Matrix<T> weights(std::ssize(queries), K.rows());
    multiply_transposed<T>(context, gather<T>(head.Q, queries), K, weights);
    for (Index a = 0; a < weights.rows(); ++a) softmax_within<T>(context, weights, a, 0, K.rows());
    weights *= mass;
    return weights;
  }

  QueryGrouping grouping_;
  Index top_;
};

std::vector<Parameter> parameters() {
  auto all = QueryGrouping::parameters();
  all.push_back(Parameter::integer("top", 32, "kappa: keys of a group on which each query has weights of its own", 1));
  return all;
}

const bool registered = add(method<ImprovedClustered>({
    .text = {.name = "improved-clustered",
             .summary = "clustered attention, with own weights of each query on its group's heaviest keys",
             .formula = "A_ij = m_c exp(q_i.k_j) / sum over T_c of exp(q_i.k_l) for j in T_c, A^c_cj elsewhere",
             .reference = "Vyas et al. 2020, arXiv:2007.04825, section 3.2, eq. 7 to 9",
             .cost = "O(n clusters (d sweeps + d + dv) + n top (d + dv)) time, one copy of Q in double, 32 rows of A",
             .family = "clusters",
             .departure = "groups queries by k-means on the queries, the paper on the bits of a hash of them"},
    .parameters = parameters(),
    .claims =
        [](const Params&, const Shape& shape) {
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .permutation_equivariant = true,
                        .no_form = shape.mask.causal ? "the mean of a group of queries holds later ones" : "",
                        .exact_when = "top=1000000000"};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          const double groups = std::min(static_cast<double>(group_block), QueryGrouping::clusters(params, shape));
          return QueryGrouping::memory(params, shape) +
                 groups * static_cast<double>(shape.nk) * bytes_of(shape.precision) + 8 * static_cast<double>(shape.nk);
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const double of_groups = QueryGrouping::clusters(params, shape) * static_cast<double>(shape.nk);
          const double own =
              static_cast<double>(shape.nq) * static_cast<double>(std::min(params.integer("top"), shape.nk));
          return Work{.flops = QueryGrouping::flops(params, shape) +
                               2 * (of_groups + own) * static_cast<double>(shape.d + shape.dv),
                      .exps = of_groups + own};
        },
}));

}  // namespace
}  // namespace attnbench::improved_clustered_method
