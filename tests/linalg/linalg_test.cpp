// The seam: products and row operations against plain loops, blocks over threads, singular values of known matrices.
//
// Entries are small whole numbers wherever a sum is checked: every order of adding them is exact in float and double,
// so that results are compared for equality.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <mutex>
#include <numeric>
#include <stdexcept>

#include "harness/linalg/context.hpp"
#include "harness/linalg/exp.hpp"
#include "harness/linalg/exponentials.hpp"
#include "harness/linalg/gathered.hpp"
#include "harness/linalg/lapack.hpp"
#include "harness/linalg/products.hpp"
#include "harness/linalg/rows.hpp"
#include "harness/linalg/vector.hpp"
#include "harness/random/streams.hpp"
#include "tests/catch.hpp"

namespace attnbench::linalg_test {

namespace {

// A rows x columns view inside a larger matrix whose other entries are -99 and must stay so.
template <class T>
class Framed {
 public:
  Framed(Generator& generator, Index row_count, Index column_count)
      : whole_(Matrix<T>::Constant(row_count + 2, column_count + 5, T(-99))), rows_(row_count), columns_(column_count) {
    for (Index i = 0; i < rows_; ++i)
      for (Index j = 0; j < columns_; ++j)
        whole_(i + 1, j + 2) = static_cast<T>(static_cast<int>(generator() % 17) - 8);
  }
  Out<T> view() { return {whole_.data() + whole_.cols() + 2, rows_, columns_, whole_.cols()}; }
  bool frame_intact() const {
    for (Index i = 0; i < whole_.rows(); ++i)
      for (Index j = 0; j < whole_.cols(); ++j) {
        const bool inside = i >= 1 && i <= rows_ && j >= 2 && j < columns_ + 2;
        if (!inside && whole_(i, j) != T(-99)) return false;
      }
    return true;
  }

