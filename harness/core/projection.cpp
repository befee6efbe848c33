#include "harness/core/projection.hpp"

namespace attnbench {

Matrix<double> draw_projection(const Draw& draw) {
  const Index m = draw.params.integer("m"), d = draw.shape.d;
  if (const auto* given = draw.injected("projection", m, d)) return *given;
  return find<ProjectionEntry>(draw.params.text("projection")).draw(draw, m, d);
}

}  // namespace attnbench
