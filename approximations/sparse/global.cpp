// Global attention: all other tokens exchange information through a few global tokens. methods.md F; source 003.
//   kind=internal:  the first g tokens see all and are seen by all; any other row sees those g, and itself (self=true)
//                   or not (source 003);  nnz = 2 g n - g^2, + n - g with self;  rank <= 2 g without self
//   kind=external:  g learnt tokens precede the sequence. A row sees them and a window of real keys:
//                   out_i = ((1 - s_i) local_i + s_i sum_t softmax(q_i.k_t) v_t), s_i the weight of the learnt tokens
//                   k_t, v_t: among real keys its weights are proportional to local attention's. The outputs of the
//                   learnt tokens are dropped. Their keys and values are drawn (entries N(0, d^-1/2) and N(0, 1), as
//                   for real tokens) or injected. A row whose mask hides all keys is 0.
// Ainslie et al., arXiv:2004.08483, section 2 (ETC, external); Beltagy et al., arXiv:2004.05150, section 3.1
// (internal).
#include <algorithm>
#include <cmath>

#include "approximations/sparse/global_rows.hpp"
#include "approximations/sparse/window.hpp"
#include "harness/linalg/exp.hpp"
#include "harness/linalg/per_row.hpp"
#include "harness/linalg/products.hpp"

namespace attnbench::global_method {
namespace {

class InternalGlobal final : public SparsePattern {
 public:
  InternalGlobal(Index count, bool self) : global_(count), self_(self) {}

  std::vector<PatternPart> parts(Index nq, Mask mask) const override {
    return global_.parts(nq, mask, self_ ? tile_rows_for(global_.count()) : 64);
  }
  void keys(size_t part, Index position, Index visible, std::vector<IndexRun>& runs) const override {
    if (part == 0) return runs.push_back(run_between(0, visible));
    runs.push_back(run_between(0, std::min(global_.count(), visible)));
    if (self_ && position >= 0 && position < visible) runs.push_back({position, 1});
  }
  bool sees_itself() const override { return self_; }

 private:
  GlobalRows global_;
  bool self_;
};

// The g rows of the tensor `name`, injected or drawn.
template <class T>
Matrix<T> learnt(const Draw& draw, const char* name, Index columns, double scale) {
  const Index count = draw.params.integer("global");
  if (const auto* given = draw.injected(name, count, columns)) return given->cast<T>();
  auto generator = draw.streams.stream("pattern", "global", name, columns, draw.head, draw.replicate);
  return (scale * standard_normal(generator, count, columns)).template cast<T>();
}

template <class T>
class ExternalGlobal final : public Approximation<T>, public Pattern<T>, public TokenMixing<T> {
 public:
  explicit ExternalGlobal(const Draw& draw)
      : window_(0, draw.params.integer("window")),
        K_(learnt<T>(draw, "global_keys", draw.shape.d, std::pow(static_cast<double>(draw.shape.d), -0.25))),
        V_(learnt<T>(draw, "global_values", draw.shape.dv, 1)) {}

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    PerRow<T> log_normalisers(head.Q.rows());
    sparse_softmax<T>(window_, head, mask, context, out, log_normalisers);
    context.for_blocks(head.Q.rows(), 64, [&](Context& single, Index begin, Index count) {
      Matrix<T> W(count, K_.rows()), learnt_part(count, head.V.cols());
      const auto kept = share_tokens(head, mask, log_normalisers, begin, single, W);
      multiply<T>(single, W, V_, learnt_part);
      auto block = row_block(out, begin, count);
      for (Index i = 0; i < count; ++i) block.row(i) = kept[static_cast<size_t>(i)] * block.row(i) + learnt_part.row(i);
    });
  }

  Tensors state() const override {
    return {{"global_keys", K_.template cast<double>()}, {"global_values", V_.template cast<double>()}};
  }
  const Pattern<T>* pattern() const override { return this; }
  const TokenMixing<T>* mixing() const override { return this; }

