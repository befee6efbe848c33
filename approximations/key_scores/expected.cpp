// The weight that a further query is expected to give a key, times the norm of its value, if queries are normal with
// the mean and the covariance of those seen: E exp(q.k) = exp(mu.k + k^T Sigma k / 2). Devoto, Jeblick and Jégou 2025,
// arXiv:2510.00636. The score is the logarithm, which orders keys alike and does not underflow.
#include <cmath>

#include "harness/core/key_score.hpp"
#include "harness/linalg/products.hpp"

namespace attnbench::expected_score {
namespace {

const bool registered = add(KeyScoreEntry{
    .text = {.name = "expected",
             .summary = "weight that a further query is expected to give a key, times the norm of its value",
             .formula =
                 "s_j = mu.k_j + k_j^T Sigma k_j / 2 + log |v_j|, mu and Sigma the mean and the covariance of queries",
             .reference = "Devoto et al. 2025, arXiv:2510.00636",
             .cost = "O(n d^2)",
             .departure =
                 "the mean and covariance are of all queries as they are; the authors leave out the first four "
                 "tokens, keep their keys (protect=4), and rotate queries to positions that follow"},
    .score =
        [](const Params&, const Head<double>& head, Mask, Context& context, const Matrix<double>&) {
          const Index d = head.K.cols(), keys = head.K.rows();
          Matrix<double> Q = head.Q;
          const Eigen::RowVectorXd mean = Q.colwise().mean();
          Q.rowwise() -= mean;
          Matrix<double> covariance = Matrix<double>::Zero(d, d), products(keys, d);
          transposed_multiply_add<double>(context, Q, Q, covariance);
          covariance /= static_cast<double>(Q.rows());
          multiply<double>(context, head.K, covariance, products);
          std::vector<double> scores;
          for (Index j = 0; j < keys; ++j)
            scores.push_back(mean.dot(head.K.row(j)) + products.row(j).dot(head.K.row(j)) / 2 +
                             std::log(head.V.row(j).norm()));
          return scores;
        },
    .reads_values = true,
    .work =
        [](const Params&, const Shape& shape) {
          const auto d = static_cast<double>(shape.d);
          return Work{.flops = 2 * static_cast<double>(shape.nq + shape.nk) * d * d};
        },
    .memory =
        [](const Params&, const Shape& shape) {
          return sizeof(double) * static_cast<double>(shape.nq + shape.nk) * static_cast<double>(shape.d);
        },
});

}  // namespace
}  // namespace attnbench::expected_score
