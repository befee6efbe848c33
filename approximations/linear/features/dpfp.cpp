// Deterministic parameter-free projection (DPFP). Schlag, Irie and Schmidhuber, arXiv:2102.11174, section 5.3 and
// eq. 37.
//   u = [relu(x); relu(-x)] in R^(2d),  phi(x)_(j, i) = u_i u_(i+j) for i = 1 to 2d (indices modulo 2d) and shifts j =
//   1 to nu
// 2 d nu features, none negative; most are 0, so that keys of different signs share none, and a row may be left without
// weight.                                                                                           methods.md K7
#include "harness/core/feature_map.hpp"

namespace attnbench::dpfp_map {
namespace {

template <class T>
class Dpfp final : public FeatureMap<T> {
 public:
  explicit Dpfp(const Draw& draw) : d_(draw.shape.d), nu_(draw.params.integer("nu")) {}

  Index features() const override { return 2 * d_ * nu_; }
  Form form() const override { return Form::values; }
  void map(Context&, const In<T>& X, Side, Index, Out<T> block, std::span<T> log_scale) const override {
    for (Index i = 0; i < X.rows(); ++i) {
      const Parts u = parts(X, i);
      for (Index j = 0; j < nu_; ++j)
        block.row(i).segment(2 * d_ * j, 2 * d_).array() = u.head(2 * d_) * u.segment(j + 1, 2 * d_);
    }
    std::fill(log_scale.begin(), log_scale.end(), T(0));
  }
  bool differentiable() const override { return true; }
  void pullback(Context&, const In<T>& X, Side, Index, const In<T>&, const In<T>& d_block, std::span<const T>,
                Out<T> dX) const override {
    for (Index i = 0; i < X.rows(); ++i) {
      const Parts u = parts(X, i);
      Parts slope = Parts::Zero(u.size());
      for (Index j = 0; j < nu_; ++j) {
        const auto g = d_block.row(i).segment(2 * d_ * j, 2 * d_).array();
        slope.head(2 * d_) += g * u.segment(j + 1, 2 * d_);
        slope.segment(j + 1, 2 * d_) += g * u.head(2 * d_);
      }
      for (Index l = nu_ - 1; l >= 0; --l) slope[l] += slope[2 * d_ + l];  // those beyond the end are the first ones
      for (Index l = 0; l < d_; ++l) dX(i, l) = X(i, l) > 0 ? slope[l] : X(i, l) < 0 ? -slope[d_ + l] : T(0);
    }
  }

 private:
  using Parts = Eigen::Array<T, 1, Eigen::Dynamic>;

  // u, and its first nu entries again.
  Parts parts(const In<T>& X, Index i) const {
    Parts u(2 * d_ + nu_);
    u.head(d_) = X.row(i).array().max(T(0));
    u.segment(d_, d_) = (-X.row(i).array()).max(T(0));
    for (Index l = 0; l < nu_; ++l) u[2 * d_ + l] = u[l];  // of itself, where nu is above 2d
    return u;
  }

  Index d_, nu_;
};

double kernel(const Pair& p, Index nu) {
  const size_t d = p.q.size();
  const auto u = [d](const auto& x, size_t place) {
    const double entry = x[place % (2 * d) % d];
    return std::max(0.0, place % (2 * d) < d ? entry : -entry);
  };
  double sum = 0;
  for (size_t j = 1; j <= static_cast<size_t>(nu); ++j)
    for (size_t i = 0; i < 2 * d; ++i) sum += u(p.q, i) * u(p.q, i + j) * u(p.k, i) * u(p.k, i + j);
  return sum;
}

const bool registered = add(deterministic_map<Dpfp>({
    .text = {.name = "dpfp",
             .printed = "DPFP",
             .summary = "products of neighbouring entries of [relu(x); relu(-x)], without parameters",
             .formula = "phi(x)_(j, i) = u_i u_(i+j), u = [relu(x); relu(-x)], j = 1 to nu",
             .reference = "Schlag et al. 2021, arXiv:2102.11174, eq. 37",
             .cost = "O(n d nu) time, 2 d nu features"},
    .parameters = {Parameter::integer("nu", 1, "shifts between the entries that are multiplied", 1, 1000)},
    .features = [](const Params& params, Index d) { return 2 * d * params.integer("nu"); },
    .token_work = [](const Params& params,
                     Index d) { return Work{.flops = 2 * static_cast<double>(d * params.integer("nu"))}; },
    .non_negative = true,
    .may_vanish = true,
    .theory =
        [](const Params& params, Index, const EnsembleLaw&, const Head<double>*) {
          return std::optional(
              KernelTheory{.target = "sum_(j, i) u_i(q) u_(i+j)(q) u_i(k) u_(i+j)(k)",
                           .mean = [nu = params.integer("nu")](const Pair& p) { return kernel(p, nu); },
                           .variance = [](const Pair&) { return 0.0; }});
        },
}));

}  // namespace
}  // namespace attnbench::dpfp_map
