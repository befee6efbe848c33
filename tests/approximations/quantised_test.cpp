// Quantised keys and values where their answers are known: the errors of Lloyd and Max, the moments of QJL, the
// residual of TurboQuant, the noise of a grid, and inputs at the edges. Laws 5 % off are planted. methods.md R.
#include <algorithm>
#include <array>
#include <cmath>

#include "approximations/quantised/lloyd_max.hpp"
#include "harness/claims/check.hpp"
#include "harness/claims/estimate_claims.hpp"
#include "harness/core/estimates.hpp"
#include "harness/linalg/integer_products.hpp"
#include "tests/cases.hpp"
#include "tests/misuse.hpp"
#include "tests/oracle/oracle.hpp"
#include "tests/scores.hpp"

namespace attnbench::quantised_test {
namespace {

constexpr double tolerance = 1e-12;
constexpr double seen = 1e-3;  // what a mistake moves outputs of size 1 by, at least
constexpr double off = 1.05;   // planted laws are this times the right one

Matrix<double> out_of(const std::string& spec, const TestHead& problem, Mask mask = {},
                      const Tensors* state = nullptr) {
  return attend(*drawn(spec, problem, mask, state), problem.head, mask);
}

double distance(const Matrix<double>& a, const Matrix<double>& b) { return (a - b).cwiseAbs().maxCoeff(); }

TestHead gaussian(Index n = 60, Index d = 6, double scale = 0.8) {
  return gaussian_problem({.nq = n, .nk = n, .d = d, .dv = 4}, scale);
}

Matrix<double> logits_of(const std::string& spec, const TestHead& problem, Index replicate) {
  const auto method = drawn(spec, problem, {}, nullptr, replicate);
  Matrix<double> logits(problem.shape.nq, problem.shape.nk);
  Context context;
  REQUIRE(estimated_logits(*method));
  estimated_logits(*method)->logits(problem.head.view(), context, logits);
  return logits;
}

// A mean over draws.
struct Mean {
  double count = 0, sum = 0, squares = 0;
  void add(double x) {
    ++count;
    sum += x;
    squares += x * x;
  }
  double variance() const { return (squares - sum * sum / count) / (count - 1); }
  // How many standard errors it is off.
  double z(double wanted) const { return (sum / count - wanted) / std::sqrt(variance() / count); }
};

double density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * M_PI); }

// E f(X) for X of this density on [-limit, limit], by the midpoint rule.
template <class Density, class Function>
double mean_over(const Density& of, double limit, const Function& f) {
  constexpr Index points = 400000;
  double sum = 0, mass = 0;
  for (Index p = 0; p < points; ++p) {
    const double x = limit * (2 * (static_cast<double>(p) + 0.5) / points - 1), weight = of(x);
    sum += weight * f(x);
    mass += weight;
  }
  return sum / mass;
}

// E (X - level(X))^2.
template <class Density>
double squared_error(const LloydMax& quantiser, double limit, const Density& of) {
  return mean_over(of, limit, [&](double x) { return std::pow(x - quantiser.nearest(x), 2); });
}

// sqrt(d/2) Gamma(d/2) / Gamma((d+1)/2).
double rotation_factor(double d) { return std::sqrt(d / 2) * std::exp(std::lgamma(d / 2) - std::lgamma((d + 1) / 2)); }

}  // namespace

// ---- Lloyd and Max

