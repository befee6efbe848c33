// Compares the projection vectors of an instance (state tensor "projection") with the geometry that their ensemble
// declares: in blocks of `block` rows, the cosine between any two and the norm of each.
#include <fmt/format.h>

#include <cmath>

#include "harness/claims/structural.hpp"

namespace attnbench {

ClaimResults test_geometry(const Subject& subject, std::uint64_t seed) {
  constexpr const char* claim = "geometry";
  constexpr double tolerance = 1e-10;
  if (!subject.law) return {skipped(claim, "it has no ensemble of projection vectors")};
  ClaimResults results;
  for (const Index d : {4, 6, 16}) {
    const EnsembleLaw law = subject.law(subject.params, d);
    if (law.block == 0 || (!law.cosine && !law.norm)) return {skipped(claim, "its ensemble states no geometry")};
    for (Index draw = 0; draw < 3; ++draw) {
      const Tensors state =
          Drawing(subject, subject.params, {.nq = 1, .nk = 1, .d = d, .dv = 1}, seed).draw<double>(draw)->state();
      const auto projection = state.find("projection");
      if (projection == state.end()) return {skipped(claim, "its state shows no projection")};
      const Matrix<double>& W = projection->second;
      double cosine = 0, norm = 0;
      for (Index first = 0; first < W.rows(); first += law.block)
        for (Index i = first; i < std::min(first + law.block, W.rows()); ++i) {
          if (law.norm) norm = std::max(norm, std::abs(W.row(i).norm() / *law.norm - 1));
          for (Index j = first; law.cosine && j < i; ++j)
            cosine =
                std::max(cosine, std::abs(W.row(i).dot(W.row(j)) / (W.row(i).norm() * W.row(j).norm()) - *law.cosine));
        }
      const std::string where = fmt::format("d = {}, m = {}", d, W.rows());
      if (law.cosine)
        results.push_back(compared(claim, fmt::format("cosines less {}, {}", *law.cosine, where), cosine, tolerance));
      if (law.norm)
        results.push_back(
            compared(claim, fmt::format("norms over {:.4g} less 1, {}", *law.norm, where), norm, tolerance));
    }
  }
  return results;
}

}  // namespace attnbench
