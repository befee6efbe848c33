// Keys of small norm get most weight. Devoto et al. 2024, arXiv:2406.11430.
#include "harness/core/key_score.hpp"

namespace attnbench::knorm_score {
namespace {

const bool registered = add(KeyScoreEntry{
    .text = {.name = "knorm",
             .summary = "small norm of the key",
             .formula = "s_j = -|k_j|",
             .reference = "Devoto et al. 2024, arXiv:2406.11430",
             .cost = "O(n d)"},
    .score =
        [](const Params&, const Head<double>& head, Mask, Context&, const Matrix<double>&) {
          std::vector<double> scores;
          for (Index j = 0; j < head.K.rows(); ++j) scores.push_back(-head.K.row(j).norm());
          return scores;
        },
});

}  // namespace
}  // namespace attnbench::knorm_score