TEST_CASE("Lloyd and Max's quantisers have the errors of Max's table", "[unit]") {
  // Max 1960, Table I, for 2, 4, 8, 16 and 32 levels; and his table II, levels in equal steps. The last three numbers
  // of the first one are below the least error, by up to 0.23 %.
  const double table[] = {0.3634, 0.1175, 0.03454, 0.009497, 0.002499},
               equal_steps[] = {0.3634, 0.1188, 0.03744, 0.01154, 0.003495};
  constexpr double bound = 3e-3;
  CHECK(lloyd_max(0).error == 1);
  for (Index bits = 1; bits <= 5; ++bits) {
    INFO(bits);
    const LloydMax& quantiser = lloyd_max(bits);
    const auto place = static_cast<size_t>(bits - 1);
    CHECK(std::ssize(quantiser.levels) == Index{1} << bits);
    CHECK(std::abs(quantiser.error / table[place] - 1) < bound);
    if (bits > 1) CHECK(std::abs(equal_steps[place] / quantiser.error - 1) > 3 * bound);  // planted
    CHECK(std::abs(squared_error(quantiser, 9, density) - quantiser.error) < 1e-8);
  }
  CHECK(std::abs(lloyd_max(1).levels[1] - std::sqrt(2 / M_PI)) < 1e-13);
  CHECK(std::abs(lloyd_max(1).error - (1 - 2 / M_PI)) < 1e-13);
  // No other levels do better.
  for (const Index bits : {2, 5})
    for (const double factor : {0.99, 1.01}) {
      LloydMax other = lloyd_max(bits);
      for (double& level : other.levels) level *= factor;
      CHECK(squared_error(other, 9, density) > lloyd_max(bits).error * (1 + 1e-5));
    }
}

TEST_CASE("a level of Lloyd and Max is the mean of the numbers that are nearest to it", "[unit]") {
  for (Index bits = 1; bits <= most_lloyd_max_bits; ++bits) {
    const auto& levels = lloyd_max(bits).levels;
    for (size_t l = 0; l < levels.size(); ++l) {
      CHECK(levels[l] == -levels[levels.size() - 1 - l]);
      const double low = l == 0 ? -INFINITY : (levels[l - 1] + levels[l]) / 2;
      const double high = l + 1 == levels.size() ? INFINITY : (levels[l] + levels[l + 1]) / 2;
      const double mass = (std::erfc(low / M_SQRT2) - std::erfc(high / M_SQRT2)) / 2;
      CHECK(std::abs((density(low) - density(high)) / mass - levels[l]) < 1e-12);
    }
  }
  CHECK(lloyd_max(1).nearest(0) > 0);
  CHECK(lloyd_max(2).nearest(-17) == lloyd_max(2).levels.front());
}

// ---- QJL

TEST_CASE("estimated logits of QJL have the mean and the variance of the closed form", "[statistics]") {
  const TestHead problem = gaussian_problem({.nq = 3, .nk = 4, .d = 4, .dv = 1}, 0.8);
  constexpr Index m = 3, draws = 40000;
  std::vector<Mean> errors(12), squares(12);
  for (Index r = 0; r < draws; ++r) {
    const Matrix<double> error = logits_of("qjl:m=3", problem, r) - problem.head.Q * problem.head.K.transpose();
    for (Index p = 0; p < 12; ++p) {
      errors[static_cast<size_t>(p)].add(error.data()[p]);
      squares[static_cast<size_t>(p)].add(error.data()[p] * error.data()[p]);
    }
  }
  Scores right, planted;
  for (Index p = 0; p < 12; ++p) {
    const auto q = problem.head.Q.row(p / 4), k = problem.head.K.row(p % 4);
    const double law = (M_PI / 2 * q.squaredNorm() * k.squaredNorm() - std::pow(q.dot(k), 2)) / m;
    right.push_back({fmt::format("mean of pair {}", p), errors[static_cast<size_t>(p)].z(0)});
    right.push_back({fmt::format("variance of pair {}", p), squares[static_cast<size_t>(p)].z(law)});
    planted.push_back({fmt::format("variance of pair {}", p), squares[static_cast<size_t>(p)].z(off * law)});
  }
  check_family(right);
  check_found("a variance 5 % off", planted, threshold(right));
}

TEST_CASE("the weights of QJL have the mean of the closed form, which is above exp(q.k)", "[statistics]") {
  const TestHead problem = gaussian_problem({.nq = 3, .nk = 4, .d = 4, .dv = 1}, 0.7);
  const Params params("methods", "qjl:m=8");
  const auto theory = find<MethodEntry>("qjl").theory(params, problem.shape, nullptr);
  REQUIRE(theory);
  std::vector<Mean> weights(12);
  for (Index r = 0; r < 40000; ++r) {
    const Matrix<double> logits = logits_of("qjl:m=8", problem, r);
    for (Index p = 0; p < 12; ++p) weights[static_cast<size_t>(p)].add(std::exp(logits.data()[p]));
  }
  Scores right, unbiased;
  for (Index p = 0; p < 12; ++p) {
    const Eigen::RowVectorXd q = problem.head.Q.row(p / 4), k = problem.head.K.row(p % 4);
    const Pair pair = pair_of({q.data(), 4}, {k.data(), 4});
    CHECK(theory->mean(pair) > pair.softmax());
    right.push_back({fmt::format("pair {}", p), weights[static_cast<size_t>(p)].z(theory->mean(pair))});
    unbiased.push_back({fmt::format("pair {}", p), weights[static_cast<size_t>(p)].z(pair.softmax())});
  }
  check_family(right);
  check_found("weights without bias", unbiased, threshold(right));
}

