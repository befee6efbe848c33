// Generalised attention: any function f of random projections. Choromanski et al., arXiv:2009.14794, eq. 5, l = h = 1.
//   phi(x) = m^-1/2 f(W x),  rows of W marginally N(0, I_d)            E[phi(q).phi(k)] = E f(omega.q) f(omega.k)
// m features. The kernels are methods.md A7; t is the angle between q and k. Powers of ReLU have the arc-cosine kernels
// of Cho and Saul 2009:
//   E max(u,0)^p max(v,0)^p = |q|^p |k|^p J_p(t) / 2 pi,   J_0 = pi - t,   J_1 = sin t + (pi - t) cos t,
//   J_2 = 3 sin t cos t + (pi - t) (1 + 2 cos^2 t),
//   J_4 = 5 sin t cos t (11 + 10 cos^2 t) + (pi - t) (9 + 72 cos^2 t + 24 cos^4 t)
// The derivatives of step and sign are 0 almost everywhere, and so are their gradients.
// The log scale carries m^-1/2: the features of step and sign are then integers, and a row whose weights cancel has
// weight exactly 0 instead of a rounding error.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "approximations/linear/features/random_features.hpp"
#include "harness/linalg/products.hpp"
#include "harness/theory/summand.hpp"

namespace attnbench::generalised_map {
namespace {

constexpr double pi = std::numbers::pi;

// The known properties of one function.
struct Known {
  std::string name, summary, formula, reference, target;
  double exps = 0;            // transcendental functions (sines etc.) per feature
  bool non_negative = false;  // f >= 0
  SummandMoments moments;
  bool any_law = false;  // the moments hold for every ensemble, given that ensemble's own moments
};

// F::apply(u): a row u of W x becomes f(u). F::pull(u, d): it becomes f'(u) d.
template <class T, class F>
class GeneralisedFeatures final : public FeatureMap<T> {
 public:
  GeneralisedFeatures(const Draw& draw, double exps)
      : W_(draw_projection(draw, projection_vectors(draw.params)).cast<T>()), exps_(exps) {
    if (draw.params.has("epsilon"))
      addend_ = static_cast<T>(draw.params.real("epsilon") * std::sqrt(static_cast<double>(W_.rows())));
  }

  Index features() const override { return W_.rows(); }
  Form form() const override { return Form::values; }
  void map(Context& context, const In<T>& X, Side, Index, Out<T> block, std::span<T> log_scale) const override {
    multiply_transposed<T>(context, X, W_, block);
    for (Index i = 0; i < block.rows(); ++i) {
      auto u = block.row(i).array();
      F::apply(u);
    }
    if (addend_ != 0) block.array() += addend_;
    context.work.exps += exps_ * static_cast<double>(block.size());
    std::fill(log_scale.begin(), log_scale.end(), T(-0.5) * std::log(static_cast<T>(W_.rows())));
  }
  bool differentiable() const override { return true; }
  void pullback(Context& context, const In<T>& X, Side, Index, const In<T>&, const In<T>& d_block, std::span<const T>,
                Out<T> dX) const override {
    Matrix<T> memory(X.rows(), W_.rows());
    Out<T> U = memory;  // recomputed: squares and other even functions lose the sign of W x
    multiply_transposed<T>(context, X, W_, U);
    for (Index i = 0; i < U.rows(); ++i) {
      auto u = U.row(i).array();
      F::pull(u, d_block.row(i).array());
    }
    context.work.exps += exps_ * static_cast<double>(U.size());
    multiply<T>(context, U, W_, dX);
  }
  Tensors state() const override { return {{"projection", W_.template cast<double>()}}; }