  void keys_of_rows(const Head<T>& head, Mask mask, Index first, Context&,
                    std::span<std::vector<Index>> keys) const override {
    keys_of_pattern(window_, head.Q.rows(), head.K.rows(), mask, first, keys);
  }
  void token_jacobian(const Head<T>& head, Mask mask, Index, Context& context, Out<T> M) const override {
    PerRow<T> log_normalisers(head.Q.rows());
    Matrix<T> out(head.Q.rows(), head.V.cols()), W(head.Q.rows(), K_.rows());
    sparse_softmax<T>(window_, head, mask, context, out, log_normalisers);
    sparse_softmax_rows<T>(window_, head, mask, 0, context, M);
    const auto kept = share_tokens(head, mask, log_normalisers, 0, context, W);
    for (Index i = 0; i < M.rows(); ++i) M.row(i) *= kept[static_cast<size_t>(i)];
  }

 private:
  // Sets W to the weights of the learnt tokens in rows begin, begin + 1, ...; returns each row's total on real keys.
  std::vector<T> share_tokens(const Head<T>& head, Mask mask, const std::vector<T>& log_normalisers, Index begin,
                              Context& context, Out<T> W) const {
    multiply_transposed<T>(context, row_block(head.Q, begin, W.rows()), K_, W);
    PerRow<T> kept(W.rows(), 0);
    for (Index i = 0; i < W.rows(); ++i) {
      const T of_keys = log_normalisers[static_cast<size_t>(begin + i)];
      auto weights = W.row(i).array();
      if (mask.visible(begin + i, head.K.rows()) == 0) {
        weights.setZero();
        continue;
      }
      const T largest = std::max(of_keys, weights.maxCoeff());
      weights = exponential(weights - largest);
      const T real = std::exp(of_keys - largest), sum = real + weights.sum();
      weights /= sum;
      kept[i] = real / sum;
    }
    context.work.exps += static_cast<double>(W.size());
    return kept;
  }

  Window window_;
  Matrix<T> K_, V_;  // g x d, g x dv
};

bool external(const Params& params) { return params.text("kind") == "external"; }

MakePattern internal_pattern() {
  return [](const Draw& draw) {
    return std::make_shared<InternalGlobal>(draw.params.integer("global"), draw.params.flag("self"));
  };
}

Claims claims(const Params& params, const Shape& shape) {
  if (external(params))
    return {.causal_exact = true,
            .linear_in_V = false,
            .no_attention_matrix = "learnt tokens add values of their own: out = A V + B"};
  const bool self = params.flag("self");
  Claims claims{.row_stochastic = true, .non_negative = true, .causal_exact = true, .exact_when = "global=1000000000"};
  if (!self && !shape.mask.causal) claims.rank_at_most = 2 * params.integer("global");
  return claims;
}

template <class T>
MakeApproximation<T> of_kind(const MakeApproximation<T>& internal) {
  return [internal](const Draw& draw) -> std::unique_ptr<Approximation<T>> {
    if (external(draw.params)) return std::make_unique<ExternalGlobal<T>>(draw);
    return internal(draw);
  };
}

MethodEntry entry() {
  MethodEntry made = sparse_method(
      {
          .text = {.name = "global",
                   .printed = "Global tokens",
                   .summary = "softmax through a few tokens that see all and are seen by all, or through learnt ones",
                   .formula = "row i sees j < g (and i); all keys where i < g (internal). External: learnt tokens and "
                              "|i - j| <= w",
                   .reference = "Ainslie et al. 2020, arXiv:2004.08483; Beltagy et al. 2020, arXiv:2004.05150",
                   .cost = "O(n g (d + dv)) time, external O(n (g + w) (d + dv)); O(n) memory beyond input and output"},
          .parameters = {Parameter::integer("global", 16, "g: how many global tokens", 1).as_budget(),
                         Parameter::choice("kind", "internal", "the first tokens, or learnt ones before them",
                                           {"internal", "external"}),
                         Parameter::flag("self", true, "internal: whether any other token sees itself"),
                         Parameter::integer("window", 64,
                                            "external: half width of the window of real keys that a row sees", 0)},
          .claims = claims,
      },
      internal_pattern());
  made.f32 = of_kind<float>(made.f32);
  made.f64 = of_kind<double>(made.f64);
  made.cost = [internal = made.cost](const Params& params, const Shape& shape) {
    if (!external(params)) return internal(params, shape);
    const auto tokens = static_cast<double>(shape.nq * params.integer("global"));
    const double pairs = pairs_of(Window(0, params.integer("window")), shape) + tokens;
    return Work{.flops = 2 * pairs * static_cast<double>(shape.d + shape.dv), .exps = pairs};
  };
  return made;
}

const bool registered = add(entry());

}  // namespace
}  // namespace attnbench::global_method
