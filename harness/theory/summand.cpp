#include "harness/theory/summand.hpp"

#include <algorithm>

namespace attnbench {

std::optional<KernelTheory> average_of_summands(std::string target, Index m, SharedLaw law, SummandMoments moments) {
  if (!law) return std::nullopt;
  return KernelTheory{
      .target = std::move(target),
      .mean = [=](const Pair& p) { return moments.mean(p, *law); },
      .variance =
          [=](const Pair& p) {
            const double mean = moments.mean(p, *law), count = static_cast<double>(m);
            const double pairs = law->dependent_pairs(m);
            const double covariance = pairs > 0 ? moments.cross(p, *law) - mean * mean : 0;
            const double variance =
                (moments.second(p, *law) - mean * mean) / count + pairs * covariance / (count * count);
            return std::max(0.0, variance);  // rounding leaves -1e-17 where the estimate is exact
          },
  };
}

}  // namespace attnbench