TEST_CASE("the published rotation of QJL makes logits too large by a factor of d alone", "[statistics]") {
  for (const auto& [d, share] : {std::pair{16.0, 0.0157}, {64.0, 0.0039}, {128.0, 0.0020}})
    CHECK(std::abs(rotation_factor(d) - 1 - share) < 5e-5);
  const TestHead problem = gaussian_problem({.nq = 3, .nk = 3, .d = 4, .dv = 1}, 0.8);
  std::vector<Mean> logits(9);
  for (Index r = 0; r < 20000; ++r) {
    const Matrix<double> drawn_ones = logits_of("qjl:m=6,rot=true", problem, r);
    for (Index p = 0; p < 9; ++p) logits[static_cast<size_t>(p)].add(drawn_ones.data()[p]);
  }
  Scores right, unbiased;
  for (Index p = 0; p < 9; ++p) {
    const double product = problem.head.Q.row(p / 3).dot(problem.head.K.row(p % 3));
    right.push_back({fmt::format("pair {}", p), logits[static_cast<size_t>(p)].z(rotation_factor(4) * product)});
    unbiased.push_back({fmt::format("pair {}", p), logits[static_cast<size_t>(p)].z(product)});
  }
  check_family(right);
  check_found("logits without bias", unbiased, threshold(right));
}

TEST_CASE("QJL and TurboQuant pass the claim on logits, and the published rotation fails it", "[statistics]") {
  const auto outcome = [](const char* spec) {
    const Subject subject = subject_of(Params("methods", spec));  // the plans refer to it
    const EstimatePlans plans = plan_estimate_claims(subject, 1);
    Context context;
    const double bound = z_threshold(1e-6, std::max(1.0, plans.tests()));
    return deciding(of_claim(test_estimate_claims(plans, bound, default_work, context), "mean-logits")).outcome;
  };
  for (const char* spec : {"qjl", "turboquant", "turboquant:bits=1", "turboquant:bits=2,residual=false,scale=eden"}) {
    INFO(spec);
    CHECK(outcome(spec) == Outcome::pass);
  }
  CHECK(outcome("qjl:rot=true") == Outcome::fail);
  CHECK(outcome("turboquant:bits=2,residual=false") == Outcome::skipped);  // it claims no such mean
}

// ---- TurboQuant

TEST_CASE("TurboQuant of one bit is QJL with d signs", "[methods]") {
  const TestHead problem = gaussian();
  const Tensors state = drawn("turboquant:bits=1", problem)->state();
  CHECK(distance(out_of("turboquant:bits=1", problem), out_of("qjl:m=6", problem, {}, &state)) < tolerance);
  CHECK(distance(out_of("turboquant:bits=2", problem, {}, &state), out_of("qjl:m=6", problem, {}, &state)) > seen);
}

