// kernel-entries against loops over single numbers, performer-bounds against integrals that are done here.
#include <cmath>
#include <map>
#include <numbers>

#include "harness/errors/error.hpp"
#include "harness/experiment/experiment.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/measured.hpp"

namespace attnbench::kernel_bounds_test {

namespace {

// The integral of f over [from, to] by Simpson's rule.
template <class F>
double integral(F f, double from, double to) {
  constexpr int steps = 2000;
  const double h = (to - from) / steps;
  double sum = f(from) + f(to);
  for (int i = 1; i < steps; ++i) sum += (i % 2 ? 4 : 2) * f(from + i * h);
  return sum * h / 3;
}

double length_of_sum(const Cell& cell, Index replicate) {
  const auto head = draw_cell_head(cell, replicate, 0, Purpose::measured);
  return (head.Q.row(0) + head.K.row(0)).norm();
}

}  // namespace

// K'_ij = exp((|q_i|^2 + |k_j|^2) / 2) / m sum_l cos(omega_l.(q_i - k_j)). More rows than are worked on at once.
TEST_CASE("the greatest error of an entry is that of all pairs that the mask shows", "[methods]") {
  for (const bool causal : {false, true}) {
    const Cell cell = double_cell("kernel-entries", "performer:features=trig,m=8",
                                  {.nq = 300, .nk = 300, .d = 4, .dv = 1, .mask = {.causal = causal}});
    Context context;
    ExactCache exact;
    const Matrix<double> omega = Task{cell, 1, context, exact}.method<double>(0, 1)->state().at("projection");
    const auto head = draw_cell_head(cell, 1, 0, Purpose::measured);
    double greatest = 0;
    for (Index i = 0; i < 300; ++i)
      for (Index j = 0; j < (causal ? i + 1 : 300); ++j) {
        double sum = 0;
        for (Index l = 0; l < 8; ++l) sum += std::cos(omega.row(l).dot(head.Q.row(i) - head.K.row(j)));
        const double size = std::exp((head.Q.row(i).squaredNorm() + head.K.row(j).squaredNorm()) / 2);
        greatest = std::max(greatest, std::abs(size * sum / 8 - std::exp(head.Q.row(i).dot(head.K.row(j)))));
      }
    CHECK(measured(cell, 1)["greatest_error"] == Approx(greatest).epsilon(1e-10));
  }
  CHECK_THROWS_AS(measured(double_cell("kernel-entries", "uniform", {.nq = 8, .nk = 8, .d = 4, .dv = 1}), 0), Skip);
}

// In two dimensions two orthogonal vectors are r_1 (cos t, sin t) and r_2 (-sin t, cos t) with Rayleigh lengths, so
// that with z = |q + k|:  MSE_iid - MSE_ort = (1 - exp(-z^2) E exp((omega_1 + omega_2).z)) / 2 in units of SM^2.
TEST_CASE("the gain of two orthogonal vectors in the plane is its integral", "[unit]") {
  const Cell cell = double_cell("performer-bounds", "performer:m=2", {.nq = 1, .nk = 1, .d = 2, .dv = 1});
  for (const Index replicate : {0, 1, 2}) {
    const double z = length_of_sum(cell, replicate);
    const auto rayleigh = [](double t) {
      return integral([t](double r) { return r * std::exp(r * t - r * r / 2); }, 0, 14);
    };
    const double both = integral([&](double t) { return rayleigh(z * std::cos(t)) * rayleigh(z * std::sin(t)); }, 0,
                                 2 * std::numbers::pi) /
                        (2 * std::numbers::pi);
    const auto got = measured(cell, replicate);
    CHECK(got["orthogonal_gain"] == Approx((1 - std::exp(-z * z) * both) / 2).epsilon(1e-8));
    const double share = 1 - std::exp(-z * z / 2);
    CHECK(got["orthogonal_gain_bound"] == Approx(share * share / 4).epsilon(1e-12));  // 2 (m - 1) / (m (d + 2))
    CHECK(got["orthogonal_gain"] >= got["orthogonal_gain_bound"]);
  }
}

// On the sphere of radius sqrt(3) in space, E exp(omega.z) = sinh(sqrt(3) z) / (sqrt(3) z), and SM has exp(z^2 / 2).
TEST_CASE("vectors of norm sqrt(d) estimate what Theorem 1 speaks of", "[unit]") {
  const Cell cell = double_cell("performer-bounds", "performer:m=2", {.nq = 1, .nk = 1, .d = 3, .dv = 1});
  const double z = length_of_sum(cell, 0), s = std::numbers::sqrt3 * z;
  const auto got = measured(cell, 0);
  CHECK(got["regularised_ratio"] == Approx(std::sinh(s) / s * std::exp(-z * z / 2)).epsilon(1e-10));
  CHECK(got["regularised_ratio_bound"] == Approx(1 - 2 / std::cbrt(3.0)).epsilon(1e-12));

  const auto refusal = [](const std::string& method) {
    const Cell other = double_cell("performer-bounds", method, {.nq = 1, .nk = 1, .d = 3, .dv = 1});
    find<ExperimentEntry>("performer-bounds").check(other);
  };
  CHECK_THROWS_AS(refusal("performer:m=4"), Misuse);  // more vectors than dimensions
  CHECK_THROWS_AS(refusal("performer:m=2,features=trig"), Misuse);
  CHECK_THROWS_AS(refusal("softmax"), Misuse);
}

}  // namespace attnbench::kernel_bounds_test
