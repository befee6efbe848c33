// The mean softmax weight of the last `rows` queries, averaged over `pool` neighbouring keys. Li et al. 2024,
// arXiv:2404.14469. As in the authors' code, neighbours beyond the ends count as 0.
#include "approximations/key_scores/last_queries.hpp"

namespace attnbench::snapkv_score {
namespace {

const bool registered = add(KeyScoreEntry{
    .text = {.name = "snapkv",
             .summary = "weight that the last queries give a key and its neighbours",
             .formula = "s_j = sum over the last rows queries i and |l - j| <= pool / 2 of A_il, A exact attention",
             .reference = "Li et al. 2024, arXiv:2404.14469",
             .cost = "O(rows n d)"},
    .parameters = {Parameter::integer("rows", 64, "last queries whose weights are the score", 1),
                   Parameter::integer("pool", 5, "neighbouring keys whose weights are averaged, an odd number", 1)},
    .score =
        [](const Params& params, const Head<double>& head, Mask mask, Context& context, const Matrix<double>&) {
          return weights_of_last_queries(head, mask, context, params.integer("rows"), params.integer("pool"));
        },
    .last_queries = [](const Params& params) { return params.integer("rows"); },
    .work = [](const Params& params,
               const Shape& shape) { return work_of_last_queries(shape, params.integer("rows")); },
    .memory = [](const Params& params,
                 const Shape& shape) { return memory_of_last_queries(shape, params.integer("rows")); },
    .check =
        [](const Params& params) {
          if (params.integer("pool") % 2 == 0)
            throw Misuse("evict: pool=" + std::to_string(params.integer("pool")) +
                         " is even, so that it has no middle; give an odd number, for example evict:pool=5");
        },
});

}  // namespace
}  // namespace attnbench::snapkv_score
