// An ensemble whose Gaussian vectors are shifted and scaled so that their sample mean is 0 and their mean squared norm
// is d, written as a plugin's author would. No closed form is known; fewer vectors are not the first of more. `mistake`
// plants one mistake by its number.
#include <cmath>

#include "harness/core/projection.hpp"

namespace attnbench {
namespace {

enum Mistake {
  none = 0,
  says_nested,
  shares_replicates,
  shares_heads,
  copies_from_64th,
  claims_gaussian_law,
  constant_draw
};

Matrix<double> draw_matched(const Draw& draw, Index m, Index d) {
  const Index mistake = draw.params.integer("mistake");
  Generator generator =
      draw.streams.stream("matched", mistake == constant_draw ? 0 : m, d, mistake == shares_heads ? 0 : draw.head,
                          mistake == shares_replicates ? 0 : draw.replicate);
  if (mistake == constant_draw) generator = Streams(1).stream("constant");
  Matrix<double> W = standard_normal(generator, m, d);
  if (m == 1) return W;
  const Eigen::RowVectorXd mean = W.colwise().mean();
  W.rowwise() -= mean;
  W *= std::sqrt(static_cast<double>(m * d)) / W.norm();
  if (mistake == copies_from_64th)
    for (Index i = 64; i < m; ++i) W.row(i) = W.row(i - 64);
  return W;
}

const bool registered = add(ProjectionEntry{
    .text = {.name = "matched", .summary = "Gaussian vectors of mean 0 and mean squared norm d"},
    .parameters = {Parameter::integer("mistake", 0, "one of this file's mistakes", 0, 100).as_published()},
    .draw = draw_matched,
    .law =
        [](const Params& params, Index) {
          const Index mistake = params.integer("mistake");
          EnsembleLaw law{.gaussian = mistake == constant_draw, .nested = mistake == says_nested};
          if (mistake == claims_gaussian_law)
            law = {.moment = [](double t, double alpha) { return alpha == 0 ? std::exp(t / 2) : NAN; },
                   .nested = false};
          return law;
        },
});

}  // namespace
}  // namespace attnbench
