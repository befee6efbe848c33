// Products of 8-bit integers against plain loops.
#include "harness/linalg/integer_products.hpp"

#include <cmath>

#include "harness/random/uniform_numbers.hpp"
#include "tests/catch.hpp"

namespace attnbench::integer_products_test {
namespace {

// Codes from -127 to 127, both ends among them, with scales that are powers of two: products by them are exact.
Codes drawn(Generator& generator, Index rows, Index cols) {
  Codes codes(rows, cols);
  const Matrix<double> u = uniform_numbers(generator, rows, cols + 1);
  for (Index i = 0; i < rows; ++i) {
    std::vector<double> row;
    for (Index l = 0; l < cols; ++l) {
      const double end = l % 2 == 0 ? 127 : -127;
      row.push_back((i + l) % 5 == 0 ? end : std::floor(255 * u(i, l)) - 127);
    }
    codes.set(i, row, std::exp2(std::floor(6 * u(i, cols)) - 3));
  }
  return codes;
}

}  // namespace

TEST_CASE("products of integers are those of plain loops to the last bit", "[linalg][unit]") {
  Generator generator(3);
  for (const Index cols : {1, 3, 4, 7, 64, 130})
    for (const Index queries : {1, 17, 64})
      for (const Index keys : {1, 2, 5, 6, 13, 128}) {
        INFO(cols << " columns, " << queries << " queries, " << keys << " keys");
        const Codes K = drawn(generator, keys + 3, cols), Q = drawn(generator, queries + 2, cols);
        Matrix<float> products = Matrix<float>::Constant(keys, CodePanel::width, NAN);
        Context context;
        multiply_codes(context, K, 3, CodePanel(Q, 2, queries), products);
        CHECK(context.work.flops == 2.0 * static_cast<double>(keys * CodePanel::width * cols));
        Index wrong = 0;
        for (Index j = 0; j < keys; ++j)
          for (Index i = 0; i < CodePanel::width; ++i) {
            double sum = 0;
            for (Index l = 0; i < queries && l < cols; ++l) sum += K.row(3 + j)[l] * Q.row(2 + i)[l];
            const double scale = i < queries ? double{K.scale(3 + j)} * double{Q.scale(2 + i)} : 0;
            wrong += products(j, i) == static_cast<float>(sum * scale) ? 0 : 1;
          }
        CHECK(wrong == 0);
      }
}

}  // namespace attnbench::integer_products_test
