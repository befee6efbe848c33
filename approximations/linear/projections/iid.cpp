// Independent projection vectors, omega ~ N(0, I_d): the baseline of every closed form. methods.md A, B.
#include <cmath>

#include "harness/core/projection.hpp"

namespace attnbench {
namespace {

class IidLaw final : public EnsembleLaw {
 public:
  double moment(double t) const override { return std::exp(t / 2); }
  double pair_moment(double t, int) const override { return std::exp(t); }
  double dependent_pairs(Index) const override { return 0; }
};

Matrix<double> draw_rows(const Draw& draw, Index m, Index d) {
  auto generator = draw.streams.stream("projection", "iid", d, draw.head, draw.replicate);
  return standard_normal(generator, m, d);
}

const bool registered = add(ProjectionEntry{
    .text = {.name = "iid",
             .summary = "independent standard normal vectors",
             .formula = "omega_i ~ N(0, I_d), independent",
             .reference = "Rahimi and Recht 2007; Choromanski et al. 2020, arXiv:2009.14794",
             .cost = "m d normal variates"},
    .parameters = {},
    .draw = draw_rows,
    .law = [](const Params&, Index) { return std::make_shared<const IidLaw>(); },
});

}  // namespace
}  // namespace attnbench
