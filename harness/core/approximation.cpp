#include "harness/core/approximation.hpp"

#include <fmt/format.h>

namespace attnbench {

const Matrix<double>* Draw::injected(const std::string& name, Index rows, Index columns) const {
  if (!state) return nullptr;
  const auto found = state->find(name);
  if (found == state->end()) return nullptr;
  const auto& tensor = found->second;
  if (tensor.rows() != rows || tensor.cols() != columns)
    throw Misuse(fmt::format("{}: the injected tensor '{}' is {} x {}; expected {} x {}", params.spec(), name,
                             tensor.rows(), tensor.cols(), rows, columns));
  return &tensor;
}

template <class T>
std::unique_ptr<Approximation<T>> make_approximation(const Draw& draw) {
  const auto& entry = find<MethodEntry>(draw.params.name());
  const auto& shape = draw.shape;
  if (shape.nq < 1 || shape.nk < 1 || shape.d < 1 || shape.dv < 1)
    throw Misuse(fmt::format("{}: nq={}, nk={}, d={}, dv={}; every size must be at least 1", draw.params.spec(),
                             shape.nq, shape.nk, shape.d, shape.dv));
  const auto claims = entry.claims(draw.params, shape);
  if (shape.mask.causal && !claims.no_causal_form.empty())
    throw Skip(fmt::format("{} has no causal form: {}", draw.params.spec(), claims.no_causal_form));
  if constexpr (std::is_same_v<T, float>)
    return entry.f32(draw);
  else
    return entry.f64(draw);
}

template std::unique_ptr<Approximation<float>> make_approximation<float>(const Draw&);
template std::unique_ptr<Approximation<double>> make_approximation<double>(const Draw&);

}  // namespace attnbench