TEST_CASE("keys of TurboQuant err by the residual of Lloyd and Max, times the variance of QJL", "[statistics]") {
  // With queries e_1 to e_d the logits are the estimated keys. A coordinate of a uniform direction times sqrt(d) has a
  // density in proportion to (1 - x^2 / d)^((d-3)/2); QJL of the rest r adds |r|^2 (pi/2 - 1/d).
  constexpr Index d = 16;
  TestHead problem = gaussian_problem({.nq = d, .nk = 5, .d = d, .dv = 1}, 0.8);
  problem.head.Q.setIdentity();
  const auto coordinate = [](double x) { return std::pow(1 - x * x / d, (d - 3) / 2.0); };
  Scores right, planted;
  for (const Index bits : {2, 3, 4, 5}) {
    const double residual = squared_error(lloyd_max(bits - 1), std::sqrt(static_cast<double>(d)), coordinate);
    CHECK(std::abs(residual / lloyd_max(bits - 1).error - 1) < 0.15);  // N(0, 1) is near
    const double law = residual * (M_PI / 2 - 1.0 / d);
    Mean share, along;
    for (Index r = 0; r < 4000; ++r) {
      const Matrix<double> keys = logits_of("turboquant:bits=" + std::to_string(bits), problem, r).transpose();
      share.add((keys - problem.head.K).row(0).squaredNorm() / problem.head.K.row(0).squaredNorm());
      along.add((keys - problem.head.K).row(1).dot(problem.head.K.row(1)));
    }
    right.push_back({fmt::format("error with {} bits", bits), share.z(law)});
    right.push_back({fmt::format("bias with {} bits", bits), along.z(0)});
    planted.push_back({fmt::format("error with {} bits", bits), share.z(off * law)});
  }
  check_family(right);
  check_found("an error 5 % off", planted, threshold(right));
}

TEST_CASE("one stage of TurboQuant shrinks logits, EDEN's scale repairs that, and two stages vary more",
          "[statistics]") {
  // |q| = |k| = 1 at an angle with cosine 0.7. With x a coordinate of k times sqrt(d), one stage has the mean E x L(x)
  // q.k. EDEN's part across k has the squared length E L(x)^2 / (E x L(x))^2 - 1, up to its variation.
  constexpr Index d = 32;
  constexpr double cosine = 0.7, sine_squared = 1 - cosine * cosine;
  TestHead problem = gaussian_problem({.nq = 1, .nk = 1, .d = d, .dv = 1}, 1);
  const Eigen::RowVectorXd k = problem.head.K.row(0).normalized(), q = problem.head.Q.row(0);
  problem.head.K.row(0) = k;
  problem.head.Q.row(0) = cosine * k + std::sqrt(sine_squared) * (q - q.dot(k) * k).normalized();
  const auto coordinate = [](double x) { return std::pow(1 - x * x / d, (d - 3) / 2.0); };
  const auto mean_logit = [&](const std::string& spec) {
    Mean made;
    for (Index r = 0; r < 4000; ++r) made.add(logits_of(spec, problem, r)(0, 0));
    return made;
  };
  Scores right, planted;
  for (const Index bits : {2, 3, 4}) {
    const LloydMax& levels = lloyd_max(bits);
    const double root = std::sqrt(static_cast<double>(d));
    const double along = mean_over(coordinate, root, [&](double x) { return x * levels.nearest(x); });
    const double squares = mean_over(coordinate, root, [&](double x) { return levels.nearest(x) * levels.nearest(x); });
    const std::string one = fmt::format("turboquant:bits={},residual=false", bits);
    const Mean plain = mean_logit(one), eden = mean_logit(one + ",scale=eden");
    const Mean two = mean_logit(fmt::format("turboquant:bits={}", bits));
    right.push_back({one, plain.z(along * cosine)});
    right.push_back({one + ",scale=eden", eden.z(cosine)});
    right.push_back({"two stages", two.z(cosine)});
    planted.push_back({one + " without bias", plain.z(cosine)});
    CHECK(std::abs(along / (1 - levels.error) - 1) < 0.02);  // large d is near
    CHECK(eden.variance() == Approx((squares / (along * along) - 1) * sine_squared / (d - 1)).epsilon(0.15));
    CHECK(two.variance() > 2.5 * eden.variance());
  }
  check_family(right);
  check_found("one stage without bias", planted, threshold(right));
}

// ---- Grids

TEST_CASE("numbers on a grid of integers err by a twelfth of its squared step", "[statistics]") {
  TestHead problem = gaussian_problem({.nq = 4000, .nk = 4000, .d = 1, .dv = 64}, 0.8);
  const Matrix<double>& V = problem.head.V;
  Scores right, planted;
  for (const std::string granularity : {"token", "tensor"}) {
    const Matrix<double> got = out_of("quantised:[identity],values=8,granularity=" + granularity, problem);
    Mean squares;
    double worst = 0;
    for (Index j = 0; j < V.rows(); ++j) {
      const double largest = (granularity == "token" ? V.row(j) : V).cwiseAbs().maxCoeff(), step = largest / 127;
      for (Index l = 0; l < V.cols(); ++l) {
        const double error = (got(j, l) - V(j, l)) / step, at = got(j, l) / step;
        worst = std::max({worst, std::abs(error), std::abs(at - std::round(at)) + 0.5});
        if (std::abs(V(j, l)) < largest) squares.add(error * error);  // the largest number is on the grid
      }
    }
    CHECK(worst < 0.5 + 1e-9);
    right.push_back({granularity, squares.z(1.0 / 12)});
    planted.push_back({granularity, squares.z(off / 12)});
  }
  check_family(right);
  check_found("noise 5 % off", planted, threshold(right));
}

