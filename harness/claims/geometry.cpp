// Compares the projection vectors of an instance (state tensor "projection") with the geometry that their ensemble
// declares: in blocks of `block` rows, the cosine between any two and the norm of each. No vector may be a copy of
// another.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include "harness/claims/structural.hpp"

namespace attnbench {

namespace {

// Rows that are copies of an earlier row, in a matrix of continuous numbers; signs and the like may repeat by chance.
std::optional<double> repeated_rows(const Matrix<double>& W) {
  std::set<double> magnitudes;
  for (Index l = 0; l < W.cols(); ++l) magnitudes.insert(std::abs(W(0, l)));
  if (std::ssize(magnitudes) < W.cols()) return std::nullopt;
  std::set<std::vector<double>> rows;
  for (Index i = 0; i < W.rows(); ++i) rows.emplace(W.data() + i * W.cols(), W.data() + (i + 1) * W.cols());
  return static_cast<double>(W.rows() - std::ssize(rows));
}

}  // namespace

ClaimResults test_geometry(const Subject& subject, const Probes&, std::uint64_t seed) {
  constexpr const char* claim = "geometry";
  constexpr double tolerance = 1e-10;
  if (!subject.law) return {skipped(claim, "it has no ensemble of projection vectors")};
  ClaimResults results;
  for (const Index d : {4, 6, 16}) {
    const EnsembleLaw law = subject.law(subject.params, d);
    const bool stated = law.block > 0 && (law.cosine || law.norm);
    for (Index draw = 0; draw < 3; ++draw) {
      const Tensors state =
          Drawing(subject, subject.params, {.nq = 1, .nk = 1, .d = d, .dv = 1}, seed).draw<double>(draw)->state();
      const auto projection = state.find("projection");
      if (projection == state.end()) return {skipped(claim, "its state shows no projection")};
      const Matrix<double>& W = projection->second;
      if (const auto repeated = repeated_rows(W))
        results.push_back(compared(
            claim, fmt::format("vectors that are copies of another, d = {}, m = {}", d, W.rows()), *repeated, 0));
      if (!stated) continue;
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
  if (results.empty()) return {skipped(claim, "its ensemble states no geometry")};
  return results;
}

ClaimResults test_nested(const Subject& subject, const Probes&, std::uint64_t seed) {
  constexpr const char* claim = "nested";
  if (!subject.law || !subject.params.has("m")) return {skipped(claim, "it has no ensemble of projection vectors")};
  ClaimResults results;
  for (const Index d : {4, 16}) {
    if (!subject.law(subject.params, d).nested) return {skipped(claim, "its ensemble says that it is not nested")};
    const auto drawn = [&](Index m) -> Matrix<double> {
      const Params params = subject.params.with("m", std::to_string(m));
      const Tensors state =
          Drawing(subject, params, {.nq = 1, .nk = 1, .d = d, .dv = 1}, seed).draw<double>(0)->state();
      const auto found = state.find("projection");
      return found == state.end() ? Matrix<double>() : found->second;
    };
    const Index few = 2 * d + d / 2, many = 5 * d + 2;  // full blocks and a partial one
    const Matrix<double> less = drawn(few), more = drawn(many);
    if (less.size() == 0) return {skipped(claim, "its state shows no projection")};
    results.push_back(
        compared(claim, fmt::format("numbers of {} vectors that are not those of {}, d = {}", few, many, d),
                 more.rows() < less.rows() ? INFINITY : differing_numbers<double>(less, more.topRows(less.rows())), 0));
  }
  return results;
}

}  // namespace attnbench
