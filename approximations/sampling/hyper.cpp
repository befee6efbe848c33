// HyperAttention: exact softmax within hashed blocks, uniformly drawn keys for the rest. Han, Jayaram, Karbasi,
// Mirrokni, Woodruff and Zandieh 2023, arXiv:2310.05869, algorithms 1, 3 and 4.
//   o_i = (sum over i's block of e_ij v_j + (n/s) sum_t [J_t outside of it] e_iJ_t v_J_t) / the same sum without v,
//   e_ij = exp(q_i.k_j), J_1 ... J_s uniform over the n keys and the same for all queries    methods.md S
// Given the hash, numerator and denominator are unbiased. block >= n and s >= n are exact: then every key is added
// once. The blocks, their hash and the causal form are those of hashed_blocks.hpp. O(n (block + s) (d + dv)) time.
//
// mask_own=false: as the authors' CUDA path, which does not leave out drawn keys of the query's own block and so counts
// them twice; its CPU path does.
#include "approximations/sampling/hashed_blocks.hpp"

namespace attnbench::hyper_method {
namespace {

template <class T>
typename HashedBlocks<T>::Settings settings_of(const Params& params) {
  using Queries = typename HashedBlocks<T>::Queries;
  const std::string& queries = params.text("queries");
  return {.block = params.integer("block"),
          .samples = params.integer("s"),
          .queries = queries == "auto"     ? Queries::sorted_if_square
                     : queries == "sorted" ? Queries::sorted
                                           : Queries::hash,
          .mask_own = params.flag("mask_own")};
}

template <class T>
class Hyper final : public HashedBlockRows<T> {
 public:
  explicit Hyper(const Draw& draw)
      : HashedBlockRows<T>(draw, "hyper", settings_of<T>(draw.params)), samples_(draw.params.integer("s")) {}

  SamplingLaw law(const Head<T>& head, Mask mask, Index row) const override {
    return this->blocks().law(
        head, mask, row, [](const HashedProblem& problem, Index) { return 1 / static_cast<double>(problem.keys); });
  }

 protected:
  typename HashedBlocks<T>::DrawKeys draw_keys(const Head<T>&, Context&) const override {
    return [this](const HashedProblem& problem) {
      const auto n = static_cast<double>(problem.keys), s = static_cast<double>(samples_);
      DrawnKeys drawn;
      for (const double u : this->numbers(problem)) {
        drawn.keys.push_back(problem.begin + std::min(problem.keys - 1, static_cast<Index>(u * n)));
        drawn.log_weights.push_back(std::log(n / s));
      }
      return drawn;
    };
  }

 private:
  Index samples_;
};

const bool registered = add(method<Hyper>({
    .text = {.name = "hyper",
             .printed = "HyperAttention",
             .summary = "softmax within hashed blocks, and uniformly drawn keys for the rest",
             .formula = "o_i = (sum over i's block of e_ij v_j + (n/s) sum over drawn j outside of e_ij v_j) / the "
                        "same without v_j, e_ij = exp(q_i.k_j)",
             .reference = "Han et al. 2023, arXiv:2310.05869, algorithms 1, 3 and 4",
             .cost = "O(n (block + s) (d + dv)) time, causal O(n log(n / block) (block + s) (d + dv)); O(n + (block + "
                     "s) (d + dv)) memory",
             .family = "sampling",
             .departure = "blocks are sorted by the place of the pattern of signs in the Gray code; the authors' code "
                          "takes the Gray code of the pattern, so that neighbours may differ in several signs. Under "
                          "a causal mask a query takes its block by its own hash, and halves of at most `block` keys "
                          "are exact (there: 4096)",
             .aliases = {"hyperattention", "hyper-attention"}},
    .parameters = {Parameter::integer("block", 256, "keys of a block", 1),
                   Parameter::integer("s", 256, "keys drawn for all queries; from n on all keys, once", 1).as_budget(),
                   Parameter::integer("bits", 7, "signs of a hash", 1, 24),
                   Parameter::choice(
                       "queries", "auto",
                       "blocks of queries: equal parts of the sorted ones, or by each one's own hash; auto: sorted "
                       "for as many queries as keys without a causal mask",
                       {"auto", "sorted", "hash"}),
                   Parameter::flag("mask_own", true, "false: drawn keys of the query's own block count a second time")
                       .as_published()},
    .claims =
        [](const Params& params, const Shape&) {
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .causal_exact = params.text("queries") != "sorted",
                        .exact_when = "block=1000000000"};
        },
    .memory = hashed_memory,
    .cost = hashed_cost,
    .caveats =
        [](const Params& params, const Shape& shape) {
          std::vector<std::string> caveats;
          if (shape.mask.causal && params.text("queries") == "sorted")
            caveats.push_back("later queries move the blocks that earlier ones attend to: earlier rows depend on them");
          return caveats;
        },
}));

}  // namespace
}  // namespace attnbench::hyper_method
