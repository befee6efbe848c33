// The gradients that feature maps pull back, against central differences of what they map: every map that a registered
// method holds, with every shift and scale of its inputs.
//
// Along a direction E of standard normal numbers, f = sum_f d_block_f block_f + d_log_scale log_scale of one token is
// taken at x +- hE, h = 1e-5. Of the sum of the absolute terms of f, rounding changes some 100 eps, which the quotient
// makes 2e-9, and h^2/6 times the third derivative, for |omega.E| of 5 and products of ten factors below 1e4, is 2e-7.
// The tolerance is 1e-6 of that sum. A term left out of a gradient is of the order of 1e-2 and more, and is planted.
#include <cmath>

#include "approximations/linear/linear_attention.hpp"
#include "tests/cases.hpp"
#include "tests/catch.hpp"

namespace attnbench {

// A method's map, as the method holds it. It is private: an explicit instantiation is allowed to name it.
template <auto Map>
struct MapOf {
  friend const FeatureMap<double>& map_of(const LinearAttention<double>& method) { return *(method.*Map); }
};
const FeatureMap<double>& map_of(const LinearAttention<double>& method);
template struct MapOf<&LinearAttention<double>::map_>;

}  // namespace attnbench

namespace attnbench::pullback_test {

namespace {

constexpr double step = 1e-5;
constexpr double tolerance = 1e-6;
constexpr Index first_position = 2;

// Tokens of norms from 0.3 to 3: some maps treat those beyond 1 in another way.
TestHead tokens() {
  TestHead problem = gaussian_problem({.nq = 8, .nk = 8, .d = 5, .dv = 2}, 0.8);
  for (Matrix<double>* X : {&problem.head.Q, &problem.head.K})
    for (Index i = 0; i < X->rows(); ++i) X->row(i) *= (0.3 + 0.4 * static_cast<double>(i)) / X->row(i).norm();
  return problem;
}

Matrix<double> random(const char* what, Index row_count, Index columns) {
  Generator generator = Streams(test_seed).stream("pullback", what, row_count, columns);
  return standard_normal(generator, row_count, columns);
}

struct Mapped {
  Matrix<double> block;
  std::vector<double> log_scale;
};

Mapped mapped(const FeatureMap<double>& map, const Matrix<double>& X, Side side) {
  Mapped result{Matrix<double>::Constant(X.rows(), map.features(), NAN),
                std::vector<double>(static_cast<size_t>(X.rows()), NAN)};
  Context context;
  map.map(context, X, side, first_position, result.block, result.log_scale);
  return result;
}

Matrix<double> pulled_back(const FeatureMap<double>& map, const Matrix<double>& X, Side side,
                           const Matrix<double>& d_block, const std::vector<double>& d_log_scale) {
  // Exponents are not to be read again: an engine has turned them into features by then.
  const Matrix<double> block =
      map.form() == Form::values ? mapped(map, X, side).block : Matrix<double>::Constant(X.rows(), map.features(), NAN);
  Matrix<double> dX = Matrix<double>::Constant(X.rows(), X.cols(), NAN);
  Context context;
  map.pullback(context, X, side, first_position, block, d_block, d_log_scale, dX);
  return dX;
}

// The largest error of any token's derivative along E, over the size of its terms.
double worst_pullback(const FeatureMap<double>& map, const Matrix<double>& X, Side side) {
  const Matrix<double> d_block = random("d block", X.rows(), map.features()), E = random("E", X.rows(), X.cols()),
                       scales = random("d log scale", X.rows(), 1);
  const std::vector<double> d_log_scale(scales.data(), scales.data() + scales.size());
  const Matrix<double> dX = pulled_back(map, X, side, d_block, d_log_scale);
  const Mapped at = mapped(map, X, side), above = mapped(map, X + step * E, side),
               below = mapped(map, X - step * E, side);
  double worst = 0;
  for (Index i = 0; i < X.rows(); ++i) {
    const auto r = static_cast<size_t>(i);
    const double difference = (d_block.row(i).array() * (above.block.row(i) - below.block.row(i)).array()).sum() +
                              d_log_scale[r] * (above.log_scale[r] - below.log_scale[r]);
    const double size =
        (d_block.row(i).array() * at.block.row(i).array()).abs().sum() + std::abs(d_log_scale[r] * at.log_scale[r]);
    const double error = std::abs(dX.row(i).dot(E.row(i)) - difference / (2 * step));
    if (error == 0) continue;  // a token may have no feature, nor any near it
    if (!(error / size <= worst)) worst = std::isnan(error) ? INFINITY : error / size;
  }
  return worst;
}

double worst_pullback(const FeatureMap<double>& map) {
  const TestHead problem = tokens();
  return std::max(worst_pullback(map, problem.head.Q, Side::query), worst_pullback(map, problem.head.K, Side::key));
}

struct Drawn {
  Params params;
  std::unique_ptr<Approximation<double>> method;
  const FeatureMap<double>* map;  // null without linear attention
};

Drawn drawn(const Params& variant) {
  const TestHead problem = tokens();
  Drawn one{with_small_budgets(variant, problem.shape), nullptr, nullptr};
  Shape shape = problem.shape;
  const Claims claims = find<MethodEntry>(one.params.name()).claims(one.params, shape);
  shape.mask.causal = !claims.no_form.empty();
  one.method = draw_method<double>(one.params, shape, problem);
  if (const auto* linear = dynamic_cast<const LinearAttention<double>*>(one.method.get())) one.map = &map_of(*linear);
  return one;
}

Drawn drawn(const std::string& spec) { return drawn(Params("methods", spec)); }

// Forgets that the scale of a token depends on the token.
class WithoutScaleTerm final : public FeatureMap<double> {
 public:
  explicit WithoutScaleTerm(const FeatureMap<double>& map) : map_(map) {}
  Index features() const override { return map_.features(); }
  Form form() const override { return map_.form(); }
  void map(Context& context, const In<double>& X, Side side, Index first, Out<double> block,
           std::span<double> log_scale) const override {
    map_.map(context, X, side, first, block, log_scale);
  }
  void pullback(Context& context, const In<double>& X, Side side, Index first, const In<double>& block,
                const In<double>& d_block, std::span<const double> d_log_scale, Out<double> dX) const override {
    const std::vector<double> none(d_log_scale.size(), 0);
    map_.pullback(context, X, side, first, block, d_block, none, dX);
  }

