// The null of all scores.
#include "harness/core/key_score.hpp"
#include "harness/random/uniform_numbers.hpp"

namespace attnbench::random_score {
namespace {

const bool registered = add(KeyScoreEntry{
    .text = {.name = "random",
             .summary = "a random number for each key: the null of all scores",
             .formula = "s_j uniform on (0, 1)",
             .reference = "none: a score has to beat it",
             .cost = "O(n)"},
    .score =
        [](const Params&, const Head<double>& head, Mask, Context&, const Matrix<double>& drawn) {
          return std::vector<double>(drawn.data(), drawn.data() + head.K.rows());
        },
    .draw =
        [](const Draw& draw) {
          Generator generator = draw.streams.stream("evict", draw.head, draw.replicate);
          return uniform_numbers(generator, draw.shape.nk, 1);
        },
});

}  // namespace
}  // namespace attnbench::random_score
