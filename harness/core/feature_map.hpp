// The first plug point below a method: feature maps phi with phi(q).phi(k) ~ the weight of a pair. The linear attention
// engine (approximations/linear) does the products, the causal scan and the stabilising for all of them.
#pragma once

#include <memory>
#include <span>

#include "harness/core/approximation.hpp"
#include "harness/core/projection.hpp"

namespace attnbench {

enum class Side { query, key };
// values: phi = exp(log_scale_i) block_i, any sign. exponents: phi = exp(block), and the engine stabilises before it
// exponentiates (log_scale is then not read).
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
  // Maps of published libraries whose features of one token depend on all keys (K, n x d): the map for these keys.
  // Null: this one serves any keys, as every map should.
  virtual std::unique_ptr<FeatureMap> given_keys(Context&, const In<T>& K) const {
    (void)K;
    return nullptr;
  }
};

template <class T>
using MakeFeatureMap = std::function<std::unique_ptr<FeatureMap<T>>(const Draw&)>;

struct FeatureMapEntry {
  static constexpr const char* kind = "feature map";
  static constexpr const char* plural = "features";

  Description text;  // family "random" (performer) or "deterministic" (linear)
  std::vector<Parameter> parameters;
  MakeFeatureMap<float> f32;
  MakeFeatureMap<double> f64;
  std::function<Index(const Params&, Index d)> features;  // F
  // Work of mapping one token, with the exponentials that the engine applies for it.
  std::function<Work(const Params&, Index d)> token_work = [](const Params&, Index) { return Work{}; };
  bool non_negative = false;  // every feature is >= 0
  bool may_vanish = false;    // all features of a token may be 0, so a row may be left without weight
  // Whether it learns from the calibration head.
  std::function<bool(const Params&)> fitted = [](const Params&) { return false; };
  // Random maps: mean and variance of the kernel estimate with that ensemble, for a map that learns from that head
  // (null: not known yet). Deterministic ones: the kernel itself, variance 0. Empty where no closed form is known.
  std::function<std::optional<KernelTheory>(const Params&, Index d, const EnsembleLaw&,
                                            const Head<double>* calibration)>
      theory = {};
};

template <template <class> class Map>
FeatureMapEntry feature_map(FeatureMapEntry entry) {
  entry.f32 = [](const Draw& draw) { return std::make_unique<Map<float>>(draw); };
  entry.f64 = [](const Draw& draw) { return std::make_unique<Map<double>>(draw); };
  return entry;
}

// The map that the spec's `features` parameter names, drawn for whom its `share` parameter says.
template <class T>
std::unique_ptr<FeatureMap<T>> make_feature_map(const Draw& draw) {
  const auto& entry = find<FeatureMapEntry>(draw.params.text("features"));
  const Draw shared = shared_draw(draw);
  if constexpr (std::is_same_v<T, float>)
    return entry.f32(shared);
  else
    return entry.f64(shared);
}

}  // namespace attnbench
