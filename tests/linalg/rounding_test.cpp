// Half precision, emulated: numbers round as the formats say, and methods show what it does to them.
#include "harness/linalg/rounding.hpp"

#include <cmath>
#include <limits>

#include "harness/experiment/experiment.hpp"
#include "harness/linalg/rows.hpp"
#include "harness/runner/plan.hpp"
#include "tests/misuse.hpp"

namespace attnbench::rounding_test {

namespace {

template <class T>
T rounded(Rounding rounding, double x) {
  Matrix<T> X = Matrix<T>::Constant(1, 1, static_cast<T>(x));
  round_to<T>(rounding, X);
  return X(0, 0);
}

// The output of a method on gaussian inputs of that scale, and the exact one, both in double.
struct Outputs {
  Matrix<double> method, exact;
  double relative_error() const { return (method - exact).norm() / exact.norm(); }
};
Outputs outputs(const std::string& method, Rounding rounding, const std::string& input = "gaussian") {
  const auto cells = expand({.experiment = "attention-error",
                             .methods = {method},
                             .inputs = {input},
                             .n = {256},
                             .d = {16},
                             .rounding = rounding});
  Context context(1, rounding);
  ExactCache exact;
  const Task task{cells[0], 0, context, exact};
  return {task.output(), exact.get(cells[0], 0)->output};
}

}  // namespace

TEMPLATE_TEST_CASE("numbers round to nearest, ties to even, and overflow as the formats do", "[unit]", float, double) {
  const double infinity = std::numeric_limits<double>::infinity();
  // f16 has 11 significant bits, a largest number of 65504 and a smallest of 2^-24; bf16 has 8 and float's range.
  struct Case {
    Rounding rounding;
    double given, expected;
  };
  for (const auto& [rounding, given, expected] :
       std::vector<Case>{{Rounding::f16, 1 + std::exp2(-11), 1},                      // a tie, down to even
                         {Rounding::f16, 1 + 3 * std::exp2(-11), 1 + std::exp2(-9)},  // a tie, up to even
                         {Rounding::f16, 1 + std::exp2(-11) + std::exp2(-20), 1 + std::exp2(-10)},  // above the tie
                         {Rounding::f16, 65504, 65504},
                         {Rounding::f16, 65519.99, 65504},
                         {Rounding::f16, 65520, infinity},
                         {Rounding::f16, -1e6, -infinity},
                         {Rounding::f16, std::exp2(-24), std::exp2(-24)},
                         {Rounding::f16, std::exp2(-26), 0},
                         {Rounding::bf16, 1 + std::exp2(-8), 1},
                         {Rounding::bf16, 1 + 3 * std::exp2(-8), 1 + std::exp2(-6)},
                         {Rounding::bf16, 65520, 65536},
                         {Rounding::bf16, 1e38, 0x1.2cp+126},
                         {Rounding::none, 1 + std::exp2(-20), 1 + std::exp2(-20)}}) {
    INFO(to_string(rounding) << " of " << given);
    CHECK(static_cast<double>(rounded<TestType>(rounding, given)) == expected);
  }
}

TEST_CASE("names of formats are read back, others are refused", "[unit]") {
  for (const Rounding rounding : {Rounding::none, Rounding::f16, Rounding::bf16})
    CHECK(parse_rounding(to_string(rounding)) == rounding);
  CHECK(contains(misuse_of([] { parse_rounding("fp8"); }), "round fp8: expected none, f16 or bf16"));
}

TEMPLATE_TEST_CASE("the seam's results are numbers of the format, sums inside a product are not", "[unit]", float,
                   double) {
  // Four times 1 + 2^-9, then 2^-6: 4 + 3/128 in all, which bf16 (steps of 1/32 there) holds as 4 + 1/32. Partial sums
  // rounded to bf16 would be 1, 2, 3, 4 and, with the tie of 4 + 1/64 going to even, 4.
  Matrix<TestType> A = Matrix<TestType>::Constant(2, 5, TestType(1 + 1.0 / 512)), B = Matrix<TestType>::Ones(5, 2),
                   C(2, 2);
  A.col(4).setConstant(TestType(1.0 / 64));
  Context bf16(1, Rounding::bf16);
  multiply<TestType>(bf16, A, B, C);
  CHECK(C == Matrix<TestType>::Constant(2, 2, TestType(4 + 1.0 / 32)));
  Matrix<TestType> X(1, 2);
  X << TestType(0), TestType(-1);
  softmax_within<TestType>(bf16, X, 0, 0, 2);
  for (Index j = 0; j < 2; ++j) CHECK(X(0, j) == rounded<TestType>(Rounding::bf16, static_cast<double>(X(0, j))));
  CHECK(static_cast<double>(X(0, 0)) == Approx(1 / (1 + std::exp(-1))).epsilon(1.0 / 128));
  std::vector<TestType> shift{TestType(0.3)};
  X << TestType(0), TestType(-1);
  exponentiate_rows<TestType>(bf16, X, shift);
  for (Index j = 0; j < 2; ++j) CHECK(X(0, j) == rounded<TestType>(Rounding::bf16, static_cast<double>(X(0, j))));
}

TEST_CASE("softmax has the rounding error of its format", "[methods]") {
  // Each number carries a relative error of at most u = 2^-9 (bf16) or 2^-12 (f16), here of logits of order 1, weights
  // and outputs: between u / 8 and 8 u after averaging.
  for (const auto& [rounding, unit] : {std::pair(Rounding::bf16, std::exp2(-9)), {Rounding::f16, std::exp2(-12)}}) {
    const double error = outputs("softmax", rounding).relative_error();
    INFO(to_string(rounding) << ": " << error);
    CHECK(error > unit / 8);
    CHECK(error < 8 * unit);
  }
  CHECK(outputs("softmax", Rounding::none).relative_error() < 1e-12);
}

TEST_CASE("random features of long vectors lose their keys in half precision, unless stabilised in full", "[methods]") {
  // Features exp(w.k - |k|^2 / 2) with |k|^2 about d^(1/2) 3^2 = 36 lie around e^-18 and further down; f16 ends at
  // 2^-24, about e^-17. Libraries stabilise by the greatest w.k, which leaves the norms in: then no key is left.
  // Divided by the greatest feature as well, the keys that count are near 1.
  const std::string long_vectors = "gaussian:scale=3";
  const std::string libraries = "performer:m=64,stabiliser=projection-only", full = "performer:m=64";
  CHECK(outputs(libraries, Rounding::f16, long_vectors).method.norm() == 0);
  CHECK(outputs(libraries, Rounding::bf16, long_vectors).method.norm() > 0);
  // Logits of up to about 50 carry 50 x 2^-12, 0.012, each, and that much goes to the features: four times that is
  // left.
  for (const auto& [method, input] : {std::pair(full, long_vectors), {libraries, std::string("gaussian:scale=0.3")}}) {
    const Matrix<double> whole = outputs(method, Rounding::none, input).method;
    CHECK((outputs(method, Rounding::f16, input).method - whole).norm() < 0.05 * whole.norm());
  }
}

TEST_CASE("logits beyond the largest number of the format end a cell as invalid", "[methods]") {
  // w.k of |k| about 2 10^4 passes 65504, and infinity less infinity is no number.
  CHECK_THROWS_AS(outputs("performer:m=64", Rounding::f16, "gaussian:scale=1e4"), NumericallyInvalid);
  CHECK(outputs("performer:m=64", Rounding::bf16, "gaussian:scale=1e4").method.norm() > 0);
}

}  // namespace attnbench::rounding_test