TEST_CASE("each granularity has its own scales", "[methods]") {
  TestHead problem = gaussian_problem({.nq = 3, .nk = 2, .d = 2, .dv = 2}, 1);
  problem.head.K << 1.2, 0.4, -2, 0.7;
  // Two bits: -s, 0 and s.
  const std::vector<std::pair<std::string, std::array<double, 4>>> all{{"tensor", {2, 0, -2, 0}},
                                                                       {"token", {1.2, 0, -2, 0}},
                                                                       {"channel", {2, 0.7, -2, 0.7}},
                                                                       {"block,block=1", {1.2, 0, -2, 0}},
                                                                       {"block,block=2", {2, 0, -2, 0}}};
  for (const auto& [granularity, keys] : all) {
    INFO(granularity);
    TestHead rounded = problem;
    rounded.head.K << keys[0], keys[1], keys[2], keys[3];
    CHECK(distance(out_of("quantised:bits=2,granularity=" + granularity, problem), out_of("softmax", rounded)) <
          tolerance);
  }
  // Queries of a channel's granularity are rounded by token.
  problem.head.Q << 1, 0.4, -0.2, 3, 0, 0;
  TestHead rounded = problem;
  rounded.head.K << 2, 0.7, -2, 0.7;
  rounded.head.Q << 1, 0, 0, 3, 0, 0;
  CHECK(distance(out_of("quantised:bits=2,granularity=channel,queries=2", problem), out_of("softmax", rounded)) <
        tolerance);
}

TEST_CASE("with smooth=true no vector added to all keys matters, and equal keys are exact", "[methods]") {
  const TestHead problem = gaussian();
  TestHead moved = problem, equal = problem;
  moved.head.K.rowwise() += 4 * Eigen::RowVectorXd::LinSpaced(6, -1, 1);
  equal.head.K.rowwise() = problem.head.K.row(0).eval();
  for (const std::string granularity : {"tensor", "token", "channel", "block"}) {
    INFO(granularity);
    const std::string spec = "quantised:bits=4,granularity=" + granularity, smooth = spec + ",smooth=true";
    CHECK(distance(out_of(smooth, moved), out_of(smooth, problem)) < tolerance);
    const Matrix<double> exact = out_of("softmax", moved);
    const double error = (out_of(smooth, moved) - exact).norm();
    CHECK(error > seen);  // rounding is there
    CHECK(distance(out_of(spec, moved), out_of(spec, problem)) > seen);
    CHECK(error < (out_of(spec, moved) - exact).norm());
  }
  // The mean is added again: a method that depends on it sees the same keys.
  for (const std::string inner : {"[softmax]", "[linear]", "[vq:codes=4,codebook=keys]"})
    CHECK(distance(out_of("quantised:" + inner + ",bits=2,smooth=true", equal),
                   out_of(inner.substr(1, inner.size() - 2), equal)) < tolerance);
}

TEST_CASE("more bits err less, by about a factor of two for each", "[methods]") {
  const TestHead problem = gaussian(200);
  const Matrix<double> exact = out_of("softmax", problem);
  double before = 0;
  for (const Index bits : {4, 6, 8, 10, 12}) {
    const double error = (out_of("quantised:granularity=token,bits=" + std::to_string(bits), problem) - exact).norm();
    if (bits > 4) {
      CHECK(before / error > 3);
      CHECK(before / error < 6);
    }
    before = error;
  }
}

