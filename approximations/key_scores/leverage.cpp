// Leverages of the keys in a ridge regression. Chari and Van Durme 2025, arXiv:2507.08143.
#include "harness/core/key_score.hpp"
#include "harness/linalg/factorisations.hpp"
#include "harness/linalg/products.hpp"

namespace attnbench::leverage_score {
namespace {

constexpr double ridge = 0.01;  // of keys that are not scaled by d^-1/4

const bool registered = add(KeyScoreEntry{
    .text = {.name = "leverage",
             .summary = "leverage of the key",
             .formula = "s_j = x_j (X^T X + 0.01 I)^-1 x_j^T, x_j the unscaled key less the mean of keys",
             .reference = "Chari and Van Durme 2025, arXiv:2507.08143",
             .cost = "O(n d^2)",
             .departure = "exact, where the authors estimate it from a sketch of the channels"},
    .score =
        [](const Params&, const Head<double>& head, Mask, Context& context, const Matrix<double>&) {
          const Index d = head.K.cols();
          Matrix<double> X = head.K;
          const Eigen::RowVectorXd mean = X.colwise().mean();
          X.rowwise() -= mean;
          Matrix<double> G = ridge / std::sqrt(static_cast<double>(d)) * Matrix<double>::Identity(d, d);
          Matrix<double> products(X.rows(), d);
          transposed_multiply_add<double>(context, X, X, G);
          multiply<double>(context, X, inverse(G), products);
          std::vector<double> scores;
          for (Index j = 0; j < X.rows(); ++j) scores.push_back(X.row(j).dot(products.row(j)));
          return scores;
        },
    .work =
        [](const Params&, const Shape& shape) {
          const auto d = static_cast<double>(shape.d);
          return Work{.flops = 4 * static_cast<double>(shape.nk) * d * d};
        },
    .memory =
        [](const Params&, const Shape& shape) {
          return 2.0 * sizeof(double) * static_cast<double>(shape.nk) * static_cast<double>(shape.d);
        },
});

}  // namespace
}  // namespace attnbench::leverage_score