 private:
  const FeatureMap<double>& map_;
};

}  // namespace

TEST_CASE("every feature map that is differentiable pulls back the gradient of what it maps", "[methods]") {
  size_t tested = 0;
  for (const Params& variant : all_variants()) {
    const Drawn one = drawn(variant);
    if (!one.map) continue;
    if (!one.map->differentiable()) {
      WARN(one.params.spec() << " has no pullback: its method has no gradients");
      continue;
    }
    INFO(one.params.spec());
    CHECK(worst_pullback(*one.map) < tolerance);
    ++tested;
  }
  CHECK((tested > 0 || !all_are_tested()));
}

TEST_CASE("every feature map of the project is differentiable, but for published variants that see all keys",
          "[methods]") {
  for (const char* features :
       {"positive",      "hyperbolic", "trig",     "oprf",           "sderf",    "aderf", "saderf",
        "simplified",    "exp",        "gaussian", "gaussian-phase", "identity", "relu",  "relu2",
        "step",          "sign",       "abs",      "square",         "erf",      "cos",   "maclaurin",
        "tensor-sketch", "polysketch"}) {
    INFO(features);
    CHECK(drawn(std::string("performer:features=") + features).map->differentiable());
  }
  for (const char* spec : {"linear", "linear:inputs=unscaled", "linear:features=exp", "linear:features=exp-norm",
                           "linear:features=relu", "linear:features=relu2", "linear:features=softmax", "polynomial",
                           "taylor", "cosformer", "performer:transform=full", "performer:shift=mean"}) {
    INFO(spec);
    CHECK(drawn(spec).map->differentiable());
  }
  for (const char* switches : {"epsilon=1e-4", "stabiliser=projection-only", "stabiliser=per-key"}) {
    INFO(switches);
    CHECK_FALSE(drawn(std::string("performer:") + switches).map->differentiable());
  }
}

TEST_CASE("parameters that no variant changes are in the gradient", "[methods]") {
  for (const char* spec : {"linear:features=relu,epsilon=0.1", "linear:features=relu2,epsilon=0.1",
                           "linear:features=softmax,inputs=unscaled", "performer:features=relu,epsilon=0.001",
                           "performer:features=trig,transform=full,shift=mean", "performer:features=oprf,a=-0.2",
                           "performer:features=tensor-sketch,degree=1", "performer:features=tensor-sketch,degree=7",
                           "performer:features=maclaurin,degrees=poisson,rate=4"}) {
    INFO(spec);
    CHECK(worst_pullback(*drawn(spec).map) < tolerance);
  }
}

TEST_CASE("a gradient that forgets the scale of a token is found", "[methods]") {
  for (const char* spec : {"performer", "performer:features=hyperbolic", "performer:features=trig",
                           "performer:features=maclaurin", "performer:features=tensor-sketch",
                           "performer:features=polysketch", "linear:features=exp-norm", "performer:shift=mean"}) {
    INFO(spec);
    const Drawn one = drawn(spec);
    CHECK(worst_pullback(WithoutScaleTerm(*one.map)) > 1e3 * tolerance);
  }
}

TEST_CASE("features that are constant almost everywhere have the gradient 0", "[methods]") {
  const TestHead problem = tokens();
  for (const char* features : {"step", "sign"}) {
    INFO(features);
    const Drawn one = drawn(std::string("performer:features=") + features);
    const Matrix<double> dX = pulled_back(*one.map, problem.head.Q, Side::query,
                                          random("d block", 8, one.map->features()), std::vector<double>(8, 1));
    CHECK((dX.array() == 0).all());
  }
}

TEST_CASE("the gradient at a token of zeros is finite", "[methods]") {
  const Matrix<double> zeros = Matrix<double>::Zero(3, 5);
  for (const Params& variant : all_variants()) {
    const Drawn one = drawn(variant);
    if (!one.map || !one.map->differentiable()) continue;
    INFO(one.params.spec());
    const Matrix<double> d_block = random("d block", 3, one.map->features());
    for (const Side side : {Side::query, Side::key})
      CHECK(pulled_back(*one.map, zeros, side, d_block, std::vector<double>(3, 1)).allFinite());
  }
}

}  // namespace attnbench::pullback_test
