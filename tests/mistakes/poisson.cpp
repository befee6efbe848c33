// Poisson random features (Likhosherstov et al. 2022, arXiv:2205.15317), written as a plugin's author would. `mistake`
// plants one mistake by its number; mistakes_test.py names the claim that must find it.
//   phi(x)_i = m^-1/2 e^(r d / 2) prod_l x_l^(w_il) r^(-w_il / 2),  w_il ~ Poisson(r)
//   E phi(q).phi(k) = exp(q.k),  variance m^-1 (exp(r d + sum_l (q_l k_l)^2 / r) - exp(2 q.k))
#include <cmath>

#include "harness/core/feature_map.hpp"

namespace attnbench {
namespace {

enum Mistake {
  none = 0,
  no_constant,
  half_constant,
  rate_twice,
  sign_lost,
  sign_lost_below_minus_one,
  five_percent_far_out,
  shares_replicates,
  shares_heads,
  copies_from_64th,
  copies_within,
  float_thirty_percent,
  float_truncated_power,
  keys_unscaled,
  variance_without_rate,
  mean_of_another,
  no_root_of_m,
  depends_on_position,
  state_is_transposed_sign,
  half_of_vectors
};

Index poisson(Generator& generator, double rate) {
  const double limit = std::exp(-rate);
  double product = 1;
  Index count = -1;
  do {
    product *= (static_cast<double>(generator() >> 11) + 0.5) * 0x1p-53;
    ++count;
  } while (product > limit);
  return count;
}

template <class T>
class PoissonFeatures final : public FeatureMap<T> {
 public:
  explicit PoissonFeatures(const Draw& draw)
      : mistake_(draw.params.integer("mistake")), rate_(draw.params.real("rate")) {
    const Index m = draw.params.integer("m"), d = draw.shape.d;
    if (const Matrix<double>* given = draw.injected("W", m, d)) {
      W_ = *given;
      return;
    }
    W_.resize(m, d);
    Generator generator = draw.streams.stream("poisson", d, mistake_ == shares_heads ? 0 : draw.head,
                                              mistake_ == shares_replicates ? 0 : draw.replicate);
    for (Index i = 0; i < W_.size(); ++i)
      W_.data()[i] = static_cast<double>(poisson(generator, (mistake_ == rate_twice ? 2 : 1) * rate_));
    for (Index i = 0; i < m; ++i) {
      if (mistake_ == copies_from_64th && i >= 64) W_.row(i) = W_.row(i - 64);
      if (mistake_ == copies_within && i % 2 == 1) W_.row(i) = W_.row(i - 1);
    }
  }

  Index features() const override { return W_.rows(); }
  Form form() const override { return Form::values; }
  void map(Context& context, const In<T>& X, Side side, Index first, Out<T> block,
           std::span<T> log_scale) const override {
    const Index m = W_.rows(), d = W_.cols();
    double constant = rate_ * static_cast<double>(d) / 2;
    if (mistake_ == no_constant) constant = 0;
    if (mistake_ == half_constant) constant /= 2;
    double scale = std::exp(constant) / std::sqrt(static_cast<double>(m));
    if (mistake_ == no_root_of_m) scale = std::exp(constant) / std::sqrt(static_cast<double>(m + 1));
    for (Index t = 0; t < X.rows(); ++t) {
      log_scale[static_cast<size_t>(t)] = 0;
      for (Index i = 0; i < m; ++i) {
        double product = scale;
        for (Index l = 0; l < d; ++l) {
          double x = static_cast<double>(X(t, l));
          if (mistake_ == sign_lost) x = std::abs(x);
          if (mistake_ == sign_lost_below_minus_one && x < -1) x = -x;
          if (mistake_ == keys_unscaled && side == Side::key) x *= 1.01;
          double power = W_(i, l);
          if (mistake_ == float_truncated_power && sizeof(T) == 4) power = std::min(power, 1.0);
          for (double step = 0; step < power; ++step) product *= x / std::sqrt(rate_);
        }
        if (mistake_ == half_of_vectors && i >= m / 2) product = 0;
        block(t, i) = static_cast<T>(product);
      }
      if (mistake_ == five_percent_far_out && X.row(t).norm() > T(2)) block.row(t) *= T(1.05);
      if (mistake_ == float_thirty_percent && sizeof(T) == 4) block.row(t).head(m / 2) *= T(1.3);
      if (mistake_ == depends_on_position && (first + t) % 2 == 1) block.row(t) *= T(1.02);
    }
    context.work.flops += 2 * static_cast<double>(X.rows() * m * d);
  }
  Tensors state() const override { return {{"W", mistake_ == state_is_transposed_sign ? Matrix<double>(-W_) : W_}}; }

 private:
  Index mistake_;
  double rate_;
  Matrix<double> W_;  // m x d
};

KernelTheory theory(const Params& params) {
  const auto m = static_cast<double>(params.integer("m"));
  const double rate = params.real("rate");
  const Index mistake = params.integer("mistake");
  const auto moment = [rate](const Pair& pair) {
    double exponent = 0;
    for (size_t l = 0; l < pair.q.size(); ++l) exponent += pair.q[l] * pair.q[l] * pair.k[l] * pair.k[l] / rate;
    return exponent;
  };
  return {.target = "exp(q.k)",
          .mean = [mistake](const Pair& p) { return std::exp(p.qk * (mistake == mean_of_another ? 0.9 : 1)); },
          .variance =
              [=](const Pair& p) {
                const double d = mistake == variance_without_rate ? 0 : static_cast<double>(p.d);
                return (std::exp(rate * d + moment(p)) - std::exp(2 * p.qk)) / m;
              }};
}

const bool registered = add(deterministic_map<PoissonFeatures>({
    .text = {.name = "poisson",
             .summary = "random features of Poisson exponents",
             .formula = "phi(x)_i = m^-1/2 e^(r d / 2) prod_l x_l^(w_il) r^(-w_il / 2), w_il ~ Poisson(r)",
             .reference = "Likhosherstov et al. 2022, arXiv:2205.15317"},
    .parameters = {Parameter::integer("m", 128, "features", 1).as_budget(),
                   Parameter::real("rate", 0.1, "of the Poisson law", 0.01, 10),
                   Parameter::integer("mistake", 0, "one of this file's mistakes", 0, 100).as_published()},
    .features = [](const Params& params, Index) { return params.integer("m"); },
    .token_work = [](const Params& params,
                     Index d) { return Work{.flops = 2.0 * static_cast<double>(params.integer("m") * d)}; },
    .may_vanish = true,
    .theory = [](const Params& params, Index, const EnsembleLaw&, const Head<double>*) -> std::optional<KernelTheory> {
      return theory(params);
    },
}));

}  // namespace
}  // namespace attnbench
