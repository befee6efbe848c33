// The cases of the tests of methods: every registered method in variants that its own entry spells out, on heads of
// awkward sizes, under every kind of mask. The list includes every method and feature map as soon as it is registered.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "harness/core/approximation.hpp"
#include "harness/machine/peak_memory.hpp"

namespace attnbench {

constexpr std::uint64_t test_seed = 20240711;

struct TestHead {
  Shape shape;                   // the mask is a case's
  HeadData<double> head;         // numbers that float holds exactly, so that both scalar types see the same input
  HeadData<double> calibration;  // of the same sizes, for fitted methods
};

// Gaussian Q and K with entries of that standard deviation, Gaussian V.
TestHead gaussian_problem(Shape shape, double scale);
// The same, with Q and K scaled so that the largest |q.k| is `largest`.
TestHead problem_with_logits(Shape shape, double largest);
// Sizes 1, 7, 65, 300 (multiples of no block), nq != nk both ways, dv != d, dv = 1, d = 1, and more keys than one
// partial sum over keys takes (1024). Logits of a few units. Under sanitizers only small ones: they reach the same code
// ten times sooner.
const std::vector<TestHead>& problems();
// Bidirectional and causal, aligned at the ends or at the beginnings, with padding, with rows that see nothing.
std::vector<Mask> masks(const Shape& shape);

// The method at its defaults and with each value of each choice, flag and entry parameter, one at a time; a value that
// names a method or brings parameters of its own has those varied as well.
std::vector<Params> variants(const std::string& method);
// Of every method; with the environment's ATTNBENCH_TEST_ONLY, those whose spec has that text in it.
std::vector<Params> all_variants();
bool all_are_tested();  // there is no ATTNBENCH_TEST_ONLY
// The same spec with budgets that suit the shape, of nested specs as well: m = 32, r = 16 (at most the keys), window =
// 5 and so on (cases.cpp).
Params with_small_budgets(const Params& params, const Shape& shape);

template <class T>
std::unique_ptr<Approximation<T>> draw_method(const Params& params, Shape shape, const TestHead& problem,
                                              const Tensors* state = nullptr, Index replicate = 0) {
  shape.precision = std::is_same_v<T, float> ? Precision::f32 : Precision::f64;
  const Head<double> calibration = problem.calibration.view();
  return make_approximation<T>({.shape = shape,
                                .params = params,
                                .streams = Streams(test_seed),
                                .replicate = replicate,
                                .calibration = &calibration,
                                .state = state});
}

// The method of a spec for that head under that mask.
std::unique_ptr<Approximation<double>> drawn(const std::string& spec, const TestHead& problem, Mask mask = {},
                                             const Tensors* state = nullptr, Index replicate = 0);

struct Case {
  Params params;
  Claims claims;
  Shape shape;  // with the mask
  const TestHead& problem;

  template <class T>
  std::unique_ptr<Approximation<T>> draw(const Tensors* state = nullptr, Index replicate = 0) const {
    return draw_method<T>(params, shape, problem, state, replicate);
  }
};

std::string to_string(const Mask& mask);
std::string to_string(const Case& one);

// Calls body(case) for every variant, problem and mask that the variant has a form for. A method at its defaults has
// them all. With a changed parameter it has every third of the large problems, in turn, which cost more than all others
// together; under sanitizers every third of all.
template <class Body>
void for_each_case(const Body& body) {
  Index turn = 0;
  for (const Params& variant : all_variants())
    for (const TestHead& problem : problems())
      for (const Mask& mask : masks(problem.shape)) {
        const bool dear = sanitized || problem.shape.nq * problem.shape.nk >= 90'000;
        if (dear && variant.spec() != variant.name() && ++turn % 3 > 0) continue;
        Shape shape = problem.shape;
        shape.mask = mask;
        const Params params = with_small_budgets(variant, shape);
        const Claims claims = find<MethodEntry>(params.name()).claims(params, shape);
        if (!claims.no_form.empty()) continue;
        body(Case{params, claims, shape, problem});
      }
}

// attend into memory that held NaN, which shows every number that it does not write.
template <class T>
Matrix<T> attend(const Approximation<T>& method, const HeadData<T>& head, Mask mask, int threads = 1) {
  Matrix<T> out = Matrix<T>::Constant(head.Q.rows(), head.V.cols(), std::numeric_limits<T>::quiet_NaN());
  Context context(threads);
  method.attend(head.view(), mask, context, out);
  return out;
}

// How much rounding may grow in each row: how far the row moves, in units of V's size, when every number of the input
// is changed by one part in 10^9 up or down at random (the most of three tries), over that part. 1 for methods without
// negative entries, where nothing cancels. It holds for normalisers that cancel and for inverses alike.
std::vector<double> row_conditions(const Case& one, const Approximation<double>& method);

// The largest |got - want| of any row over that row's condition and its size, or `size` where that is larger; infinite
// when something is no number.
double worst_error(const Matrix<double>& got, const Matrix<double>& want, const std::vector<double>& condition,
                   double size);

// The same bits, signs of zeros included.
template <class T>
bool identical(const Matrix<T>& a, const Matrix<T>& b) {
  return a.rows() == b.rows() && a.cols() == b.cols() &&
         std::equal(reinterpret_cast<const char*>(a.data()), reinterpret_cast<const char*>(a.data() + a.size()),
                    reinterpret_cast<const char*>(b.data()));
}

}  // namespace attnbench
