// Queries and keys around shared centres.
//   X_i = scale (sqrt(1 - spread^2) C_z(i) + spread g_i) for Q and K, z(i) uniform on the clusters, C and g standard
//   normal, C one draw for the head (its calibration text included); V_ij ~ N(0, 1)
// Known answers: every entry is N(0, scale^2) for any spread. Given the centres a logit q.k has the mean scale^2 (1 -
// spread^2) C_a.C_b d^-1/2: about scale^2 (1 - spread^2) sqrt(d) within a cluster, 0 +- about scale^2 across clusters.
// spread=0: keys take at most `clusters` values, so vector quantisation with these codes is exact. spread=1: no
// clusters, the law is that of `gaussian`.
#include <boost/random/uniform_int_distribution.hpp>
#include <cmath>

#include "harness/inputs/laws/input_stream.hpp"

namespace attnbench::clustered_law {

namespace {

HeadData<double> draw(const Params& params, const InputRequest& request) {
  const Index clusters = params.integer("clusters");
  const double scale = params.real("scale"), spread = params.real("spread");
  Generator structure = shared_stream(params, request, "centres");
  const Matrix<double> centres =
      scale * std::sqrt(1 - spread * spread) * standard_normal(structure, clusters, request.d);
  const auto around_centres = [&](const char* tensor, const char* labels, Index rows) {
    Matrix<double> X = scale * spread * normal_rows(params, request, tensor, rows, request.d);
    Generator generator = token_stream(params, request, labels);
    boost::random::uniform_int_distribution<Index> cluster(0, clusters - 1);
    for (Index i = 0; i < rows; ++i) X.row(i) += centres.row(cluster(generator));
    return X;
  };
  return {around_centres("Q", "clusters of Q", request.nq), around_centres("K", "clusters of K", request.nk),
          normal_rows(params, request, "V", request.nk, request.dv)};
}

const bool registered = add(InputEntry{
    .text = {.name = "clustered",
             .summary = "queries and keys around shared random centres",
             .formula = "X_i = scale (sqrt(1 - spread^2) C_z(i) + spread g_i), z(i) uniform; V_ij ~ N(0, 1)",
             .reference = "",
             .cost = "O(n d + clusters d) to draw",
             .family = "law"},
    .parameters = {Parameter::integer("clusters", 16, "number of centres", 1, 65536),
                   Parameter::real("spread", 0.3, "share of an entry's standard deviation that is within a cluster", 0,
                                   1),
                   Parameter::real("scale", 1, "standard deviation of the entries of Q and K", 0, 1e6)},
    .draw = draw,
});

}  // namespace

}  // namespace attnbench::clustered_law
