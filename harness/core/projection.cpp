#include "harness/core/projection.hpp"

namespace attnbench {

Draw shared_draw(const Draw& draw) {
  Draw shared = draw;
  if (!draw.params.has("share")) return shared;
  if (draw.params.text("share") != "head") shared.head = 0;
  if (draw.params.text("share") == "step") shared.replicate = 0;
  return shared;
}

Matrix<double> draw_projection(const Draw& draw, Index m) {
  const Index d = draw.shape.d;
  if (const auto* given = draw.injected("projection", m, d)) return *given;
  return find<ProjectionEntry>(draw.params.text("projection")).draw(draw, m, d);
}

}  // namespace attnbench
