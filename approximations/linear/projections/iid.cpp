// Independent projection vectors, omega ~ N(0, I_d): the baseline of every closed form. methods.md A, B.
#include "harness/core/projection.hpp"
#include "harness/theory/normal_rows.hpp"

namespace attnbench::iid_projection {
namespace {

Matrix<double> draw_rows(const Draw& draw, Index m, Index d) {
  auto generator = draw.streams.stream("projection", "iid", d, draw.head, draw.replicate);
  return standard_normal(generator, m, d);
}

const bool registered = add(ProjectionEntry{
    .text = {.name = "iid",
             .printed = "i.i.d.",
             .summary = "independent standard normal vectors",
             .formula = "omega_i ~ N(0, I_d), independent",
             .reference = "Rahimi and Recht 2007; Choromanski et al. 2020, arXiv:2009.14794",
             .cost = "m d normal variates"},
    .parameters = {},
    .draw = draw_rows,
    .law =
        [](const Params&, Index d) {
          return EnsembleLaw{.moment = [d](double t, double alpha) { return normal_moment(d, t, alpha); },
                             .dependent_pairs = [](Index) { return 0.0; }};
        },
});

}  // namespace
}  // namespace attnbench::iid_projection
