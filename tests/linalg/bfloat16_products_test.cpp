// Products whose operands are rounded to bfloat16, against plain loops in double over numbers that this file rounds by
// arithmetic of its own.
#include "harness/linalg/bfloat16_products.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "harness/linalg/gathered.hpp"
#include "harness/linalg/products.hpp"
#include "harness/linalg/vector.hpp"
#include "harness/random/streams.hpp"
#include "tests/catch.hpp"

namespace attnbench::bfloat16_products_test {

namespace {

// 8 significant bits; nearbyint rounds ties to even.
double nearest_bfloat16(double x) {
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8);
}

// A matrix inside a larger one, so that its rows are not next to each other.
class Strided {
 public:
  Strided(Generator& generator, Index rows, Index columns)
      : numbers_(standard_normal(generator, rows + 1, columns + 3).cast<float>()), rows_(rows), columns_(columns) {}
  In<float> in() const { return {numbers_.data() + 1, rows_, columns_, numbers_.cols()}; }
  Out<float> out() { return {numbers_.data() + 1, rows_, columns_, numbers_.cols()}; }

 private:
  Matrix<float> numbers_;
  Index rows_, columns_;
};

Matrix<double> in_double(const In<float>& X, bool transposed, bool rounded) {
  Matrix<double> Y = X.cast<double>();
  if (rounded) Y = Y.unaryExpr([](double x) { return nearest_bfloat16(x); }).eval();
  if (transposed) Y = Y.transpose().eval();
  return Y;
}

// before + A B by plain loops, where A and B are rounded, or as they are.
struct Loops {
  Matrix<double> C, magnitude;  // magnitude: the sums of the terms' absolute values
  Loops(const Matrix<double>& A, const Matrix<double>& B, Matrix<double> before)
      : C(std::move(before)), magnitude(C.cwiseAbs()) {
    for (Index i = 0; i < A.rows(); ++i)
      for (Index l = 0; l < A.cols(); ++l)
        for (Index j = 0; j < B.cols(); ++j) {
          C(i, j) += A(i, l) * B(l, j);
          magnitude(i, j) += std::abs(A(i, l) * B(l, j));
        }
  }
};

// Sums of k exact terms and what was there before have an error of at most k + 1 halves of float's spacing, relative to
// the sum of absolute values (Higham 2002, Accuracy and Stability of Numerical Algorithms, 4.2).
Index beyond_rounding(const In<float>& C, const Loops& loops, Index k) {
  Index wrong = 0;
  for (Index i = 0; i < C.rows(); ++i)
    for (Index j = 0; j < C.cols(); ++j) {
      const double bound = static_cast<double>(k + 1) * 0x1p-24 * loops.magnitude(i, j);
      wrong += std::abs(static_cast<double>(C(i, j)) - loops.C(i, j)) <= bound ? 0 : 1;
    }
  return wrong;
}

double relative(const Matrix<double>& X, const Matrix<double>& reference) {
  return (X - reference).norm() / reference.norm();
}

// a, k, b of an (a x k) (k x b) product: below and above tiles of 4 or 6 rows, panels of 64 columns and 512 numbers of
// a sum; single rows and columns; nothing.
constexpr std::array<std::array<Index, 3>, 16> shapes = {{{1, 1, 1},
                                                          {3, 5, 2},
                                                          {4, 2, 16},
                                                          {17, 31, 13},
                                                          {64, 64, 64},
                                                          {65, 129, 33},
                                                          {130, 7, 66},
                                                          {1, 300, 5},
                                                          {5, 300, 1},
                                                          {2, 512, 63},
                                                          {6, 513, 70},
                                                          {9, 1025, 130},
                                                          {5, 0, 4},
                                                          {0, 3, 4},
                                                          {4, 3, 0},
                                                          {0, 0, 0}}};

const Context bfloat16_context(1, Rounding::none, Operands::bf16);

}  // namespace

TEST_CASE("numbers become the nearest bfloat16, ties to even", "[linalg][unit]") {
  const auto rounded = [](float x) {
    const Matrix<float> X = Matrix<float>::Constant(1, 1, x);
    return rounded_to_bfloat16(X)(0, 0);
  };
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const auto& [given, expected] : {std::pair(1 + 0x1p-8F, 1.0F),           // a tie, down to even
                                        {1 + 0x3p-8F, 1 + 0x1p-6F},             // a tie, up to even
                                        {1 + 0x1p-8F + 0x1p-20F, 1 + 0x1p-7F},  // above the tie
                                        {-1 - 0x3p-8F, -1 - 0x1p-6F},
                                        {0x1.ffp0F, 2.0F},
                                        {0x1.fep127F, 0x1.fep127F},  // the largest
                                        {0x1.ffp127F, infinity},
                                        {-infinity, -infinity},
                                        {0x1p-130F, 0x1p-130F}}) {
    INFO(given);
    CHECK(rounded(given) == expected);
  }
  CHECK(std::signbit(rounded(-0.0F)));
  for (const std::uint32_t nan : {0x7f800001U, 0x7fffffffU, 0xffffffffU})
    CHECK(std::isnan(rounded(std::bit_cast<float>(nan))));
  Generator generator(7);
  const Matrix<float> X = standard_normal(generator, 50, 41).cast<float>();
  CHECK(rounded_to_bfloat16(X).cast<double>() == in_double(X, false, true));
}

