// Methods at precision bf16: the rounding of their products' operands shows in their outputs, and threads change no
// bit.
#include <cmath>

#include "harness/experiment/experiment.hpp"
#include "harness/runner/plan.hpp"
#include "tests/cases.hpp"
#include "tests/catch.hpp"

namespace attnbench::bfloat16_test {

namespace {

// The output of a method in that precision on one gaussian head, in double.
Matrix<double> output(const std::string& method, Precision precision) {
  const auto cells = expand({.experiment = "attention-error",
                             .methods = {method},
                             .inputs = {"gaussian"},
                             .n = {256},
                             .d = {16},
                             .precision = precision});
  Context context = context_of(cells[0], 1);
  ExactCache exact;
  return Task{cells[0], 0, context, exact}.output();
}

double relative(const Matrix<double>& X, const Matrix<double>& reference) {
  return (X - reference).norm() / reference.norm();
}

}  // namespace

TEST_CASE("a method at bf16 has the rounding of its products' operands", "[methods]") {
  // A number of 8 significant bits is off by at most 2^-8 of itself. Spread evenly over a spacing, and with logarithms
  // of numbers spread evenly over a binade, the root of the mean square is 2^-8 sqrt(3 / (8 log 2) / 3).
  const double unit = std::exp2(-8) * std::sqrt(1 / (8 * std::log(2)));
  // Logits q.k of variance 1 are off by sqrt(2) unit, weights by one unit more as operands, values by one: independent
  // errors of independent terms, so that outputs are off by sqrt(2 + 1 + 1) units.
  const double of_softmax = 2 * unit;
  const Matrix<double> softmax = output("softmax", Precision::f64);
  const double error = relative(output("softmax", Precision::bf16), softmax);
  INFO("softmax: " << error << ", expected about " << of_softmax);
  CHECK(error > 0.8 * of_softmax);
  CHECK(error < 1.25 * of_softmax);
  CHECK(error > 1000 * relative(output("softmax", Precision::f32), softmax));
  // Exponents w.k have the variance |k|^2, about sqrt(d) = 4: features are off by sqrt(2 * 4) units on either side, and
  // by one more as operands, as are values and the sums of features times values. Errors of features that share a
  // vector w are not independent, so this is the size alone.
  const double of_performer = std::sqrt(2 * (8 + 1) + 2) * unit;
  const Matrix<double> performer = output("performer:m=64", Precision::f64);
  const double other = relative(output("performer:m=64", Precision::bf16), performer);
  INFO("performer: " << other << ", expected about " << of_performer);
  CHECK(other > of_performer / 3);
  CHECK(other < of_performer * 3);
  CHECK(other > 1000 * relative(output("performer:m=64", Precision::f32), performer));
}

TEST_CASE("threads change no bit of products of bfloat16", "[methods][every-method]") {
  const TestHead problem = gaussian_problem({.nq = 200, .nk = 200, .d = 8, .dv = 5}, 0.8);
  const HeadData<float> head = problem.head.cast<float>();
  for (const Params& variant : all_variants())
    for (const bool causal : {false, true}) {
      Shape shape = problem.shape;
      shape.mask.causal = causal;
      const Params params = with_small_budgets(variant, shape);
      const Claims claims = find<MethodEntry>(params.name()).claims(params, shape);
      if (!claims.no_form.empty()) continue;
      const Case one{params, claims, shape, problem};
      INFO(to_string(one));
      const auto method = one.draw<float>();
      const auto attended = [&](int threads) {
        Matrix<float> out(shape.nq, shape.dv);
        Context context(threads, Rounding::none, Operands::bf16);
        method->attend(head.view(), shape.mask, context, out);
        return out;
      };
      CHECK(identical(attended(3), attended(1)));
    }
}

}  // namespace attnbench::bfloat16_test
