#include "harness/theory/special_functions.hpp"

#include <boost/math/special_functions/hypergeometric_1F1.hpp>

namespace attnbench {

double kummer(double a, double b, double x) { return boost::math::hypergeometric_1F1(a, b, x); }

}  // namespace attnbench