TEST_CASE("products of bfloat16 are those of plain loops over rounded numbers, and of no others", "[linalg][unit]") {
  Generator generator(11);
  for (const auto& shape : shapes) {
    const Index a = shape[0], k = shape[1], b = shape[2];
    CAPTURE(a, k, b);
    const Strided A(generator, a, k), At(generator, k, a), B(generator, k, b), Bt(generator, b, k);
    Strided C(generator, a, b);
    const Matrix<double> zero = Matrix<double>::Zero(a, b);
    Context context = bfloat16_context;
    const auto judge = [&](const Strided& left, bool left_transposed, const Strided& right, bool right_transposed,
                           const Matrix<double>& before) {
      const auto loops = [&](bool rounded) {
        return Loops(in_double(left.in(), left_transposed, rounded), in_double(right.in(), right_transposed, rounded),
                     before);
      };
      const Loops expected = loops(true);
      CHECK(beyond_rounding(C.in(), expected, k) == 0);
      // Power: the rounding of both operands moves entries by about 2^-9, and these by 2^-24.
      if (a * k * b > 1) CHECK(relative(loops(false).C, expected.C) > 1e-4);
    };
    const auto nan = [&] { C.out().setConstant(NAN); };  // old numbers in C must not matter

    nan();
    multiply<float>(context, A.in(), B.in(), C.out());
    judge(A, false, B, false, zero);
    nan();
    multiply_transposed<float>(context, A.in(), Bt.in(), C.out());
    judge(A, false, Bt, true, zero);
    C.out().setConstant(3);
    multiply_add<float>(context, A.in(), B.in(), C.out());
    judge(A, false, B, false, Matrix<double>::Constant(a, b, 3));
    C.out().setConstant(3);
    transposed_multiply_add<float>(context, At.in(), B.in(), C.out());
    judge(At, true, B, false, Matrix<double>::Constant(a, b, 3));
    CHECK(context.work.flops == 8.0 * static_cast<double>(a * k * b));

    // The packing and the tiles of the instruction, whose step is emulated where it is not there.
    for (const bool left_transposed : {false, true})
      for (const bool right_transposed : {false, true}) {
        CAPTURE(left_transposed, right_transposed);
        const Strided &left = left_transposed ? At : A, &right = right_transposed ? Bt : B;
        nan();
        multiply_bfloat16({left.in(), left_transposed}, {right.in(), right_transposed}, false, C.out());
        judge(left, left_transposed, right, right_transposed, zero);
        C.out().setConstant(3);
        multiply_bfloat16({left.in(), left_transposed}, {right.in(), right_transposed}, true, C.out());
        judge(left, left_transposed, right, right_transposed, Matrix<double>::Constant(a, b, 3));
      }
  }
}

TEST_CASE("needed columns of a product of bfloat16 round both operands, and others keep their values",
          "[linalg][unit]") {
  Generator generator(19);
  const Index vector = lanes<float>;
  const Strided A(generator, 13, 31), B(generator, 31, 2 * vector);
  const std::vector<ColumnRange> needed{{0, vector}, {vector, 2 * vector}, {0, 2 * vector}};  // of rows 0, 6 and 12 on
  Strided C(generator, 13, 2 * vector);
  C.out().setConstant(7);
  Context context = bfloat16_context;
  multiply_needed<float>(context, A.in(), B.in(), needed, C.out());
  Loops expected(in_double(A.in(), false, true), in_double(B.in(), false, true), Matrix<double>::Zero(13, 2 * vector));
  expected.C.block(0, vector, 6, vector).setConstant(7);
  expected.C.block(6, 0, 6, vector).setConstant(7);
  CHECK(beyond_rounding(C.in(), expected, 31) == 0);
}

TEST_CASE("products with rows that lie apart round both operands to bfloat16", "[linalg][unit]") {
  Generator generator(13);
  const Index columns = 70;
  const Strided x(generator, 1, columns), X(generator, 23, columns), weights(generator, 1, 9);
  const std::vector<Index> rows{4, 22, 0, 4, 9, 17, 2, 11, 3};
  Matrix<float> products(1, 9), sum = Matrix<float>::Constant(1, columns, 2), chosen(9, columns);
  for (Index t = 0; t < 9; ++t) chosen.row(t) = X.in().row(rows[static_cast<size_t>(t)]);
  Context context = bfloat16_context;
  multiply_gathered<float>(context, x.in(), X.in(), rows, products);
  add_gathered<float>(context, weights.in(), X.in(), rows, sum);
  CHECK(context.work.flops == 4.0 * 9 * 70);
  const Loops of_products(in_double(x.in(), false, true), in_double(chosen, true, true), Matrix<double>::Zero(1, 9)),
      of_sum(in_double(weights.in(), false, true), in_double(chosen, false, true),
             Matrix<double>::Constant(1, columns, 2));
  CHECK(beyond_rounding(products, of_products, columns) == 0);
  CHECK(beyond_rounding(sum, of_sum, 9) == 0);
  CHECK(relative(Loops(in_double(x.in(), false, false), in_double(chosen, true, false), Matrix<double>::Zero(1, 9)).C,
                 of_products.C) > 1e-4);
}

TEST_CASE("products of double stay in double, and blocks hand on what products read", "[linalg][unit]") {
  Generator generator(17);
  const Matrix<double> A = standard_normal(generator, 7, 9), B = standard_normal(generator, 9, 5);
  Matrix<double> plain(7, 5), under_bfloat16(7, 5);
  Context context, rounding = bfloat16_context;
  multiply<double>(context, A, B, plain);
  multiply<double>(rounding, A, B, under_bfloat16);
  CHECK(plain == under_bfloat16);
  for (const int threads : {1, 3}) {
    Context of_threads(threads, Rounding::f16, Operands::bf16);
    std::vector<int> handed_on(4, 0);
    of_threads.for_blocks(4, 1, [&](Context& own, Index block, Index) {
      handed_on[static_cast<size_t>(block)] = own.operands() == Operands::bf16 && own.rounding() == Rounding::f16;
    });
    CHECK(handed_on == std::vector<int>(4, 1));
  }
}

}  // namespace attnbench::bfloat16_products_test
