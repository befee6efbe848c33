// The first plug point below a method: feature maps phi with phi(q).phi(k) ~ the weight of a pair. The linear attention
// engine (approximations/linear) computes the products, the causal scan and the stabilisation for all of them.
#pragma once

#include <memory>
#include <span>
#include <stdexcept>

#include "harness/core/approximation.hpp"
#include "harness/core/projection.hpp"

namespace attnbench {

enum class Side { query, key };
// values: phi_if = exp(log_scale_i) block_if, any sign. exponents: phi_if = exp(log_scale_i + block_if); the engine
// stabilises before it exponentiates.
enum class Form { values, exponents };

template <class T>
class FeatureMap {
 public:
  virtual ~FeatureMap() = default;
  virtual Index features() const = 0;  // F
  virtual Form form() const = 0;
  // X is b x d, scaled; its first row is token first_position. block is b x F, log_scale has b entries.
  virtual void map(Context&, const In<T>& X, Side, Index first_position, Out<T> block,
                   std::span<T> log_scale) const = 0;
  virtual Tensors state() const { return {}; }
  // Whether the map implements pullback.
  virtual bool differentiable() const { return false; }
  // Writes dX (b x d): the gradient with respect to X of sum_if d_block_if block_if + sum_i d_log_scale_i log_scale_i
  // at the values that map returns for X. block: these values; not read if the form is exponents.
  virtual void pullback(Context&, const In<T>& X, Side, Index first_position, const In<T>& block, const In<T>& d_block,
                        std::span<const T> d_log_scale, Out<T> dX) const;
  // Some published libraries have maps whose features of one token depend on all keys (K, n x d). This returns the map
  // for these keys. Null: this map serves any keys, as every map should.
  virtual bool depends_on_keys() const { return false; }
  virtual std::unique_ptr<FeatureMap> given_keys(Context&, const In<T>& K) const {
    (void)K;
    return nullptr;
  }
};

template <class T>
void FeatureMap<T>::pullback(Context&, const In<T>&, Side, Index, const In<T>&, const In<T>&, std::span<const T>,
                             Out<T>) const {
  throw std::logic_error("this feature map has no pullback");
}

template <class T>
using MakeFeatureMap = std::function<std::unique_ptr<FeatureMap<T>>(const Draw&)>;

// A random feature map, for performer.
struct FeatureMapEntry {
  static constexpr const char* kind = "feature map";
  static constexpr const char* plural = "features";

  Description text;
  std::vector<Parameter> parameters;
  MakeFeatureMap<float> f32;
  MakeFeatureMap<double> f64;
  std::function<Index(const Params&, Index d)> features;  // F
  // Work of mapping one token, with the exponentials that the engine applies for it.
  std::function<Work(const Params&, Index d)> token_work = [](const Params&, Index) { return Work{}; };
  bool non_negative = false;     // every feature is >= 0
  std::string no_extremes = {};  // why tokens with large entries lose their weights (Claims::no_extremes)
  bool may_vanish = false;       // all features of a token may be 0, so a row may have no weight
  // Whether it learns from the calibration head.
  std::function<bool(const Params&)> fitted = [](const Params&) { return false; };
  // Random maps: mean and variance of the kernel estimate with that ensemble, for a map that learns from that head
  // (null: not known yet). Deterministic maps: the kernel itself, variance 0. Empty if no closed form is known.
  std::function<std::optional<KernelTheory>(const Params&, Index d, const EnsembleLaw&,
                                            const Head<double>* calibration)>
      theory = {};
};

extern template class Registry<FeatureMapEntry>;

// A deterministic map, for linear. relu(W x) and relu(x) share a name but are two maps, hence two catalogues.
struct DeterministicMapEntry : FeatureMapEntry {
  static constexpr const char* kind = "deterministic feature map";
  static constexpr const char* plural = "deterministic-features";
};

extern template class Registry<DeterministicMapEntry>;

// Static for the same reason as method (approximation.hpp).
template <template <class> class Map>
static FeatureMapEntry feature_map(FeatureMapEntry entry) {
  entry.f32 = [](const Draw& draw) { return std::make_unique<Map<float>>(draw); };
  entry.f64 = [](const Draw& draw) { return std::make_unique<Map<double>>(draw); };
  return entry;
}

template <template <class> class Map>
static DeterministicMapEntry deterministic_map(FeatureMapEntry entry) {
  return {feature_map<Map>(std::move(entry))};
}

// The entry of the map that the spec's `features` parameter names.
inline const FeatureMapEntry& feature_map_entry(const Params& params) {
  const auto& name = params.text("features");
  if (params.catalogue_of("features") == DeterministicMapEntry::plural) return find<DeterministicMapEntry>(name);
  return find<FeatureMapEntry>(name);
}

// Draws that map for everyone whom the spec's `share` parameter includes.
template <class T>
std::unique_ptr<FeatureMap<T>> make_feature_map(const Draw& draw) {
  const auto& entry = feature_map_entry(draw.params);
  const Draw shared = shared_draw(draw);
  if constexpr (std::is_same_v<T, float>)
    return entry.f32(shared);
  else
    return entry.f64(shared);
}

}  // namespace attnbench
