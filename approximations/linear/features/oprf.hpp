// Optimal positive random features, with a given A or one learnt from a head: for OPRF itself and for the maps that are
// OPRF on transformed inputs.
#pragma once

#include "approximations/linear/features/exponential_features.hpp"
#include "approximations/linear/input_transform.hpp"
#include "harness/theory/oprf.hpp"

namespace attnbench {

// phi = mean over all pairs of |q_i + k_j|^2. It determines the A that minimises the mean log second moment.
// methods.md A5.
double mean_squared_sum(const Head<double>& head);

// A of a draw: the injected state "a", otherwise the spec's value, otherwise the optimum for `head`.
double oprf_a(const Draw& draw, const Head<double>* head);

template <class T>
std::unique_ptr<FeatureMap<T>> make_oprf(const Draw& draw, double a) {
  const double d = static_cast<double>(draw.shape.d);
  const Matrix<double> W = rounded<T>(draw_projection(draw, projection_vectors(draw.params)));
  const Matrix<double> A = rounded<T>(Matrix<double>::Constant(1, 1, a));
  const double constant = d / 4 * std::log1p(-4 * A(0, 0)) - 0.5 * std::log(static_cast<double>(W.rows()));
  const Matrix<double> offsets = A(0, 0) * W.rowwise().squaredNorm().array() + constant;
  return std::make_unique<ExponentialFeatures<T>>(std::sqrt(1 - 4 * A(0, 0)) * W, offsets, false,
                                                  Tensors{{"projection", W}, {"a", A}});
}

// The mean and, if A is known, the variances and correlations.
std::optional<KernelTheory> oprf_theory(const Params& params, Index d, const EnsembleLaw& ensemble,
                                        std::optional<double> a);

// OPRF on inputs transformed by a map learnt from the calibration head: SADERF (diagonal), ADERF (full).
template <class T, TransformKind kind>
std::unique_ptr<FeatureMap<T>> make_transformed_oprf(const Draw& draw) {
  const Index d = draw.shape.d;
  const Matrix<double> none = Matrix<double>::Zero(1, d);
  const Matrix<double>* given = draw.injected("G", d, d);
  const Matrix<double> G =
      rounded<T>(given ? *given : fit_transform(calibration_of(draw, "its transform G"), kind, false).query);
  const InputTransform transform = transform_of(G, none);
  std::optional<HeadData<double>> moved;
  if (draw.calibration) moved = transform.of(*draw.calibration);
  const std::optional<Head<double>> view = moved ? std::optional(moved->view()) : std::nullopt;
  auto map = make_oprf<T>(draw, oprf_a(draw, view ? &*view : nullptr));
  return std::make_unique<TransformedInputs<T>>(std::move(map), transform, Tensors{{"G", G}});
}

template <TransformKind kind>
std::optional<KernelTheory> transformed_oprf_theory(const Params& params, Index d, const EnsembleLaw& ensemble,
                                                    const Head<double>* calibration) {
  if (!calibration) return oprf_theory(params, d, ensemble, std::nullopt);
  const InputTransform transform = fit_transform(*calibration, kind, false);
  const HeadData<double> moved = transform.of(*calibration);
  auto inner = oprf_theory(params, d, ensemble, oprf_optimum(mean_squared_sum(moved.view()), d));
  if (!inner || !inner->exact) return inner;
  return transformed(*inner, transform);
}

template <TransformKind kind>
FeatureMapEntry transformed_oprf(const Description& text) {
  return {.text = text,
          .parameters = random_feature_parameters(),
          .f32 = make_transformed_oprf<float, kind>,
          .f64 = make_transformed_oprf<double, kind>,
          .features = [](const Params& params, Index) { return projection_vectors(params); },
          .token_work =
              [](const Params& params, Index d) {
                Work work = projection_work(params, d, 1);
                work.flops += 2 * static_cast<double>(d * d);
                return work;
              },
          .non_negative = true,
          .fitted = [](const Params&) { return true; },
          .theory = transformed_oprf_theory<kind>};
}

}  // namespace attnbench
