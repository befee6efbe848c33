// Cosines and sines against those of a more precise type.
#include "harness/linalg/sincos.hpp"

#include <cmath>
#include <limits>
#include <type_traits>

#include "harness/random/streams.hpp"
#include "tests/catch.hpp"

namespace attnbench {

TEMPLATE_TEST_CASE("cosines and sines err by about one unit in the last place of 1", "[unit]", float, double) {
  using T = TestType;
  using Truth = std::conditional_t<std::is_same_v<T, float>, double, long double>;
  // 20 million angles were tried once: 9.4e-8 in float with and without fused operations.
  constexpr double bound = std::is_same_v<T, float> ? 1.2e-7 : 2.3e-16;
  Generator generator = Streams(1).stream("angles");
  // Within the first turns, many turns, and beyond the limit of the fast reduction; columns that fill no vector.
  for (const double size : {2.0, 300.0, 2000.0, 1e6})
    for (const Index columns : {1, 16, 37, 1000}) {
      const Matrix<T> X = size * standard_normal(generator, 7, columns).template cast<T>();
      Matrix<T> cosines = X, sines(7, columns);
      Context context;
      cosines_and_sines<T>(context, cosines, sines, T(2));
      CHECK(context.work.exps == 2 * static_cast<double>(X.size()));
      double worst = 0;
      for (Index i = 0; i < 7; ++i)
        for (Index j = 0; j < columns; ++j) {
          const auto x = static_cast<Truth>(X(i, j));
          worst = std::max({worst, std::abs(static_cast<double>(static_cast<Truth>(cosines(i, j)) / 2 - std::cos(x))),
                            std::abs(static_cast<double>(static_cast<Truth>(sines(i, j)) / 2 - std::sin(x)))});
        }
      INFO(size << " " << columns);
      CHECK(worst < bound);
    }
}

TEMPLATE_TEST_CASE("the cosine of what is not a number, or infinite, is NaN", "[unit]", float, double) {
  using T = TestType;
  constexpr T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  for (const T x : {nan, infinity, -infinity}) {
    Matrix<T> cosines = Matrix<T>::Zero(1, 20), sines(1, 20);
    cosines(0, 3) = x;
    Context context;
    cosines_and_sines<T>(context, cosines, sines, T(1));
    CHECK((std::isnan(cosines(0, 3)) && std::isnan(sines(0, 3))));
    CHECK((cosines(0, 4) == 1 && sines(0, 4) == 0));
  }
}

}  // namespace attnbench
