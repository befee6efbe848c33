// Clustered attention: queries in groups, one row of attention for each group. Vyas et al., arXiv:2007.04825,
// section 3.
//   A^c = softmax(Q^c k^T),  Q^c the means of the groups;  A_i = A^c_c(i),  c(i) the group of query i     methods.md F
// rank <= groups. |A_i - softmax_i|_2 <= |k|_2 |q_i - Q^c_c(i)| / 2. As many clusters as queries: exact.
// Each call groups its own queries by k-means (k-means++, then Lloyd's sweeps); the paper runs k-means on the bits of a
// hash. The random numbers of the seeding are drawn once and kept as the state "uniforms".
// No causal form: a group's mean includes later queries. O(n clusters d sweeps + n clusters (d + dv)) time; memory for
// one copy of the queries in double.
#include "approximations/clusters/query_groups.hpp"
#include "approximations/softmax/tiled_softmax.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::clustered_method {
namespace {

template <class T>
class Clustered final : public Approximation<T>, public Rows<T>, public Factored<T> {
 public:
  explicit Clustered(const Draw& draw) : grouping_(draw) {}

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const auto groups = grouping_.groups<T>(head.Q, context);
    const Index keys = mask.visible(0, head.K.rows());
    Matrix<T> found(groups.centroids.rows(), head.V.cols());
    const Matrix<T> queries = groups.centroids.template cast<T>();
    tiled_softmax<T>({queries, row_block(head.K, 0, keys), row_block(head.V, 0, keys)}, {}, {}, context, found);
    for (Index i = 0; i < out.rows(); ++i) out.row(i) = found.row(groups.nearest[static_cast<size_t>(i)]);
  }

  const Rows<T>* rows() const override { return this; }
  const Factored<T>* factored() const override { return this; }
  Tensors state() const override { return grouping_.state(); }

  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    const auto groups = grouping_.groups<T>(head.Q, context);
    const Matrix<T> of_groups = rows_of_groups(groups, head, mask, context);
    for (Index a = 0; a < A.rows(); ++a) A.row(a) = of_groups.row(groups.nearest[static_cast<size_t>(first + a)]);
  }

  // L is the one-hot matrix of each query's group, R^T is A^c.
  void factors(const Head<T>& head, Mask mask, Context& context, Matrix<T>& L, Matrix<T>& R) const override {
    if (mask.causal) throw Skip("clustered: factors of a causal matrix");
    const auto groups = grouping_.groups<T>(head.Q, context);
    R = rows_of_groups(groups, head, mask, context).transpose();
    L = Matrix<T>::Zero(head.Q.rows(), R.cols());
    for (Index i = 0; i < L.rows(); ++i) L(i, groups.nearest[static_cast<size_t>(i)]) = 1;
  }

 private:
  static Matrix<T> rows_of_groups(const Groups& groups, const Head<T>& head, Mask mask, Context& context) {
    Matrix<T> weights(groups.centroids.rows(), head.K.rows());
    multiply_transposed<T>(context, groups.centroids.template cast<T>().eval(), head.K, weights);
    for (Index c = 0; c < weights.rows(); ++c)
      softmax_within<T>(context, weights, c, 0, mask.visible(0, weights.cols()));
    return weights;
  }

  QueryGrouping grouping_;
};

const bool registered = add(method<Clustered>({
    .text = {.name = "clustered",
             .printed = "Clustered",
             .summary = "queries in groups by k-means, one row of softmax for each group",
             .formula = "A_i = softmax(Q^c k^T) in the row of i's group, Q^c the groups' means",
             .reference = "Vyas et al. 2020, arXiv:2007.04825, section 3.1, eq. 3 to 6",
             .cost = "O(n clusters (d sweeps + d + dv)) time, one copy of Q in double",
             .family = "clusters",
             .departure = "groups queries by k-means on the queries, the paper on the bits of a hash of them"},
    .parameters = QueryGrouping::parameters(),
    .claims =
        [](const Params& params, const Shape& shape) {
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .permutation_equivariant = true,
                        .no_form = shape.mask.causal ? "the mean of a group of queries holds later ones" : "",
                        .rank_at_most = params.integer("clusters"),
                        .exact_when = "clusters=1000000"};
        },
    .memory = [](const Params& params, const Shape& shape) { return QueryGrouping::memory(params, shape); },
    .cost =
        [](const Params& params, const Shape& shape) {
          const double pairs = QueryGrouping::clusters(params, shape) * static_cast<double>(shape.nk);
          return Work{
              .flops = QueryGrouping::flops(params, shape) + 2 * pairs * static_cast<double>(shape.d + shape.dv),
              .exps = pairs};
        },
}));

}  // namespace
}  // namespace attnbench::clustered_method
