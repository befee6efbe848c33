#include "harness/core/projection.hpp"

namespace attnbench {

namespace {

double moment_at(const EnsembleLaw& law, const Pair& pair, double a, double b, int sign, double alpha) {
  if (!law.directed_moment) {
    const double t = a * a * pair.q2 + b * b * pair.k2 + 2 * a * b * pair.qk;
    return law.moment(sign * t, alpha);
  }
  std::vector<double> z(pair.q.size());
  for (size_t l = 0; l < z.size(); ++l) z[l] = a * pair.q[l] + b * pair.k[l];
  return law.directed_moment(z, sign, alpha);
}

}  // namespace

double EnsembleLaw::mean_exponential(const Pair& pair, double a, double b, double alpha) const {
  return moment_at(*this, pair, a, b, 1, alpha);
}

double EnsembleLaw::mean_cosine(const Pair& pair, double a, double b) const {
  return moment_at(*this, pair, a, b, -1, 0);
}

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

template class Registry<ProjectionEntry>;

}  // namespace attnbench
