// Keys that point away from the mean direction of keys. Park et al. 2025, arXiv:2504.15364.
#include "harness/core/key_score.hpp"

namespace attnbench::keydiff_score {
namespace {

Eigen::RowVectorXd unit(const In<double>& K, Index j) {
  Eigen::RowVectorXd x = K.row(j);
  if (const double length = x.norm(); length > 0) x /= length;
  return x;
}

const bool registered = add(KeyScoreEntry{
    .text = {.name = "keydiff",
             .summary = "distance of the key from the mean direction of keys",
             .formula = "s_j = -cos(k_j, mean of the unit keys)",
             .reference = "Park et al. 2025, arXiv:2504.15364",
             .cost = "O(n d)"},
    .score =
        [](const Params&, const Head<double>& head, Mask, Context&, const Matrix<double>&) {
          Eigen::RowVectorXd sum = Eigen::RowVectorXd::Zero(head.K.cols());
          for (Index j = 0; j < head.K.rows(); ++j) sum += unit(head.K, j);
          std::vector<double> scores;  // times the length of the sum, which all have in common
          for (Index j = 0; j < head.K.rows(); ++j) scores.push_back(-unit(head.K, j).dot(sum));
          return scores;
        },
});

}  // namespace
}  // namespace attnbench::keydiff_score
