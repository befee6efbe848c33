// FNet: the Fourier transform in place of attention. Lee-Thorp et al., arXiv:2105.03824, eq. 3.
//   out = Re(F_n V F_dv) = C_n V C_dv - S_n V S_dv,  C_jk = cos(2 pi jk / n), S_jk = sin(2 pi jk / n)   methods.md G
// F is unnormalised. A sum of two Kronecker products, so no n x n matrix A has out = A V. It is the transform of the
// even part of V, (V_ij + V_{-i,-j}) / 2 with indices mod n and dv: the odd part is annihilated. The map is symmetric,
// out twice is n dv times the even part (not V reversed: that is the complex transform), and its rank is (n dv + f) / 2
// with f = (2 for even n, else 1) (2 for even dv, else 1).
// One token moves all others: d out_ic / d V_jc = cos(2 pi (ij / n + c^2 / dv)).
// Q and K are not read. With padding the n unpadded tokens are transformed, and rows beyond them are 0.
#include <cmath>
#include <numbers>
#include <optional>

#include "approximations/mixers/fourier.hpp"
#include "harness/core/approximation.hpp"

namespace attnbench::fnet_method {
namespace {

template <class T>
class FNet final : public Approximation<T>, public TokenMixing<T> {
 public:
  explicit FNet(const Draw& draw) {
    if (const Index tokens = draw.shape.mask.visible(0, draw.shape.nk)) transform_.emplace(tokens, draw.shape.dv);
  }

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const Index tokens = mask.visible(0, head.V.rows()), dv = head.V.cols();
    out.bottomRows(out.rows() - tokens).setZero();
    if (tokens == 0) return;
    const bool planned = transform_ && transform_->rows() == tokens && transform_->columns() == dv;
    const auto transform = [&](const Fourier2d<T>& fourier) {
      fourier.real_part(context, row_block(head.V, 0, tokens), row_block(out, 0, tokens));
    };
    if (planned)
      transform(*transform_);
    else
      transform(Fourier2d<T>(tokens, dv));
  }

  const TokenMixing<T>* mixing() const override { return this; }

  void token_jacobian(const Head<T>& head, Mask mask, Index column, Context&, Out<T> M) const override {
    const Index tokens = mask.visible(0, head.V.rows()), dv = head.V.cols();
    M.setZero();
    for (Index i = 0; i < tokens; ++i)
      for (Index j = 0; j < tokens; ++j) {
        const double turns = static_cast<double>(i * j % tokens) / static_cast<double>(tokens) +
                             static_cast<double>(column * column % dv) / static_cast<double>(dv);
        M(i, j) = static_cast<T>(std::cos(2 * std::numbers::pi * turns));
      }
  }

 private:
  std::optional<Fourier2d<T>> transform_;  // planned for the drawn shape
};

std::string no_form(const Shape& shape) {
  if (shape.mask.causal) return "every output is a sum over all tokens, later ones included";
  if (shape.nq != shape.nk || shape.mask.offset != 0) return "it has one output for each token, at that token's place";
  return "";
}

const bool registered = add(method<FNet>({
    .text = {.name = "fnet",
             .printed = "FNet",
             .summary = "the real part of the Fourier transform of V over tokens and channels",
             .formula = "out = Re(F_n V F_dv)",
             .reference = "Lee-Thorp et al. 2021, arXiv:2105.03824, eq. 3",
             .cost = "O(n dv log(n dv)) time, O(n dv) memory beyond input and output",
             .family = "mixers"},
    .parameters = {},
    .claims =
        [](const Params&, const Shape& shape) {
          return Claims{.no_form = no_form(shape),
                        .no_attention_matrix = "it mixes channels as well as tokens: a sum of two Kronecker products"};
        },
    .memory =
        [](const Params&, const Shape& shape) {
          return static_cast<double>(shape.nk * (shape.dv + 2)) * bytes_of(shape.precision);
        },
    .cost = [](const Params&, const Shape& shape) { return Work{.flops = flops_of_fourier(shape.nk, shape.dv)}; },
}));

}  // namespace
}  // namespace attnbench::fnet_method