TEST_CASE("a later token moves an earlier row through a shared scale, and no row through its own", "[methods]") {
  TestHead problem = gaussian();
  const Mask causal{.causal = true};
  const auto moved_by_last = [&](const std::string& spec) {
    const Matrix<double> before = out_of(spec, problem, causal);
    TestHead other = problem;
    other.head.K.row(59) *= 30;
    return distance(out_of(spec, other, causal).topRows(59), before.topRows(59));
  };
  CHECK(moved_by_last("quantised:granularity=token,queries=8,values=8") == 0);
  for (const char* spec : {"quantised", "quantised:granularity=tensor", "quantised:granularity=token,smooth=true"}) {
    INFO(spec);
    CHECK(moved_by_last(spec) > 0);
    CHECK_FALSE(subject_of(Params("methods", spec)).claims(Params("methods", spec), problem.shape).causal_exact);
  }
}

TEST_CASE("the wrapper is the inner method on rounded numbers: any method, and one inside another", "[methods]") {
  const TestHead problem = gaussian(60, 4);
  TestHead on_grid = problem;  // integers up to 7 in every row: four bits hold them
  for (auto* X : {&on_grid.head.Q, &on_grid.head.K, &on_grid.head.V}) {
    *X = X->unaryExpr([](double x) { return std::clamp(std::round(3 * x), -7.0, 7.0); });
    X->col(0).setConstant(7);
    *X /= 8;
  }
  for (const std::string inner :
       {"softmax", "local:window=5", "performer:m=16", "linformer:r=8", "fnet", "nystrom:landmarks=6", "top-k:k=5"})
    for (const Mask& mask : {Mask{}, Mask{.keys = 41}}) {
      INFO(inner << ", " << to_string(mask));
      const std::string spec = "quantised:[" + inner + "],granularity=token,bits=4,queries=4,values=4";
      CHECK(distance(out_of(spec, on_grid, mask), out_of(inner, on_grid, mask)) < 1e-9);
      CHECK(distance(out_of("quantised:[" + spec + "],bits=16,granularity=token", on_grid, mask),
                     out_of(inner, on_grid, mask)) < 1e-9);
      CHECK(distance(out_of(spec, problem, mask), out_of(inner, problem, mask)) > seen);
    }
}

TEST_CASE("logits of integers in float are those of the rounded numbers in double", "[methods]") {
  const TestHead problem = gaussian(300, 10);
  const HeadData<float> head = problem.head.cast<float>();
  for (const std::string options :
       {"granularity=token", "granularity=tensor", "block=50", "block=50,smooth=true", "block=7,bits=3,values=4",
        "granularity=token,bits=5,smooth=true", "granularity=channel"})
    for (const Mask& mask : {Mask{}, Mask{.causal = true}, Mask{.keys = 200}}) {
      INFO(options << ", " << to_string(mask));
      const std::string spec = "quantised:queries=8," + options;
      Shape shape = problem.shape;
      shape.mask = mask;
      const auto method = draw_method<float>(Params("methods", spec), shape, problem);
      Matrix<float> out(300, 4);
      Context context;
      method->attend(head.view(), mask, context, out);
      // Numbers that are rounded to float lie on the other side of a half, here and there: a step of the grid in one of
      // ten products.
      CHECK(distance(out.cast<double>(), out_of(spec, problem, mask)) < 2e-4);
      CHECK(distance(out.cast<double>(), out_of("softmax", problem, mask)) > seen);
      shape.precision = Precision::f32;
      const auto caveats = find<MethodEntry>("quantised").caveats(Params("methods", spec), shape);
      const bool in_integers = integer_products_are_fast && options != "granularity=channel";
      CHECK_THAT(caveats.at(0), ContainsSubstring(in_integers ? "products of integers" : "emulated"));
    }
}

TEST_CASE("groups, grids that begin at the least number and rotations are those of the transcription", "[methods]") {
  const TestHead problem = gaussian(60, 8);
  for (const std::string spec :
       {"quantised:bits=2,granularity=channel,group=16", "quantised:bits=2,values=2,granularity=token,group=3",
        "quantised:bits=2,values=2,granularity=channel,group=32,zero=true",
        "quantised:bits=3,queries=4,granularity=token,group=4,zero=true,rotate=hadamard",
        "quantised:bits=3,granularity=channel,group=7,smooth=true,rotate=haar"})
    for (const Mask mask : {Mask{}, Mask{.keys = 41}}) {
      INFO(spec);
      const auto method = drawn(spec, problem, mask);
      const auto want = oracle::attention(Params("methods", spec), method->state(), problem.head, mask);
      CHECK(distance(attend(*method, problem.head, mask), want.out) < tolerance);
      CHECK(distance(want.out, out_of("softmax", problem, mask)) > seen);
    }
}

