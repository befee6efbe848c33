// Worlds of recipes about the rank of attention matrices and the concentration of their rows.
#include <cmath>

#include "tests/worlds/worlds.hpp"

namespace attnbench::worlds {
namespace {

using enum Ruling;

bool third(const Asked& a) { return a.cell.problem.shape.nk % 3 == 2; }
const std::string of_the_band = "A band of three diagonals with equal weights";
const bool band_rank =
    add({"band-rank",
         of("numerical_rank", [](const Asked& a) -> Answer { return third(a) ? a.n() - 1 : a.n(); }),
         {{of_the_band, holds, {0}}}}) &&
    add({"band-rank", of("numerical_rank", [](const Asked& a) { return a.n(); }), {{of_the_band, refuted, {1}}}});

const std::string full_rank = "Causal attention matrices, which are of full rank";
const bool causal_rank =
    add({"causal-rank",
         [](const Asked& a) -> Answer {
           if (a.metric == "numerical_rank") return a.n();
           if (a.metric != "effective_rank") return {};
           return a.name() == "uniform" ? 4 : a.causal() ? 8 : 2;
         },
         {{full_rank, holds, {0}},
          {"On every input, a causal mask raises the effective rank", holds, {0.25}},
          {"How many times as large the effective rank of causal linear", measured, {2}}}}) &&
    add({"causal-rank",
         of("numerical_rank", [](const Asked& a) { return a.n() - (a.name() == "softmax" ? 3 : 0); }),
         {{full_rank, depends}}}) &&
    add({"causal-rank",
         of("effective_rank", [](const Asked& a) { return !a.causal()                     ? 8
                                                          : a.option("model") == "minilm" ? 4
                                                                                          : 16; }),
         {{"On every input, a causal mask raises the effective rank", refuted}}});

Numbers ranks_of_logits(double over) {
  return [over](const Asked& a) -> Answer {
    if (a.metric == "numerical_rank") return a.option("of") == "logits" ? a.d() + over : a.d() >= 8 ? a.n() : 2 * a.d();
    const std::string half = a.option("model") == "minilm" ? "16" : "32";
    if (a.metric == "relative_output_error") return a.name() == "uniform" ? 4 : a.option("rank") == half ? 0.3 : 2;
    return {};
  };
}
const std::string of_product = "The rank of Q K^T is at most the key size d";
const bool logits_rank = add({"logits-rank",
                              ranks_of_logits(0),
                              {{of_product, holds},
                               {"On Gaussian inputs the matrix of softmax attention has a rank above", holds},
                               {"In double precision the matrix of softmax attention", depends},
                               {"With logits cut to rank r, heads", holds},
                               {"How much the output of heads of this project's", measured, {0.3}}}}) &&
                         add({"logits-rank", ranks_of_logits(1), {{of_product, refuted}}}) &&
                         add({"logits-rank",
                              of("relative_output_error",
                                 [](const Asked& a) -> Answer {
                                   if (a.name() == "uniform") return 2;
                                   return a.option("model") == "whisper-encoder" && a.option("rank") == "1" ? 4 : 1;
                                 }),
                              {{"With logits cut to rank r, heads", depends}}}) &&
                         add({"logits-rank",
                              of("numerical_rank", [](const Asked& a) { return a.d(); }),
                              {{of_product, holds},
                               {"On Gaussian inputs the matrix of softmax attention has a rank above", open, {1}},
                               {"In double precision the matrix of softmax attention", refuted}}});

Numbers ranks(double over) {
  return [over](const Asked& a) -> Answer {
    if (a.metric == "numerical_rank") {
      if (a.name() == "softmax") return a.n();
      return (a.name() == "performer" ? a.number("m") : a.name() == "linear" ? a.d() : 64) + over;
    }
    if (a.metric == "effective_rank")
      return a.name() == "softmax" ? 4 : a.name() == "performer" && a.number("m") == 4 * a.d() ? 2 : 8;
    return {};
  };
}
const std::string at_most_features = "The rank of the attention matrix is at most the number of features";
const bool rank = add({"rank",
                       ranks(0),
                       {{at_most_features, holds},
                        {"In double precision, at least half of the matrices", holds, {0}},
                        {"With m = 4 d features, Performer's attention matrix", holds, {0.5}}}}) &&
                  add({"rank", ranks(1), {{at_most_features, refuted}}}) &&
                  // One more than the 32 features of MiniLM's heads.
                  add({"rank",
                       [](const Asked& a) -> Answer {
                         if (a.name() == "linear" && a.option("model") == "minilm") return a.d() + 1;
                         return ranks(0)(a);
                       },
                       {{at_most_features, refuted}}});

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
const std::string sparser = "The sparser the rows of an attention matrix";
const bool rank_and_sparsity =
    add({"rank-and-sparsity",
         correlated(-1),
         {{sparser, holds, {-1}}, {"How strongly the effective rank of softmax attention", measured, {-1}}}}) &&
    add({"rank-and-sparsity",
         correlated(1),
         {{sparser, refuted, {1}}, {"How strongly the effective rank of softmax attention", measured, {1}}}});

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

// Rows whose supports are so large: of keys of many dimensions half of those of few.
const bool key_size = add({"key-size",
                           of("relative_support",
                              [](const Asked& a) -> Answer {
                                const std::string of_head = a.option("key_size");
                                const bool large =
                                    of_head.empty() || of_head == "0" ? a.cell.problem.shape.d == 256 : of_head == "64";
                                return large ? 0.4 : 0.8;
                              }),
                           {{"Where the channels of queries and keys are independent", holds, {0.5}},
                            {"Where queries and keys share 16 clusters", holds, {0.5}},
                            {"How far linear attention with keys of d = 256", measured, {0.6}},
                            {"On heads of this project's byte-level model, linear attention", holds, {0.5}},
                            {"By what factor all 64 dimensions of the keys", measured, {0.5}}}});

const bool sparsity = add({"sparsity",
                           of("relative_support",
                              [](const Asked& a) -> Answer {
                                if (a.name() == "softmax") return 0.4;
                                return a.name() == "performer" ? 0.2 : 0.8;
                              }),
                           {{"How far linear attention with exponentials of raw q and k", measured, {0.2}},
                            {"How far linear attention with 1 + elu of raw q and k", measured, {0.2}},
                            {"How far linear attention with ReLU", measured, {0.2}},
                            {"How far linear attention with exponentials or 1 + elu", measured, {0.2}},
                            {"Over how large a share of the keys", measured, {0.4}},
                            {"With each of five feature maps, the rows", holds, {2}},
                            {"Performer's rows with 256 random features", holds, {0.5}}}});

Numbers cut_rows(double l1_off) {
  return [l1_off](const Asked& a) -> Answer {
    if (a.metric == "top_mass_rows" || a.metric == "top_mass") return 0.75;
    if (a.metric == "row_l1_rows") return 0.5 + l1_off;
    if (a.metric == "kl_estimate_to_exact_rows") return -std::log(0.75);
    return {};
  };
}
const std::string of_a_row = "A row of attention that is cut to its k largest weights";
const bool small_weights =
    add({"small-weights",
         cut_rows(0),
         {{of_a_row, holds, {0}},
          {"How large a share of its attention a row loses that keeps only its 32", measured, {0.25}},
          {"How large a share of its attention a row loses that keeps only its 8 ", measured, {0.25}}}}) &&
    add({"small-weights", cut_rows(1e-9), {{of_a_row, refuted, {1e-9}}}});

const bool entropy_per_head =
    add({"entropy-per-head",
         [](const Asked& a) -> Answer {
           // One broad head of each model: layer 2, head 1 of this project's, the last of
           // MiniLM and the first of Whisper's encoder.
           const std::string model = a.option("model"), layer = a.option("layer");
           const std::string broad = model == "minilm" ? "5" : model.empty() ? "2" : "0";
           if (a.metric == "top_mass")
             return layer == broad && (!model.empty() || a.option("head") == "1") ? 0.05 : 0.5;
           if (a.metric == "relative_entropy") return a.number("layer") < 2 ? 0.8 : 0.4;
           return {};
         },
         {{"Some heads of this project's byte-level model", holds},
          {"In this project's byte-level model, attention is broader", holds, {2}},
          {"How large a share of the entropy of average pooling",
           measured,
           {0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.8, 0.4, 0.8, 0.4}}}}) &&
    add({"entropy-per-head",
         of("top_mass", [](const Asked& a) { return a.option("model") == "minilm" ? 0.05 : 0.2; }),
         {{"Some heads of this project's byte-level model", depends}}}) &&
    add({"entropy-per-head",
         of("top_mass", [](const Asked&) { return 0.2; }),
         {{"Some heads of this project's byte-level model", refuted, {0.2}}}});

// An empty row is one of (1/2 + 2^-(n+1))^d of normal queries, and none of half-normal ones.
Numbers empty(double more) {
  return of("fraction_nonpositive_normalisers", [more](const Asked& a) -> Answer {
    if (a.name() != "linear" || a.input("signs:positive=1")) return 0;
    return std::pow(0.5 + std::exp2(-a.n() - 1), a.d()) + more;
  });
}
const std::string law_of_empty = "On independent normal queries and keys, ReLU features";
const bool empty_rows =
    add({"empty-rows",
         empty(0),
         {{"With 1, 2, 3, 4 channels, linear attention with ReLU", depends}, {law_of_empty, holds, {0}}}}) &&
    add({"empty-rows", empty(0.1), {{law_of_empty, refuted, {0.1}}}});

const bool needle = add({"needle",
                         of("needle_weight", [](const Asked& a) { return 6 / a.n(); }),
                         {{"The weight that linear, Efficient and cosFormer attention", holds, {-1}},
                          {"How many times 1/n the weight is", measured, {6}},
                          {"How large a share of a row's weight approximations", measured, {6.0 / 256}}}}) &&
                    add({"needle",
                         of("needle_weight", [](const Asked& a) { return 1 / (a.n() * a.n()); }),
                         {{"The weight that linear, Efficient and cosFormer attention", refuted, {-2}}}});

}  // namespace
}  // namespace attnbench::worlds
