// TurboQuant: keys rotated at random, each coordinate quantised, and the rest stored by QJL. Zandieh et al. 2025,
// arXiv:2504.19874, Algorithms 1 and 2.
//   k' = |k| / sqrt(d) Pi^T L(sqrt(d) Pi k / |k|),  Pi a random rotation, L the Lloyd-Max quantiser of N(0, 1) with
//   bits - 1 bits, entry by entry
//   k~ = k' + sqrt(pi/2) |k - k'| / d sum_i w_i sign(w_i.(k - k')),  w_i ~ N(0, I_d), i = 1 ... d         methods.md R
//   E q.k~ = q.k,   E |k - k'|^2 near E_b |k|^2, E_b = 1, .3634, .1175, .03455, .009501, .002505 for 0 to 5 bits
// residual=false: k~ = k' with all bits in L (Algorithm 1), whose logits have the mean (1 - D_b) q.k; with scale=eden
//   k~ = |k|^2 / (k.k') k', whose logits have no bias (Vargaftik et al. 2021, EDEN, arXiv:2108.08842)
// A coordinate of a uniform direction times sqrt(d) has a law near N(0, 1), for which L is the best. bits=1 is QJL with
// m = d. Norms |k| and |k - k'| are kept as they are. Codes are decided in double for both scalar types; sign(0) = 1.
// O(n d^2) time for the estimates, then that of softmax.
#include <fmt/format.h>

#include <cmath>

#include "approximations/quantised/estimated_keys.hpp"
#include "approximations/quantised/lloyd_max.hpp"
#include "approximations/quantised/sign_estimates.hpp"

namespace attnbench::turboquant_method {
namespace {

template <class T>
class TurboQuant final : public EstimatedKeys<T> {
 public:
  explicit TurboQuant(const Draw& draw)
      : residual_(draw.params.flag("residual")),
        eden_(draw.params.text("scale") == "eden"),
        quantiser_(lloyd_max(draw.params.integer("bits") - (residual_ ? 1 : 0))) {
    const Index d = draw.shape.d;
    const auto* rotation = draw.injected("rotation", d, d);
    Generator generator = draw.streams.stream("turboquant", draw.head, draw.replicate);
    rotation_ = rotation ? *rotation : haar_orthogonal(generator, d);
    if (!residual_) return;
    const auto* w = draw.injected("w", d, d);
    W_ = w ? *w : standard_normal(generator, d, d);
  }

  Tensors state() const override {
    Tensors all{{"rotation", rotation_}};
    if (residual_) all.emplace("w", W_);
    return all;
  }
  bool unbiased() const override { return residual_ || eden_; }

 protected:
  void estimate(const In<double>& K, Context& context, Out<double> estimates) const override {
    const Index d = K.cols();
    const double root = std::sqrt(static_cast<double>(d));
    Matrix<double> codes(K.rows(), d);
    multiply_transposed<double>(context, K, rotation_, codes);
    for (Index j = 0; j < K.rows(); ++j) {
      const double norm = K.row(j).norm();
      double along = 0;  // k.k'
      for (Index l = 0; l < d; ++l) {
        const double exact = codes(j, l);
        codes(j, l) = norm > 0 ? norm / root * quantiser_.nearest(exact * root / norm) : 0;
        along += exact * codes(j, l);
      }
      if (eden_ && along > 0) codes.row(j) *= norm * norm / along;
    }
    multiply<double>(context, codes, rotation_, estimates);
    if (!residual_) return;
    const Matrix<double> rest = K - estimates;
    add_sign_estimates(context, rest, W_, estimates);
  }

 private:
  bool residual_, eden_;
  const LloydMax& quantiser_;
  Matrix<double> rotation_, W_;  // d x d each; W_ only with residual_
};

void check(const Params& params) {
  if (params.flag("residual")) {
    if (params.text("scale") != "none")
      throw Misuse(params.spec() +
                   ": with the residual stage logits have no bias that a scale could remove; give "
                   "residual=false,scale=eden, or leave out scale");
    return;
  }
  if (params.integer("bits") > most_lloyd_max_bits)
    throw Misuse(fmt::format("{}: one stage has levels for at most {} bits; give bits={}", params.spec(),
                             most_lloyd_max_bits, most_lloyd_max_bits));
}

const bool registered = add(method<TurboQuant>({
    .text = {.name = "turboquant",
             .printed = "TurboQuant",
             .summary =
                 "softmax on keys that are rotated and quantised by coordinate, the rest stored by QJL; emulated",
             .formula =
                 "out_i = softmax_j(q_i.k~_j) V, k~ = k' + QJL(k - k'), "
                 "k' = |k| / sqrt(d) Pi^T LloydMax(sqrt(d) Pi k / |k|); residual=false: k~ = k', with scale=eden "
                 "|k|^2 / (k.k') k'",
             .reference = "Zandieh et al. 2025, arXiv:2504.19874, Algorithms 1 and 2; Vargaftik et al. 2021, EDEN, "
                          "arXiv:2108.08842",
             .cost = "O(n d^2 + n^2 (d + dv)) time, O(n d) memory beyond state, input and output; emulated",
             .family = "quantised",
             .departure = "codes are emulated: an estimate is a vector of d numbers. Levels are those of the normal "
                          "law, which the paper takes as the limit for large d. Values stay as they are",
             .aliases = {"turbo-quant"}},
    .parameters =
        {Parameter::integer("bits", 3, "bits of a coordinate: one for the sign of the rest, others for levels", 1,
                            most_lloyd_max_bits + 1),
         Parameter::flag("residual", true, "store the rest by QJL; false: one stage, with all bits in levels"),
         Parameter::choice("scale", "none",
                           "of one stage: none, as published, or eden: |k|^2 / (k.k') removes the bias",
                           {"none", "eden"})},
    .claims =
        [](const Params&, const Shape&) {
          return Claims{
              .row_stochastic = true, .non_negative = true, .permutation_equivariant = true, .causal_exact = true};
        },
    .memory =
        [](const Params&, const Shape& shape) {
          return static_cast<double>(shape.nk * shape.d) * bytes_of(shape.precision) +
                 8 * 5 * static_cast<double>(std::min<Index>(256, shape.nk) * shape.d);
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          Work work = softmax_cost(shape);
          const double products = params.flag("residual") ? 4 : 2;  // with the rotation and back, with W and back
          work.flops += 2 * products * static_cast<double>(shape.nk * shape.d * shape.d);
          return work;
        },
    .check = check,
    .caveats =
        [](const Params&, const Shape&) {
          return std::vector<std::string>{"emulated: its time and memory are those of softmax and more, at every bits"};
        },
}));

}  // namespace
}  // namespace attnbench::turboquant_method
