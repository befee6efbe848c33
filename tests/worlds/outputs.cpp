// Worlds of recipes that compare the errors of outputs.
#include <cmath>
#include <numbers>

#include "tests/worlds/worlds.hpp"

namespace attnbench::worlds {
namespace {

using enum Ruling;

const std::string output_error = "relative_output_error";
bool trigonometric(const Asked& a) { return a.option("features") == "trig"; }
bool independent(const Asked& a) { return a.option("projection") == "iid"; }

const bool output_errors = add(
    {"output-error",
     of(output_error,
        [](const Asked& a) -> Answer {
          if (a.method("performer:m=256")) return 1;
          if (a.method("performer:m=16")) return 4;
          if (a.method("performer:m=256,features=trig")) return 2;
          if (a.method("performer:m=128,features=trig")) return 8;
          if (a.method("uniform")) return 5;
          return {};
        }),
     {{"On Gaussian inputs the attention output errs less with 256 positive features than with 16", holds, {0.25}},
      {"The attention output errs less with positive than with trigonometric features",
       holds,
       {0.5, 0.125, 0.5, 0.125, 0.5, 0.125, 0.5, 0.125, 0.5, 0.125, 0.5, 0.125, 0.5, 0.125, 0.5, 0.125, 0.5, 0.125}},
      {"On Gaussian inputs Performer's positive features with m = 256", holds, {0.2}}}});

// At the least and the middle number of vectors positive features err a tenth of what trigonometric ones do, and at the
// greatest four times as much: less in the geometric mean, (0.1 0.1 4)^(1/3) = 0.34, and more in the arithmetic one,
// 1.4. So do orthogonal and independent vectors near the origin, (0.1 4)^(1/2) = 0.63.
const bool performer_fig4 =
    add({"performer-fig4",
         [](const Asked& a) -> Answer {
           if (a.metric == "relative_mse_theory") return independent(a) ? 2 : 1.99;
           if (a.metric != "output_mse") return {};
           if (a.method("uniform")) return 100;
           const bool near = a.option("scale") == "0.35";
           if (near) return independent(a) ? 1 : a.option("m") == "16" ? 0.1 : 4;
           if (independent(a)) return 7;
           return trigonometric(a) ? 10 : a.option("m") == "192" ? 40 : 1;
         },
         {{"On Gaussian inputs of d = 16 the attention output errs less", holds, {std::cbrt(0.04)}},
          {"Random features err less than the mean of V", holds},
          {"At logits as large as those of Gaussian q and k", holds, {0.005}}}}) &&
    add({"performer-fig4",
         of("output_mse",
            [](const Asked& a) -> Answer {
              if (a.method("uniform")) return 2;
              return independent(a) ? 1 : a.option("m") == "16" ? 0.1 : 4;
            }),
         {{"Random features err less than the mean of V", depends},
          {"On Gaussian inputs of small scale, 0.25 and 0.35", holds, {std::sqrt(0.4)}}}});

// Errors fall as the square of the number of features: half the error takes 2^(-1/2) times as many.
const bool features_saved =
    add({"features-saved",
         of("output_mse",
            [](const Asked& a) -> Answer {
              if (a.method("uniform")) return {};
              const double m = a.number("m");
              return (trigonometric(a) ? 4 : 2) * (independent(a) ? 2 : 1) / (m * m);
            }),
         {{"For the same error of the output Performer needs fewer features", holds, {std::numbers::sqrt2 / 2}},
          {"For the same error of the output on normal inputs, fewer positive", holds, {std::numbers::sqrt2 / 2}}}});

// On head 0 a local window errs least, on the others a strided pattern; on the texts that judge, the window on head 0
// errs three times as much as on those that it is chosen on.
const bool error_at_equal_flops =
    add({"error-at-equal-flops",
         of(output_error,
            [](const Asked& a) -> Answer {
              const bool first = a.option("head") == "0", judging = a.replicate % 2 == 1;
              if (a.name() == "local") return first ? (judging ? 3 : 1) : 4;
              if (a.name() == "strided") return 2;
              if (a.name() == "top-k") return 0.5;
              if (a.name() == "uniform") return 4;
              return 8;
            }),
         {{"On each judged head of this project's byte-level model", holds},
          {"How much more the best of five fixed patterns errs", measured},
          {"By what factor a sparse pattern chosen for each head", measured, {7.0 / 6}}}}) &&
    add({"error-at-equal-flops",
         of(output_error,
            [](const Asked& a) -> Answer {
              if (a.name() == "local") return 2;
              if (a.name() == "top-k") return 0.5;
              return a.name() == "uniform" ? 1 : 8;
            }),
         {{"On each judged head of this project's byte-level model", refuted},
          {"How much more the best of five fixed patterns errs", measured, {4}}}});

const bool linformer_keys =
    add({"linformer-keys",
         [](const Asked& a) -> Answer {
           if (a.metric == "fraction_below") return a.name() == "linformer" ? 0 : 0.5;
           if (a.metric != output_error) return {};
           if (a.name() == "principal-keys") return 6;
           if (a.name() == "uniform") return 12;
           return a.option("projection") == "mean-pool" ? 3 : a.option("projection") == "convolution" ? 1 : 1.5;
         },
         {{"Linformer gives every key a weight", holds, {0}},
          {"By what factor Linformer with mean pooling of keys and values errs more than with random projections",
           measured,
           {2}},
          {"By what factor Linformer with mean pooling of keys and values errs more than with a strided",
           measured,
           {3}},
          {"By what factor Linformer with mean pooling of keys and values errs more than with the principal",
           measured,
           {0.5}},
          {"By what factor Linformer with mean pooling of keys and values errs more than the mean of V",
           measured,
           {0.25}}}}) &&
    add({"linformer-keys",
         of("fraction_below", [](const Asked&) { return 0.01; }),
         {{"Linformer gives every key a weight", refuted, {0.01}}}});

const bool nystrom_iterations =
    add({"nystrom-iterations",
         of(output_error,
            [](const Asked& a) -> Answer {
              if (a.name() == "uniform") return {};
              if (a.option("inverse") == "exact") return a.number("tolerance") == 0 ? 4 : 16;
              return a.option("iterations") == "6" ? 1 : a.option("iterations") == "20" ? 2 : 8;
            }),
         {{"Nystroemformer's output errs less with six iterations", holds, {0.5}},
          {"How large Nystroemformer's error with six iterations", measured, {0.25}}}});

const bool performer_is_soft_vq =
    add({"performer-is-soft-vq",
         of(output_error,
            [](const Asked& a) -> Answer {
              if (a.name() == "uniform") return 4;
              if (a.name() == "soft-vq") return a.option("sigma") == "0.25" ? 0.5 : 2;
              if (a.name() == "vq") return a.option("codebook") == "random" ? 2 : 1;
              if (a.name() == "performer-vq") return a.option("form") == "softmax-over-codes" ? 1 : 2;
              return a.option("projection") == "orthogonal-fixed-norm" ? 2 : 3;
            }),
         {{"With random vectors omega of norm sqrt(d), Performer errs as much", holds, {1}},
          {"Attention whose key features are a softmax over random codes errs less than Performer", holds, {0.5}},
          {"Attention whose key features are a softmax over random codes errs less than the mean", holds, {0.25}},
          {"Attention with vector-quantised keys errs less with codes learnt", holds, {0.5}},
          {"With 128 codes, soft vector quantisation", holds}}}) &&
    add({"performer-is-soft-vq",
         of(output_error,
            [](const Asked& a) -> Answer {
              if (a.name() == "soft-vq") return 2;
              return a.name() == "performer-vq" ? 1.01 : 1;
            }),
         {{"With random vectors omega of norm sqrt(d), Performer errs as much", refuted, {1.01}},
          {"With 128 codes, soft vector quantisation", refuted, {2}}}});

// Of ten candidates one, trigonometric features of transformed inputs, errs less than the mean of V, but on MiniLM's
// heads only with small logits.
const bool random_features_on_real_heads =
    add({"random-features-on-real-heads",
         of(output_error,
            [](const Asked& a) -> Answer {
              if (a.name() == "uniform") return 2;
              if (a.option("model") == "minilm" && a.cell.problem.logit_scale > 0.1) return 8;
              return trigonometric(a) && a.option("transform") == "full" ? 1 : 8;
            }),
         {{"On each of 2 heads of this project's byte-level model, some random-feature", holds, {0.5}},
          {"On each of 2 heads of MiniLM, some random-feature", depends},
          {"On each of 2 heads of Whisper's encoder, some random-feature", holds, {0.5}},
          {"On each of 2 heads of Whisper's decoder, some random-feature", holds, {0.5}},
          {"By what factor the best random-feature estimator errs more or less than the mean of V, on heads of this "
           "project's byte-level model, MiniLM and Whisper with their own logits",
           measured,
           {0.5, 0.5, 4, 4, 0.5, 0.5, 0.5, 0.5}},
          {"By what factor the best random-feature estimator errs more or less than the mean of V, on heads of this "
           "project's byte-level model, MiniLM and Whisper with logits times 0.25",
           measured,
           {0.5, 0.5, 4, 4, 0.5, 0.5, 0.5, 0.5}},
          {"By what factor the best random-feature estimator errs more or less than the mean of V, on heads of this "
           "project's byte-level model, MiniLM and Whisper with logits times 0.03",
           measured,
           {0.5}}}});

// The learnt map errs by 1; random features by 2, apart from MiniLM, where they err by 0.5; the others by 4.
const bool what_a_learnt_map_buys =
    add({"what-a-learnt-map-buys",
         of(output_error,
            [](const Asked& a) -> Answer {
              if (a.option("features") == "hedgehog") return 1;
              if (a.name() == "performer") return a.option("model") == "minilm" ? 0.5 : 2;
              return 4;
            }),
         {{"A feature map that learnt to imitate softmax attention errs less than as many random", depends},
          {"A feature map that learnt to imitate softmax attention errs less than the map", holds, {0.25}},
          {"By what factor a feature map that learnt", measured, {0.25}}}});

const bool reformer_decoding = add({"reformer-decoding",
                                    [](const Asked& a) -> Answer {
                                      if (a.metric == "change_by_keys") return a.name() == "reformer" ? 0 : 1;
                                      if (a.metric != output_error) return {};
                                      return a.name() == "uniform" ? 1 : a.option("rounds") == "8" ? 2 : 0.1;
                                    },
                                    {{"Reformer's output does not depend on the keys", holds, {0}},
                                     {"When keys are independent of queries, Reformer errs", holds, {0.5}}}}) &&
                               add({"reformer-decoding",
                                    of("change_by_keys", [](const Asked&) { return 1e-9; }),
                                    {{"Reformer's output does not depend on the keys", refuted, {1e-9}}}});

const bool vq_against_performer = add(
    {"vq-against-performer",
     of(output_error, [](const Asked& a) -> Answer { return a.name() == "vq"          ? 1
                                                            : a.name() == "performer" ? 2
                                                                                      : 4; }),
     {{"At a quarter of softmax's FLOPs, attention with keys quantised by a codebook that was learnt beforehand "
       "errs less than Performer's positive features, where",
       holds,
       {0.5}},
      {"At a quarter of softmax's FLOPs, attention with keys quantised by a codebook that was learnt beforehand "
       "errs less than Performer's positive features on each",
       holds,
       {0.5}},
      {"At a quarter of softmax's FLOPs, attention with vector-quantised keys", holds, {0.25}}}});

const bool wider_keys = add({"wider-keys",
                             [](const Asked& a) -> Answer {
                               if (a.metric == "distance") return a.input("sphere") ? 1e-10 : 0.3;
                               if (a.metric != output_error || a.name() == "uniform") return {};
                               return a.option("features") == "exp" ? 1 : 2;
                             },
                             {{"Where all keys have one norm, linear attention with exponentials", holds, {1e-10}},
                              {"How far linear attention with exponentials of W q and W k", measured, {0.3}},
                              {"Of 1 + elu, ReLU, ReLU^2 and exp of raw q and k, exp", holds, {0.5}},
                              {"Of 1 + elu, ReLU, ReLU^2 and exp of q and k times d^-1/4, exp", holds, {0.5}}}}) &&
                        add({"wider-keys",
                             of("distance", [](const Asked&) { return 1e-8; }),
                             {{"Where all keys have one norm, linear attention with exponentials", refuted, {1e-8}}}});

// The greatest error of an entry stays, and that of the output doubles: with ln n / ln m = 9/8 and 5/3 more features
// asked for.
const bool length_independence =
    add({"length-independence",
         [](const Asked& a) -> Answer {
           if (a.metric == "greatest_error") return 1;
           if (a.metric == output_error) return std::sqrt(a.n());
           return {};
         },
         {{"With queries and keys on a sphere, the number of trigonometric features", holds, {8.0 / 9}},
          {"With queries and keys on a sphere, the number of positive features", holds, {8.0 / 9}},
          {"With queries and keys on a sphere, the number of positive or trigonometric", refuted, {16 * 0.6}}}});

const std::string linformer_growth = "By what factor the relative error of Linformer's output with 256";
const bool linformer_fig1 =
    add({"linformer-fig1",
         [](const Asked& a) -> Answer {
           if (a.metric == output_error) return a.n();
           if (a.metric != "cumulative_at") return {};
           return a.option("weights") == "initial" ? 0.9 : a.option("layer") == "0" ? 0.45 : 0.75;
         },
         {{"How large a share of the sum of the 256 singular values", measured},
          {"In this project's byte-level model of 4 layers the spectrum", holds, {0.6}},
          {"Training makes the spectra of attention", holds, {0.5, 0.75 / 0.9, 0.75 / 0.9, 0.75 / 0.9}},
          {linformer_growth, measured, {4}}}}) &&
    add({"linformer-fig1",
         of("cumulative_at", [](const Asked&) { return 0.6; }),
         {{"How large a share of the sum of the 256 singular values", measured, {0.6}}}});

// By ALiBi's slope: a window errs `window` of it, and features 0.25 without a penalty and `features` with one.
Numbers penalised(std::function<double(double)> window, double features) {
  return [window = std::move(window), features](const Asked& a) -> Answer {
    if (a.metric != "relative_output_error") return {};
    const double slope = a.number("slope");
    return a.name() == "local" ? window(slope) : slope == 0 ? 0.25 : features;
  };
}
const std::string of_window = "With ALiBi's penalty of slope 1/16 softmax over a window",
                  of_features = "With ALiBi's penalty of slope 1/16 features",
                  against_performer = "With ALiBi's penalty softmax over a window";
const bool what_alibi_changes =
    add({"what-alibi-changes",
         penalised([](double slope) { return slope == 0     ? 2
                                             : slope < 0.05 ? 4
                                                            : 0.5; }, 1),
         {{of_window, holds, {0.25}}, {of_features, holds, {4}}, {against_performer, depends, {4, 4, 4, 4, 0.5}}}}) &&
    add({"what-alibi-changes",
         penalised([](double slope) { return slope == 0 ? 2 : 8; }, 0.125),
         {{of_window, refuted, {4}}, {of_features, refuted, {0.5}}, {against_performer, refuted, {64}}}});

// Decays and exact softmax have the penalty to the last bit but two, and features keep half of it.
const bool decay_is_alibi = add({"decay-is-alibi",
                                 [](const Asked& a) -> Answer {
                                   if (a.metric == "largest_deviation") return 1e-12;
                                   if (a.metric == "penalty") return a.number("slope") / 2;
                                   return {};
                                 },
                                 {{"A decay of exp(-slope) a token", holds},
                                  {"How much of ALiBi's penalty features keep", measured, {0.5}}}}) &&
                            add({"decay-is-alibi",
                                 [](const Asked& a) -> Answer {  // one draw of one decay is off by a hundred-thousandth
                                   if (a.metric == "largest_deviation")
                                     return a.name() == "retnet" && a.replicate == 1 ? 1e-5 : 0;
                                   if (a.metric == "penalty") return a.number("slope");
                                   return {};
                                 },
                                 {{"A decay of exp(-slope) a token", refuted, {1e-5}},
                                  {"How much of ALiBi's penalty features keep", measured, {1}}}});

}  // namespace
}  // namespace attnbench::worlds
