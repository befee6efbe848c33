#include "harness/theory/summand.hpp"

#include <algorithm>

namespace attnbench {

std::optional<KernelTheory> average_of_summands(std::string target, Index m, const EnsembleLaw& law,
                                                const SummandMoments& moments) {
  if (!law.known()) return std::nullopt;
  if (!law.gaussian) target = "the mean under rows that are not normal, near " + target;
  KernelTheory theory{
      .target = std::move(target), .mean = [=](const Pair& p) { return moments.mean(p, law); }, .exact = law.exact};
  const bool independent = law.independent(m);
  if (law.exact && law.gaussian && independent) {
    theory.summands = m;
    theory.correlation = moments.correlation;
  }
  const bool covariance_known = independent || (moments.cross && law.pair_moment);
  if (!law.exact || !moments.second || !law.dependent_pairs || !covariance_known || m < law.least_m) return theory;
  theory.variance = [=](const Pair& p) {
    const double mean = moments.mean(p, law), count = static_cast<double>(m);
    const double pairs = law.dependent_pairs(m);
    const double covariance = pairs > 0 ? moments.cross(p, law) - mean * mean : 0;
    const double variance = (moments.second(p, law) - mean * mean) / count + pairs * covariance / (count * count);
    return std::max(0.0, variance);  // rounding leaves -1e-17 if the estimate is exact
  };
  return theory;
}

}  // namespace attnbench
