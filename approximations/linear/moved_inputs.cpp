#include "approximations/linear/moved_inputs.hpp"

#include "harness/theory/normal_rows.hpp"

namespace attnbench {

namespace {

TransformKind transform_kind(const Params& params) {
  const auto& name = params.text("transform");
  return name == "full" ? TransformKind::full : name == "diagonal" ? TransformKind::diagonal : TransformKind::none;
}

// The law of the map's ensemble. Of an ensemble that states none the target is that of normal rows, which is not
// claimed.
EnsembleLaw law_of(const Params& params, Index d) {
  if (!params.has("projection")) return {};
  const EnsembleLaw stated = find<ProjectionEntry>(params.text("projection")).law(params, d);
  if (stated.known()) return stated;
  return {.moment = [d](double t, double alpha) { return normal_moment(d, t, alpha); }, .exact = false};
}

// Transforming the inputs preserves attention with the kernel exp(q.k) only, so other kernels are refused.
void refuse_other_kernels(const Draw& draw) {
  const auto known =
      feature_map_entry(draw.params).theory
          ? feature_map_entry(draw.params).theory(draw.params, draw.shape.d, law_of(draw.params, draw.shape.d), nullptr)
          : std::nullopt;
  if (known && known->target != "exp(q.k)")
    throw Misuse(draw.params.spec() + ": transform and shift leave softmax attention alone, but this map estimates " +
                 known->target + "; remove them");
}

}  // namespace

std::vector<Parameter> moved_inputs_parameters() {
  return {Parameter::choice("transform", "none",
                            "q G and k G^-T, with G learnt from a head: softmax does not change, the variance does",
                            {"none", "diagonal", "full"}),
          Parameter::choice("shift", "none", "k + c, with c = -(mean of q + mean of k) of a head: likewise",
                            {"none", "mean"})};
}

bool moves_inputs(const Params& params) { return params.text("transform") != "none" || params.text("shift") != "none"; }

template <class T>
std::unique_ptr<FeatureMap<T>> make_map_of_moved_inputs(const Draw& draw) {
  if (!moves_inputs(draw.params)) return make_feature_map<T>(draw);
  refuse_other_kernels(draw);
  const Index d = draw.shape.d;
  const auto *given_G = draw.injected("transform", d, d), *given_shift = draw.injected("shift", 1, d);
  InputTransform fitted = given_G && given_shift
                              ? transform_of(*given_G, *given_shift)
                              : fit_transform(calibration_of(draw, "its transform"), transform_kind(draw.params),
                                              draw.params.text("shift") == "mean");
  const Matrix<double> G = fitted.query.cast<T>().template cast<double>(),
                       shift = fitted.shift.cast<T>().template cast<double>();
  fitted = transform_of(G, shift);
  Draw inner = draw;
  std::optional<HeadData<double>> moved;
  std::optional<Head<double>> view;
  if (draw.calibration) {
    moved = fitted.of(*draw.calibration);
    view.emplace(moved->view());
    inner.calibration = &*view;
  }
  return std::make_unique<TransformedInputs<T>>(make_feature_map<T>(inner), fitted,
                                                Tensors{{"transform", G}, {"shift", shift}});
}

template std::unique_ptr<FeatureMap<float>> make_map_of_moved_inputs<float>(const Draw&);
template std::unique_ptr<FeatureMap<double>> make_map_of_moved_inputs<double>(const Draw&);

std::optional<KernelTheory> theory_of_moved_inputs(const Params& params, const Shape& shape,
                                                   const Head<double>* calibration) {
  const auto& map = feature_map_entry(params);
  if (!map.theory) return std::nullopt;
  const EnsembleLaw law = law_of(params, shape.d);
  if (!moves_inputs(params)) return map.theory(params, shape.d, law, calibration);
  if (!calibration) {  // the mean of an unbiased estimate does not depend on the transform
    auto known = map.theory(params, shape.d, law, nullptr);
    if (!known || !known->exact || !law.gaussian) return std::nullopt;
    return KernelTheory{.target = known->target, .mean = known->mean};
  }
  const InputTransform transform = fit_transform(*calibration, transform_kind(params), params.text("shift") == "mean");
  const HeadData<double> moved = transform.of(*calibration);
  const Head<double> view = moved.view();
  auto inner = map.theory(params, shape.d, law, &view);
  if (inner) inner = transformed(*inner, transform);
  return inner;
}

Work work_of_moved_inputs(const Params& params, const Shape& shape) {
  if (!moves_inputs(params)) return {};
  return {.flops = 2.0 * static_cast<double>((shape.nq + shape.nk) * shape.d * shape.d)};
}

}  // namespace attnbench