TEST_CASE("a rotation spreads a large channel, and groups and least numbers follow what differs", "[methods]") {
  TestHead problem = gaussian(256, 64, 0.25);
  problem.head.K.col(5) *= 10;
  const Matrix<double> exact = out_of("softmax", problem);
  const auto error = [&](const std::string& options) {
    return (out_of("quantised:bits=4," + options, problem) - exact).norm();
  };
  const double by_token = error("granularity=token");
  for (const char* better :
       {"granularity=token,rotate=haar", "granularity=token,rotate=hadamard", "granularity=channel"}) {
    INFO(better);
    CHECK(error(better) < 0.7 * by_token);
  }
  problem.head.K.array() += 1;  // far from 0, where a symmetric grid has few levels
  const Matrix<double> moved = out_of("softmax", problem);
  const auto moved_error = [&](const std::string& options) {
    return (out_of("quantised:bits=3," + options, problem) - moved).norm();
  };
  CHECK(moved_error("granularity=channel,zero=true") < 0.8 * moved_error("granularity=channel"));
  CHECK(moved_error("granularity=channel,zero=true,group=32") < moved_error("granularity=channel,zero=true"));
}

// ---- Edges

TEST_CASE("keys of zeros and channels without spread are finite", "[unit]") {
  TestHead zeros = gaussian();
  zeros.head.K.setZero();
  TestHead flat = gaussian();
  flat.head.K.col(2).setConstant(0.3);
  flat.head.V.col(1).setZero();
  const Matrix<double> mean = zeros.head.V.colwise().mean().replicate(60, 1);
  for (const char* spec :
       {"qjl:m=8", "turboquant", "turboquant:bits=1", "turboquant:residual=false,scale=eden",
        "quantised:bits=2,granularity=channel", "quantised:bits=2,granularity=tensor,smooth=true,queries=2"}) {
    INFO(spec);
    CHECK(distance(out_of(spec, zeros), mean) < tolerance);
    CHECK(out_of(spec, flat).allFinite());
  }
  CHECK(out_of("quantised:values=2,granularity=token,bits=2", flat).col(1).isZero(0));
}

TEST_CASE("parameters of quantised methods out of range are refused with what was expected", "[unit]") {
  for (const char* spec : {"quantised:bits=1", "quantised:bits=17", "quantised:granularity=row", "quantised:values=1",
                           "quantised:queries=40", "quantised:block=0", "qjl:m=0", "turboquant:bits=0",
                           "turboquant:bits=7", "quantised:group=0", "quantised:rotate=fourier"}) {
    INFO(spec);
    CHECK_THROWS_AS(Params("methods", spec), Misuse);
  }
  const auto refused = [](const char* spec) { return misuse_of([&] { drawn(spec, gaussian()); }); };
  CHECK_THAT(refused("turboquant:scale=eden"), ContainsSubstring("residual=false,scale=eden"));
  CHECK_THAT(refused("turboquant:bits=6,residual=false"), ContainsSubstring("give bits=5"));
  CHECK_THAT(refused("quantised:group=32"), ContainsSubstring("give granularity=channel or token, or block=32"));
  for (const Index d : {1, 6, 8, 80}) {  // of any width
    const Matrix<double> R = drawn("quantised:rotate=hadamard", gaussian(60, d))->state().at("grid_rotation");
    CHECK(distance(R * R.transpose(), Matrix<double>::Identity(d, d)) < tolerance);
  }
  CHECK_THAT(misuse_of([] { Params("methods", "quantised:bits=1"); }), ContainsSubstring("2"));
  CHECK_THAT(misuse_of([] { drawn("quantised:[softmax],[local]", gaussian()); }),
             ContainsSubstring("2 specs; expected one, the method that gets the rounded numbers, as in "
                               "quantised:[softmax],bits=8"));
}

}  // namespace attnbench::quantised_test
