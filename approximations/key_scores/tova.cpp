// The softmax weight of the last query. Oren et al. 2024, arXiv:2401.06104.
#include "approximations/key_scores/last_queries.hpp"

namespace attnbench::tova_score {
namespace {

const bool registered = add(KeyScoreEntry{
    .text = {.name = "tova",
             .summary = "weight that the last query gives a key",
             .formula = "s_j = A_nj, A exact attention and n the last row",
             .reference = "Oren et al. 2024, arXiv:2401.06104",
             .cost = "O(n d)",
             .departure =
                 "one head, where the authors average weights over the heads of a layer; the cache of one prompt, "
                 "where they evict a key at each step"},
    .score = [](const Params&, const Head<double>& head, Mask mask, Context& context,
                const Matrix<double>&) { return weights_of_last_queries(head, mask, context, 1, 1); },
    .last_queries = [](const Params&) { return Index(1); },
    .work = [](const Params&, const Shape& shape) { return work_of_last_queries(shape, 1); },
    .memory = [](const Params&, const Shape& shape) { return memory_of_last_queries(shape, 1); },
});

}  // namespace
}  // namespace attnbench::tova_score