 private:
  Matrix<T> whole_;
  Index rows_, columns_;
};

// C + A B by loops; each of the two may be read transposed.
template <class T>
Matrix<T> by_loops(const In<T>& A, bool transpose_a, const In<T>& B, bool transpose_b, Matrix<T> C) {
  const Index inner = transpose_a ? A.rows() : A.cols();
  for (Index i = 0; i < C.rows(); ++i)
    for (Index j = 0; j < C.cols(); ++j)
      for (Index k = 0; k < inner; ++k)
        C(i, j) += (transpose_a ? A(k, i) : A(i, k)) * (transpose_b ? B(j, k) : B(k, j));
  return C;
}

// a, k, b of an (a x k) (k x b) product: blocks and remainders of every SIMD width, single rows and columns, nothing.
constexpr std::array<std::array<Index, 3>, 14> product_shapes = {{{1, 1, 1},
                                                                  {3, 5, 2},
                                                                  {17, 31, 13},
                                                                  {64, 64, 64},
                                                                  {65, 129, 33},
                                                                  {130, 7, 66},
                                                                  {1, 300, 1},
                                                                  {200, 1, 7},
                                                                  {40, 60, 1},
                                                                  {1, 60, 40},
                                                                  {5, 0, 4},
                                                                  {0, 3, 4},
                                                                  {4, 3, 0},
                                                                  {0, 0, 0}}};

double relative_error(double value, double expected) { return std::abs(value / expected - 1); }

}  // namespace

TEMPLATE_TEST_CASE("products with rows that lie apart equal plain loops, and count their work", "[unit]", float,
                   double) {
  using T = TestType;
  Generator generator(5);
  for (const Index columns : {1, 7, 8, 16, 19, 64, 70, 131})
    for (const Index count : {0, 1, 2, 3, 16, 17, 40}) {
      Framed<T> x(generator, 1, columns), X(generator, 23, columns), products(generator, 1, count);
      Framed<T> weights(generator, 1, count), sum(generator, 1, columns);
      std::vector<Index> rows;
      for (Index t = 0; t < count; ++t) rows.push_back(static_cast<Index>(generator() % 23));  // some several times
      const Matrix<T> before = sum.view();
      Context context;
      multiply_gathered<T>(context, x.view(), X.view(), rows, products.view());
      add_gathered<T>(context, weights.view(), X.view(), rows, sum.view());
      CHECK(context.work.flops == 4.0 * static_cast<double>(count * columns));
      Matrix<T> expected = before;
      for (Index t = 0; t < count; ++t) {
        CHECK(products.view()(0, t) == X.view().row(rows[static_cast<size_t>(t)]).dot(x.view().row(0)));
        expected += weights.view()(0, t) * X.view().row(rows[static_cast<size_t>(t)]);
      }
      CHECK(Matrix<T>(sum.view()) == expected);
      CHECK((x.frame_intact() && X.frame_intact() && products.frame_intact() && weights.frame_intact() &&
             sum.frame_intact()));
    }
}

TEMPLATE_TEST_CASE("products of strided views of any shape are those of plain loops", "[unit]", float, double) {
  using T = TestType;
  Generator generator = Streams(1).stream("products");
  for (const auto& [a, k, b] : product_shapes) {
    CAPTURE(a, k, b);
    Framed<T> A(generator, a, k), A_transposed(generator, k, a), B(generator, k, b), B_transposed(generator, b, k);
    Framed<T> C(generator, a, b);
    const double flops = 2 * static_cast<double>(a * k * b);
    const Matrix<T> zero = Matrix<T>::Zero(a, b);
    Context context;

    C.view().setConstant(std::numeric_limits<T>::quiet_NaN());  // old numbers in C must not matter
    multiply<T>(context, A.view(), B.view(), C.view());
    CHECK(C.view() == by_loops<T>(A.view(), false, B.view(), false, zero));

    C.view().setConstant(std::numeric_limits<T>::quiet_NaN());
    multiply_transposed<T>(context, A.view(), B_transposed.view(), C.view());
    CHECK(C.view() == by_loops<T>(A.view(), false, B_transposed.view(), true, zero));

    const Matrix<T> before = Matrix<T>::Constant(a, b, T(3));
    C.view() = before;
    multiply_add<T>(context, A.view(), B.view(), C.view());
    CHECK(C.view() == by_loops<T>(A.view(), false, B.view(), false, before));

    C.view() = before;
    transposed_multiply_add<T>(context, A_transposed.view(), B.view(), C.view());
    CHECK(C.view() == by_loops<T>(A_transposed.view(), true, B.view(), false, before));

    C.view().setConstant(std::numeric_limits<T>::quiet_NaN());
    transposed_multiply<T>(context, A_transposed.view(), B.view(), C.view());
    CHECK(C.view() == by_loops<T>(A_transposed.view(), true, B.view(), false, zero));

    CHECK(context.work.flops == 5 * flops);
    CHECK(context.work.exps == 0);
    for (const Framed<T>* framed : {&A, &A_transposed, &B, &B_transposed, &C}) CHECK(framed->frame_intact());
  }
}

TEMPLATE_TEST_CASE("a product of which some columns are needed computes these and leaves the others", "[unit]", float,
                   double) {
  using T = TestType;
  Generator generator = Streams(1).stream("needed columns");
  for (const Index vectors : {1, 4, 9})
    for (const Index rows : {1, 5, 6, 7, 13, 40})
      for (const Index inner : {0, 1, 5, 64}) {
        CAPTURE(vectors, rows, inner);
        const Index columns = vectors * lanes<T>;
        Framed<T> A(generator, rows, inner), B(generator, inner, columns), C(generator, rows, columns);
        std::vector<ColumnRange> needed;
        double computed = 0;
        Matrix<T> expected = C.view();
        const Matrix<T> whole =
            by_loops<T>(A.view(), false, B.view(), false, Matrix<T>(Matrix<T>::Zero(rows, columns)));
        for (Index row = 0; row < rows; row += strip_rows) {
          ColumnRange own;  // none at all, or from one vector to another; some strips have those of the strip before
          if (!needed.empty() && generator() % 3 == 0) {
            own = needed.back();
          } else {
            own.begin = static_cast<Index>(generator() % static_cast<std::uint64_t>(vectors)) * lanes<T>;
            own.end = own.begin +
                      static_cast<Index>(generator() % static_cast<std::uint64_t>(vectors + 1 - own.begin / lanes<T>)) *
                          lanes<T>;
          }
          needed.push_back(own);
          const Index count = std::min(strip_rows, rows - row), width = own.end - own.begin;
          expected.block(row, own.begin, count, width) = whole.block(row, own.begin, count, width);
          computed += static_cast<double>(count * width);
        }
        Context context;
        multiply_needed<T>(context, A.view(), B.view(), needed, C.view());
        CHECK(Matrix<T>(C.view()) == expected);
        CHECK(context.work.flops == 2 * computed * static_cast<double>(inner));
        CHECK((A.frame_intact() && B.frame_intact() && C.frame_intact()));
      }
}

TEMPLATE_TEST_CASE("a transposed matrix has zeroes beyond its rows, at any width", "[unit]", float, double) {
  using T = TestType;
  Generator generator = Streams(1).stream("transposed");
  for (const Index rows : {1, 4, 5, 16, 17, 64, 70})
    for (const Index columns : {1, 3, 16, 33})
      for (const Index width : {rows, rows + 1, in_whole_vectors<T>(rows)}) {
        CAPTURE(rows, columns, width);
        Framed<T> X(generator, rows, columns);
        Matrix<T> expected = Matrix<T>::Zero(columns, width);
        expected.leftCols(rows) = X.view().transpose();
        CHECK(transposed<T>(X.view(), width) == expected);
        const Matrix<T> compact = X.view();  // its rows lie next to each other: of one column, so do its columns
        CHECK(transposed<T>(compact, width) == expected);
      }
}

TEMPLATE_TEST_CASE("exponentials and maxima of columns do not depend on how many rows and columns there are", "[unit]",
                   float, double) {
  using T = TestType;
  Generator generator = Streams(1).stream("columns alone");
  for (const Index rows : {1, 2, 3, 4, 5, 8, 11})
    for (const Index columns : {Index(1), lanes<T>, 3 * lanes<T> + 2, 4 * lanes<T>, 5 * lanes<T>}) {
      CAPTURE(rows, columns);
      const Matrix<T> X = (3 * standard_normal(generator, rows, columns)).template cast<T>();
      const auto bias = std::vector<T>(static_cast<size_t>(rows), T(0.25));
      Matrix<T> weights = X;
      std::vector<T> shift(static_cast<size_t>(columns)), sums(shift.size(), T(1)), maxima(shift.size(), T(-1));
      for (size_t j = 0; j < shift.size(); ++j) shift[j] = static_cast<T>(j % 7) / 4;
      Context context;
      exponentiate<T>(context, weights, bias, shift, sums);
      raise_to_column_maxima<T>(X, bias, maxima);
      bool same = true;
      for (Index j = 0; j < columns; ++j) {
        const auto at = static_cast<size_t>(j);
        T sum = 1, maximum = -1;
        for (Index i = 0; i < rows; ++i) {
          const T weight = Exponential<T>()(X(i, j) + T(0.25) + shift[at]);
          sum += weight;
          maximum = std::max(maximum, X(i, j) + T(0.25));
          same &= weights(i, j) == weight;
        }
        same &= sums[at] == sum && maxima[at] == maximum;
      }
      CHECK(same);
    }
}

TEMPLATE_TEST_CASE("views name the rows and corners of another matrix's memory", "[unit]", float, double) {
  using T = TestType;
  Matrix<T> X(4, 3);
  std::iota(X.data(), X.data() + X.size(), T(0));
  CHECK(row_block(X, 1, 2) == X.middleRows(1, 2));
  CHECK(corner(X, 2, 2) == X.topLeftCorner(2, 2));
  CHECK(row_block(In<T>(corner(X, 4, 2)), 3, 1) == X.bottomLeftCorner(1, 2));
  Out<T> handle = row_block(X, 0, 2);
  const Out<T> same = handle;
  Matrix<T> other = Matrix<T>::Constant(2, 3, T(7));
  handle = Out<T>(other);
  CHECK(X.topRows(2) == other);
  CHECK(same == other);
  other.setZero();
  CHECK(X.topRows(2) != other);
  CHECK(row_block(X, 4, 0).rows() == 0);
}

// Eigen's packets do not reach zero in double (exp(-inf) is 5.6e-309) and, with AVX-512, overflow 0.35 early in float:
// the test asks for accuracy where results are normal numbers, and beyond that only the side. The engines exponentiate
// no positive numbers.
TEMPLATE_TEST_CASE("exponentials are within four units in the last place, and on the right side beyond", "[unit]",
                   float, double) {
  using T = TestType;
  constexpr T infinity = std::numeric_limits<T>::infinity(), least_normal = std::numeric_limits<T>::min();
  const double bound = 4 * static_cast<double>(std::numeric_limits<T>::epsilon());
  const T bounds = std::floor(-std::log(least_normal));  // 87 or 708: exp is normal up to there on both sides
  for (const Index columns : {1, 3, 8, 37}) {
    Matrix<T> X(5, columns);
    for (Index i = 0; i < X.size(); ++i)
      X.data()[i] = bounds * (2 * static_cast<T>(i) / static_cast<T>(X.size() - 1) - 1);
    std::vector<T> by_row(5), by_column(static_cast<size_t>(columns));
    for (size_t i = 0; i < by_row.size(); ++i) by_row[i] = static_cast<T>(i) - T(0.3);
    for (size_t j = 0; j < by_column.size(); ++j) by_column[j] = T(0.7) - static_cast<T>(j);
    Matrix<T> rowwise = X, columnwise = X;
    Context context;
    exponentiate_rows<T>(context, rowwise, by_row);
    std::vector<T> minus(by_column.size());
    std::transform(by_column.begin(), by_column.end(), minus.begin(), std::negate<>());
    exponentiate<T>(context, columnwise, {}, minus);
    CHECK(context.work.exps == 2 * static_cast<double>(X.size()));
    double worst = 0;
    const auto compare = [&](T value, T argument) {
      if (std::abs(argument) <= bounds)
        worst = std::max(worst, relative_error(static_cast<double>(value), std::exp(static_cast<double>(argument))));
    };
    for (Index i = 0; i < 5; ++i)
      for (Index j = 0; j < columns; ++j) {
        compare(rowwise(i, j), X(i, j) - by_row[static_cast<size_t>(i)]);
        compare(columnwise(i, j), X(i, j) - by_column[static_cast<size_t>(j)]);
      }
    CHECK(worst <= bound);
  }
  for (const Index columns : {1, 19}) {
    const auto exponential = [&](T x) {
      Matrix<T> X = Matrix<T>::Constant(1, columns, x);
      Context context;
      exponentiate_rows<T>(context, X, std::vector<T>{T(0)});
      return X;
    };
    CHECK((exponential(0).array() == 1).all());
    for (const T low : {-bounds - 1, T(-10'000), -infinity})
      CHECK((exponential(low).array() >= 0 && exponential(low).array() < least_normal).all());
    for (const T high : {bounds + 3, T(10'000), infinity}) CHECK((exponential(high).array() == infinity).all());
    CHECK(exponential(std::numeric_limits<T>::quiet_NaN()).array().isNaN().all());
  }
}

TEMPLATE_TEST_CASE("maxima, sums, scalings and norms of rows are those of plain loops", "[unit]", float, double) {
  using T = TestType;
  Generator generator = Streams(1).stream("rows");
  for (const auto& [b, c] : {std::pair<Index, Index>{1, 1}, {3, 7}, {64, 16}, {33, 65}, {5, 1}, {1, 40}}) {
    CAPTURE(b, c);
    Framed<T> framed(generator, b, c);
    const Out<T> X = framed.view();
    const auto rows_count = static_cast<size_t>(b), columns_count = static_cast<size_t>(c);
    std::vector<T> maxima(rows_count), sums(rows_count), halves(rows_count), column_maxima(columns_count, T(-2)),
        column_sums(columns_count, T(5)), factors(rows_count);
    row_maxima<T>(X, maxima);
    row_sums<T>(X, sums);
    half_squared_norms<T>(X, halves);
    raise_to_column_maxima<T>(X, {}, column_maxima);
    add_column_sums<T>(X, column_sums);
    for (size_t i = 0; i < rows_count; ++i) {
      T maximum = X(static_cast<Index>(i), 0), sum = 0, half = 0;
      for (Index j = 0; j < c; ++j) {
        const T x = X(static_cast<Index>(i), j);
        maximum = std::max(maximum, x);
        sum += x;
        half += x * x / 2;
      }
      CHECK((maxima[i] == maximum && sums[i] == sum && halves[i] == half));
      factors[i] = static_cast<T>(i % 5) - 2;
    }
    for (size_t j = 0; j < columns_count; ++j) {
      T maximum = -2, sum = 5;
      for (Index i = 0; i < b; ++i) {
        maximum = std::max(maximum, X(i, static_cast<Index>(j)));
        sum += X(i, static_cast<Index>(j));
      }
      CHECK((column_maxima[j] == maximum && column_sums[j] == sum));
    }
    const Matrix<T> before = X;
    scale_rows<T>(X, factors);
    for (Index i = 0; i < b; ++i)
      for (Index j = 0; j < c; ++j) CHECK(X(i, j) == before(i, j) * factors[static_cast<size_t>(i)]);
    CHECK(framed.frame_intact());
  }
}

TEMPLATE_TEST_CASE("the softmax within a part of a row is zero beside it, and changes no other row", "[unit]", float,
                   double) {
  Generator generator = Streams(1).stream("softmax within");
  Framed<TestType> framed(generator, 3, 7);
  Out<TestType> X = framed.view();
  const Matrix<TestType> before = X;
  for (const auto& [begin, end] : {std::pair<Index, Index>{2, 5}, {6, 7}, {3, 3}}) {
    X.row(1) << 9, 9, 0, std::log(TestType(3)), std::log(TestType(4)), 9, 9;
    Matrix<TestType> expected = before;
    expected.row(1).setZero();
    if (begin == 2) expected.row(1).segment(2, 3) << TestType(0.125), TestType(0.375), TestType(0.5);
    if (begin == 6) expected(1, 6) = 1;
    Context context;
    softmax_within<TestType>(context, X, 1, begin, end);
    CHECK((X - expected).cwiseAbs().maxCoeff() <= 4 * std::numeric_limits<TestType>::epsilon());
    CHECK(framed.frame_intact());
  }
}

TEMPLATE_TEST_CASE("columns are added row by row in order, so that sums are the same bit for bit", "[unit]", float,
                   double) {
  using T = TestType;
  Generator generator = Streams(1).stream("column sums");
  const Matrix<T> X = standard_normal(generator, 100, 37).template cast<T>();
  std::vector<T> all(37, T(0)), parts(37, T(0)), by_loops(37, T(0));
  add_column_sums<T>(X, all);
  add_column_sums<T>(row_block(X, 0, 61), parts);
  add_column_sums<T>(row_block(X, 61, 39), parts);
  for (Index i = 0; i < 100; ++i)
    for (Index j = 0; j < 37; ++j) by_loops[static_cast<size_t>(j)] += X(i, j);
  CHECK(all == parts);
  CHECK(all == by_loops);
}

TEMPLATE_TEST_CASE("rows and columns that are not there change nothing", "[unit]", float, double) {
  using T = TestType;
  Matrix<T> no_columns(3, 0), no_rows(0, 3);
  Context context;
  std::vector<T> three(3, T(5)), none;
  row_sums<T>(no_columns, three);
  CHECK(three == std::vector<T>(3, T(0)));
  half_squared_norms<T>(no_columns, three);
  CHECK(three == std::vector<T>(3, T(0)));
  std::vector<T> kept(3, T(5));
  add_column_sums<T>(no_rows, kept);
  raise_to_column_maxima<T>(no_rows, {}, kept);
  CHECK(kept == std::vector<T>(3, T(5)));
  row_maxima<T>(no_rows, none);
  exponentiate_rows<T>(context, no_columns, kept);
  exponentiate<T>(context, no_rows, {}, kept);
  CHECK(context.work.exps == 0);
}

TEST_CASE("blocks cover each index once for any total, block and number of threads", "[unit]") {
  for (const int threads : {1, 2, 3, 8, 100})
    for (const Index total : {0, 1, 7, 64, 100})
      for (const Index block : {1, 3, 64, 1000}) {
        CAPTURE(threads, total, block);
        std::vector<int> visits(static_cast<size_t>(total), 0);
        std::vector<std::pair<Index, Index>> blocks;
        std::mutex mutex;
        Context context(threads);
        const int blocks_there = static_cast<int>((total + block - 1) / block);
        const int share = threads / std::clamp(blocks_there, 1, threads);  // more than one when there are few blocks
        bool shared_out = true;
        context.for_blocks(total, block, [&](Context& own, Index first, Index count) {
          for (Index i = first; i < first + count; ++i) ++visits[static_cast<size_t>(i)];
          own.work.flops += static_cast<double>(count);
          own.work.exps += 1;
          const std::scoped_lock lock(mutex);
          shared_out = shared_out && own.threads() == share;
          blocks.emplace_back(first, count);
        });
        CHECK(visits == std::vector<int>(static_cast<size_t>(total), 1));
        CHECK(shared_out);
        CHECK(context.threads() == threads);
        CHECK(context.work.flops == static_cast<double>(total));
        CHECK(context.work.exps == static_cast<double>((total + block - 1) / block));
        for (const auto& [first, count] : blocks)
          CHECK((first % block == 0 && count == std::min(block, total - first)));
      }
}

TEST_CASE("work of one call after another adds up", "[unit]") {
  for (const int threads : {1, 3}) {
    Context context(threads);
    context.work.flops = 5;
    for (int call = 0; call < 2; ++call)
      context.for_blocks(10, 2, [](Context& own, Index, Index) { own.work.flops += 1; });
    CHECK(context.work.flops == 15);
  }
}

TEST_CASE("an exception of one block ends the call and is thrown again with its type", "[unit]") {
  struct Planted : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  for (const int threads : {1, 2, 8}) {
    CAPTURE(threads);
    for (const Index bad : {0, 7, 63}) {
      std::atomic<int> started{0};
      Context context(threads);
      CHECK_THROWS_AS(context.for_blocks(64, 1,
                                         [&](Context&, Index first, Index) {
                                           ++started;
                                           if (first == bad) throw Planted("block");
                                         }),
                      Planted);
      CHECK(started > bad);  // blocks are taken in order
      CHECK(started <= 64);
    }
    Context context(threads);
    CHECK_THROWS_AS(context.for_blocks(64, 1, [](Context&, Index, Index) { throw Planted("every block"); }), Planted);
  }
}

TEST_CASE("a product in blocks is the same bit for bit for any number of threads", "[unit]") {
  Generator generator = Streams(1).stream("blocks");
  const Matrix<double> A = standard_normal(generator, 101, 57), B = standard_normal(generator, 57, 43);
  const auto product = [&](int threads) {
    Matrix<double> C(101, 43);
    Context context(threads);
    context.for_blocks(101, 16, [&](Context& own, Index first, Index count) {
      multiply<double>(own, row_block(A, first, count), B, row_block(C, first, count));
    });
    CHECK(context.work.flops == 2.0 * 101 * 57 * 43);
    return C;
  };
  const Matrix<double> one = product(1);
  for (const int threads : {2, 3, 8}) CHECK(product(threads) == one);
}

TEST_CASE("singular values of matrices that have known ones, largest first", "[unit]") {
  const auto check = [](const Matrix<double>& A, std::vector<double> expected) {
    CAPTURE(A);
    std::sort(expected.begin(), expected.end(), std::greater<>());
    const auto sigma = singular_values(A);
    REQUIRE(sigma.size() == expected.size());
    CHECK(std::is_sorted(sigma.rbegin(), sigma.rend()));
    // Backward stability: the singular values are those of A + E, |E| a small multiple of the rounding of |A|.
    const double largest = expected.empty() ? 0 : expected.front();
    const double bound =
        static_cast<double>(std::max(A.rows(), A.cols())) * std::numeric_limits<double>::epsilon() * largest;
    for (size_t i = 0; i < sigma.size(); ++i) CHECK(std::abs(sigma[i] - expected[i]) <= bound);
  };
  Matrix<double> A = Matrix<double>::Zero(3, 3);
  check(A, {0, 0, 0});
  A.diagonal() << -2, 5, 0.5;
  check(A, {2, 5, 0.5});
  check(Matrix<double>::Identity(7, 4), {1, 1, 1, 1});
  check(Matrix<double>::Ones(3, 12), {6, 0, 0});
  check(Matrix<double>::Ones(12, 3), {6, 0, 0});
  check(Matrix<double>(0, 3), {});
  check(Matrix<double>(3, 0), {});
  A = Matrix<double>(1, 3);
  A << 2, 3, 6;
  check(A, {7});
  check(A.transpose(), {7});
  A = Matrix<double>(2, 2);
  A << 1, 1, 0, 1;
  check(A, {(std::sqrt(5) + 1) / 2, (std::sqrt(5) - 1) / 2});
  // Second differences: 2 - 2 cos(k pi / (n + 1)).
  constexpr Index n = 40;
  A = Matrix<double>::Zero(n, n);
  A.diagonal().setConstant(2);
  A.diagonal(1).setConstant(-1);
  A.diagonal(-1).setConstant(-1);
  std::vector<double> expected;
  for (Index k = 1; k <= n; ++k) expected.push_back(2 - 2 * std::cos(static_cast<double>(k) * M_PI / (n + 1)));
  check(A, expected);
}

TEST_CASE("singular values span twelve orders of magnitude to the rounding of the largest", "[unit]") {
  Generator generator = Streams(1).stream("singular values");
  const Matrix<double> U = haar_orthogonal(generator, 30), V = haar_orthogonal(generator, 30);
  Matrix<double> sigma = Matrix<double>::Zero(30, 30);
  for (Index i = 0; i < 30; ++i) sigma(i, i) = std::pow(10.0, -12.0 * static_cast<double>(i) / 29);
  const Matrix<double> A = U * sigma * V.transpose();
  const auto measured = singular_values(A);
  for (Index i = 0; i < 30; ++i)
    CHECK(std::abs(measured[static_cast<size_t>(i)] - sigma(i, i)) <= 30 * std::numeric_limits<double>::epsilon());
}

TEST_CASE("large matrices have the singular values that they were made of, on any number of threads", "[unit]") {
  // These are reduced to a band first, in panels of 32: the last one whole, of one column, or short by one.
  Generator generator = Streams(1).stream("large matrices");
  constexpr double epsilon = std::numeric_limits<double>::epsilon();
  for (const auto& [rows, columns] : {std::pair<Index, Index>{512, 512}, {513, 550}, {543, 543}, {700, 520}}) {
    CAPTURE(rows, columns);
    const Index rank = std::min(rows, columns);
    const Matrix<double> U = haar_orthogonal(generator, rows), V = haar_orthogonal(generator, columns);
    Eigen::VectorXd expected(rank);
    for (Index i = 0; i < rank; ++i)
      expected[i] = 3 * std::pow(10.0, -14.0 * static_cast<double>(i) / static_cast<double>(rank));
    expected.tail(5).setZero();
    const Matrix<double> A = U.leftCols(rank) * expected.asDiagonal() * V.leftCols(rank).transpose();
    const auto sigma = singular_values(A);
    REQUIRE(std::ssize(sigma) == rank);
    double worst = 0;
    for (Index i = 0; i < rank; ++i) worst = std::max(worst, std::abs(sigma[static_cast<size_t>(i)] - expected[i]));
    CHECK(worst <= 16 * epsilon * expected[0]);
    for (const int threads : {2, 3}) {
      Context context(threads);
      CHECK(singular_values(A, context) == sigma);
    }
  }
}

TEST_CASE("a matrix that is not finite has no singular values", "[unit]") {
  for (const Index n : {4, 520})
    for (const double entry : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      Matrix<double> A = Matrix<double>::Identity(n, n);
      A(2, 1) = entry;
      CHECK_THROWS_AS(singular_values(A), std::runtime_error);
    }
}

}  // namespace attnbench::linalg_test