 private:
  Matrix<T> W_;  // m x d
  double exps_;
  T addend_ = 0;
};

template <class F>
bool add_function(const Known& f, std::vector<Parameter> own = {}) {
  return add(FeatureMapEntry{
      .text = {.name = f.name,
               .summary = f.summary,
               .formula = "phi(x) = m^-1/2 " + f.formula + ", W m x d",
               .reference = f.reference,
               .cost = "O(n m d) time, m features",
               .family = "generalised"},
      .parameters = random_feature_parameters(std::move(own)),
      .f32 = [=](const Draw& draw) { return std::make_unique<GeneralisedFeatures<float, F>>(draw, f.exps); },
      .f64 = [=](const Draw& draw) { return std::make_unique<GeneralisedFeatures<double, F>>(draw, f.exps); },
      .features = [](const Params& params, Index) { return projection_vectors(params); },
      .token_work = [=](const Params& params, Index d) { return projection_work(params, d, f.exps); },
      .non_negative = f.non_negative,
      .may_vanish = f.name != "cos",  // of these functions f(0) = 0
      .theory = [=](const Params& params, Index, const EnsembleLaw& law,
                    const Head<double>*) -> std::optional<KernelTheory> {
        if (!law.gaussian && !f.any_law) return std::nullopt;
        return average_of_summands(f.target, projection_vectors(params), law, f.moments);
      }});
}

const std::string generalised = "Choromanski et al. 2020, arXiv:2009.14794, eq. 5",
                  arc_cosines = "Cho and Saul 2009, Kernel methods for deep learning, eq. 1";

SummandMoments of_normal_rows(double (*mean)(const Pair&), double (*second)(const Pair&)) {
  SummandMoments moments{.mean = [=](const Pair& p, const EnsembleLaw&) { return mean(p); }};
  if (second) moments.second = [=](const Pair& p, const EnsembleLaw&) { return second(p); };
  return moments;
}

struct Angle {
  double lengths, t, sine, cosine;  // |q| |k|
};

Angle angle(const Pair& p) {
  const double lengths = std::sqrt(p.q2 * p.k2), cosine = lengths > 0 ? std::clamp(p.qk / lengths, -1.0, 1.0) : 0;
  return {lengths, std::acos(cosine), std::sqrt((1 - cosine) * (1 + cosine)), cosine};
}

// E u^2 v^2 and E u^4 v^4.
double square_moment(const Pair& p) { return p.q2 * p.k2 + 2 * p.qk * p.qk; }
double fourth_moment(const Pair& p) {
  const double lengths2 = p.q2 * p.k2, qk2 = p.qk * p.qk;
  return 9 * lengths2 * lengths2 + 72 * lengths2 * qk2 + 24 * qk2 * qk2;
}

template <class Row>
using Scalar = typename std::decay_t<Row>::Scalar;

struct Identity {
  static void apply(auto&) {}
  static void pull(auto& u, const auto& d) { u = d; }
};
const bool identity_added =
    add_function<Identity>({.name = "identity",
                            .summary = "random projections as they are, unbiased for q.k",
                            .formula = "W x",
                            .reference = generalised,
                            .target = "q.k",
                            .moments = of_normal_rows([](const Pair& p) { return p.qk; }, square_moment)});

// E max(u,0)^p max(v,0)^p.
template <int p>
double arc_cosine(const Pair& pair) {
  const auto [lengths, t, s, c] = angle(pair);
  if (lengths == 0) return 0;
  double J = pi - t;
  if (p == 1) J = s + (pi - t) * c;
  if (p == 2) J = 3 * s * c + (pi - t) * (1 + 2 * c * c);
  if (p == 4) J = 5 * s * c * (11 + 10 * c * c) + (pi - t) * (9 + 72 * c * c + 24 * c * c * c * c);
  return std::pow(lengths, p) * J / (2 * pi);
}

struct Relu {
  static void apply(auto& u) { u = u.max(0); }
  static void pull(auto& u, const auto& d) { u = (u > 0).select(d, Scalar<decltype(u)>(0)); }
};
const bool relu_added = add_function<Relu>(
    {.name = "relu",
     .summary = "the positive part of random projections: generalised attention, arc-cosine kernel of order 1",
     .formula = "max(W x, 0)",
     .reference = generalised,
     .target = "|q||k| (sin t + (pi - t) cos t) / 2 pi, t their angle",
     .non_negative = true,
     .moments = of_normal_rows(arc_cosine<1>, arc_cosine<2>)},
    {Parameter::real(
         "epsilon", 0,
         "added to every feature m^-1/2 max(W x, 0), 1e-3 in Google's library: a bias towards the mean of V", 0, 1)
         .as_published()});

struct SquaredRelu {
  static void apply(auto& u) { u = u.max(0).square(); }
  static void pull(auto& u, const auto& d) { u = 2 * u.max(0) * d; }
};
const bool relu2_added = add_function<SquaredRelu>(
    {.name = "relu2",
     .summary = "the squared positive part of random projections: arc-cosine kernel of order 2",
     .formula = "max(W x, 0)^2",
     .reference = arc_cosines,
     .target = "|q|^2|k|^2 (3 sin t cos t + (pi - t) (1 + 2 cos^2 t)) / 2 pi, t their angle",
     .non_negative = true,
     .moments = of_normal_rows(arc_cosine<2>, arc_cosine<4>)});

struct Step {
  static void apply(auto& u) { u = (u > 0).template cast<Scalar<decltype(u)>>(); }
  static void pull(auto& u, const auto&) { u.setZero(); }
};
const bool step_added =
    add_function<Step>({.name = "step",
                        .summary = "1 where a random projection is positive, 0 elsewhere: arc-cosine kernel of order 0",
                        .formula = "[W x > 0]",
                        .reference = arc_cosines,
                        .target = "(pi - t) / 2 pi, t the angle between q and k",
                        .non_negative = true,
                        .moments = of_normal_rows(arc_cosine<0>, arc_cosine<0>)});

double sign_kernel(const Pair& p) {
  const Angle a = angle(p);
  return a.lengths > 0 ? 1 - 2 * a.t / pi : 0;
}

struct Sign {
  static void apply(auto& u) { u = u.sign(); }
  static void pull(auto& u, const auto&) { u.setZero(); }
};
const bool sign_added = add_function<Sign>(
    {.name = "sign",
     .summary = "signs of random projections: the angular kernel, any sign",
     .formula = "sign(W x)",
     .reference = "Charikar 2002, Similarity estimation techniques from rounding algorithms",
     .target = "1 - 2 t / pi, t the angle between q and k",
     .moments = of_normal_rows(sign_kernel, [](const Pair& p) { return p.q2 > 0 && p.k2 > 0 ? 1.0 : 0.0; })});

double abs_kernel(const Pair& p) {
  const auto [lengths, t, s, c] = angle(p);
  return 2 / pi * lengths * (s + (pi / 2 - t) * c);
}

struct Abs {
  static void apply(auto& u) { u = u.abs(); }
  static void pull(auto& u, const auto& d) { u = u.sign() * d; }
};
const bool abs_added = add_function<Abs>({.name = "abs",
                                          .summary = "absolute values of random projections",
                                          .formula = "|W x|",
                                          .reference = generalised,
                                          .target = "2/pi |q||k| (sin t + (pi/2 - t) cos t), t their angle",
                                          .non_negative = true,
                                          .moments = of_normal_rows(abs_kernel, square_moment)});

struct Square {
  static void apply(auto& u) { u = u.square(); }
  static void pull(auto& u, const auto& d) { u *= 2 * d; }
};
const bool square_added = add_function<Square>({.name = "square",
                                                .summary = "squares of random projections",
                                                .formula = "(W x)^2",
                                                .reference = generalised,
                                                .target = "|q|^2|k|^2 + 2 (q.k)^2",
                                                .non_negative = true,
                                                .moments = of_normal_rows(square_moment, fourth_moment)});

double erf_kernel(const Pair& p) { return 2 / pi * std::asin(2 * p.qk / std::sqrt((1 + 2 * p.q2) * (1 + 2 * p.k2))); }

struct Erf {
  static void apply(auto& u) {
    u = u.unaryExpr([](auto x) { return std::erf(x); });
  }
  static void pull(auto& u, const auto& d) {
    u = (-u.square()).exp() * d * Scalar<decltype(u)>(2 * std::numbers::inv_sqrtpi);
  }
};
const bool erf_added =
    add_function<Erf>({.name = "erf",
                       .summary = "the error function of random projections, any sign",
                       .formula = "erf(W x)",
                       .reference = "Williams 1998, Computation with infinite neural networks, eq. 11",
                       .target = "2/pi asin(2 q.k / ((1 + 2|q|^2) (1 + 2|k|^2))^1/2)",
                       .exps = 1,
                       .moments = of_normal_rows(erf_kernel, nullptr)});

// cos u cos v = (cos omega.(q-k) + cos omega.(q+k)) / 2: not the Gaussian kernel, which also needs sin u sin v.
SummandMoments of_cosines() {
  return {.mean = [](const Pair& p,
                     const EnsembleLaw& law) { return (law.mean_cosine(p, 1, -1) + law.mean_cosine(p, 1, 1)) / 2; },
          .second = [](const Pair& p, const EnsembleLaw& law) {  // cos^2 u cos^2 v = (1 + cos 2u) (1 + cos 2v) / 4
            return (1 + law.mean_cosine(p, 2, 0) + law.mean_cosine(p, 0, 2)) / 4 +
                   (law.mean_cosine(p, 2, -2) + law.mean_cosine(p, 2, 2)) / 8;
          }};
}

struct Cos {
  static void apply(auto& u) { u = u.cos(); }
  static void pull(auto& u, const auto& d) { u = -u.sin() * d; }
};
const bool cos_added = add_function<Cos>(
    {.name = "cos",
     .summary = "cosines of random projections without their sines: not the Gaussian kernel, any sign",
     .formula = "cos(W x)",
     .reference = generalised,
     .target = "(exp(-|q-k|^2/2) + exp(-|q+k|^2/2)) / 2",
     .exps = 1,
     .moments = of_cosines(),
     .any_law = true});

}  // namespace
}  // namespace attnbench::generalised_map
