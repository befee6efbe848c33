// Several heads in one call, for methods that compute them faster together.
#pragma once

#include <optional>

#include "harness/core/approximation.hpp"

namespace attnbench {

struct PassSeconds {
  double forward = 0, backward = 0;
};

// The instances of one method for several heads, as one.
template <class T>
class AllHeads {
 public:
  virtual ~AllHeads() = default;
  // Writes for each head what attend of its own instance gives: heads and outputs in the order of the instances.
  virtual void attend(std::span<const HeadData<T>> heads, Mask mask, Context& context,
                      std::span<Matrix<T>> outputs) const = 0;
  // The output of a plain transcription for all heads, where they depend on each other (Claims::mixes_heads). Empty:
  // the method has no transcription.
  virtual std::vector<Matrix<double>> transcription(std::span<const HeadData<double>> heads, Mask mask) const {
    (void)heads, (void)mask;
    return {};
  }
  // Seconds of one of `calls` calls by the clock of the device that makes them, with inputs that are there already.
  // Nullopt: it runs on the processor, where the caller can time attend.
  virtual std::optional<double> seconds_on_device(std::span<const HeadData<T>> heads, Mask mask, Index calls) const {
    (void)heads, (void)mask, (void)calls;
    return std::nullopt;
  }
  // Seconds of the passes of one of `calls` training steps with the loss sum_h <G_h, out_h>, with inputs that are in
  // place already. Nullopt: gradients take one head a call.
  virtual std::optional<PassSeconds> training_step(std::span<const HeadData<T>> heads, std::span<const Matrix<T>> G,
                                                   Mask mask, Index calls) const {
    (void)heads, (void)G, (void)mask, (void)calls;
    return std::nullopt;
  }
};

// Second base class, beside Approximation, of instances that can be joined with those of other heads.
template <class T>
class Joinable {
 public:
  virtual ~Joinable() = default;
  // The instances are drawn for one shape. key_heads: how many of their heads have keys of their own; each group of
  // instances.size() / key_heads heads in a row shares keys and values. Null: this one takes one head per call, or they
  // are not all of one configuration (per-head gives each head its own).
  virtual std::unique_ptr<AllHeads<T>> joined(std::span<const std::unique_ptr<Approximation<T>>> instances,
                                              Index key_heads) const = 0;
};

// Null if the method takes one head per call. key_heads: 0 if each head has keys of its own.
template <class T>
std::unique_ptr<AllHeads<T>> all_heads(std::span<const std::unique_ptr<Approximation<T>>> instances,
                                       Index key_heads = 0) {
  const auto* joinable = instances.empty() ? nullptr : dynamic_cast<const Joinable<T>*>(instances[0].get());
  return joinable ? joinable->joined(instances, key_heads > 0 ? key_heads : std::ssize(instances)) : nullptr;
}

}  // namespace attnbench
