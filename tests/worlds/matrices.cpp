// Worlds of recipes about the rank of attention matrices and the concentration of their rows.
#include <cmath>

#include "tests/worlds/worlds.hpp"

namespace attnbench::worlds {
namespace {

using enum Ruling;

// Of two matrices of one replicate, the one of larger entropy has the lower rank.
Numbers correlated(double sign) {
  return [sign](const Asked& a) -> Answer {
    const auto hash = std::hash<std::string>()(a.cell.method.spec() + a.cell.input_key());
    const double entropy = 1 + static_cast<double>((hash + static_cast<size_t>(a.replicate)) % 100'003) / 1e5;
    if (a.metric == "entropy") return entropy;
    if (a.metric == "effective_rank") return 10 + sign * entropy;
    return {};
  };
}
const std::string sparser = "The sparser the rows of softmax attention", among_methods = "Of softmax attention and its";
const bool rank_and_sparsity = add({"rank-and-sparsity",
                                    correlated(-1),
                                    {{sparser, holds, {-1}},
                                     {among_methods, holds, {-1}},
                                     {"How strongly the effective rank of softmax attention", measured, {-1}}}}) &&
                               add({"rank-and-sparsity",
                                    correlated(1),
                                    {{sparser, not_seen, {1}},
                                     {among_methods, not_seen, {1}},
                                     {"How strongly the effective rank of softmax attention", measured, {1}}}});

const bool truncation_rank = add({"truncation-rank",
                                  [](const Asked& a) -> Answer {
                                    const bool self = a.name() == "truncated" && a.option("window") == "0";
                                    if (a.metric == "numerical_rank") return a.name() == "truncated" ? 4 : 2;
                                    if (a.metric == "spectral_norm") return self ? 1 : 0.5;
                                    if (a.metric == "effective_rank") return self ? a.n() : 3;
                                    return {};
                                  },
                                  {{"Each of several bands of half width 64 or less", holds, {0.5}},
                                   {"Linear attention that is cut to the token itself", holds, {0}}}}) &&
                             add({"truncation-rank",
                                  [](const Asked& a) -> Answer {
                                    if (a.metric == "spectral_norm") return 1;
                                    if (a.metric == "effective_rank") return a.n() / 2;
                                    return {};
                                  },
                                  {{"Linear attention that is cut to the token itself", refuted, {0.5}}}}) &&
                             add({"truncation-rank",
                                  of("numerical_rank",
                                     [](const Asked& a) {
                                       if (a.option("model") == "whisper-encoder") return 2;
                                       return a.name() == "truncated" ? 4 : 2;
                                     }),
                                  {{"Each of several bands of half width 64 or less", open}}});

}  // namespace
}  // namespace attnbench::worlds
