// The subject of a check: a spec with all its declarations, and the functions that make what runs. Tests plant bugs by
// replacing the makers, which leaves the claims unchanged.
#pragma once

#include "harness/core/approximation.hpp"
#include "harness/core/projection.hpp"

namespace attnbench {

struct Subject {
  Params params;
  std::function<Claims(const Params&, const Shape&)> claims;
  std::function<std::optional<KernelTheory>(const Params&, const Shape&, const Head<double>* calibration)> theory;
  std::function<EnsembleLaw(const Params&, Index d)> law = {};  // of its projection vectors; empty: it has none
  bool fitted = false;                                          // learns from the calibration head
  MakeApproximation<float> f32;
  MakeApproximation<double> f64;
  std::function<double(const Params&, const Shape&)> memory;
  std::function<Work(const Params&, const Shape&)> cost;
  std::function<double(const Params&, const Shape&)> least_flops = {};    // empty: the data do not decide
  std::function<double(const Params&, const Shape&)> decoder_bytes = {};  // empty: not declared
  bool memory_assumed = false, cost_assumed = false;
  bool asks_for_seed = false;
  Transcription transcription = {};                               // empty: it has none
  std::function<std::vector<Golden>(const Params&)> golden = {};  // the same
  bool built_in = true;                                           // not of a plugin
  bool interpreted = false;  // in Python: one thread at a time, and plain loops take microseconds a number

  template <class T>
  std::unique_ptr<Approximation<T>> make(const Draw& draw) const {
    if constexpr (std::is_same_v<T, float>)
      return f32(draw);
    else
      return f64(draw);
  }
};

// Reads everything from the registries.
Subject subject_of(const Params& params);

// Every method at its defaults, every random feature map with independent projection vectors, every deterministic map,
// and every ensemble under positive and under trigonometric features, which depend on q + k and q - k. Not their
// product.
std::vector<Subject> all_subjects();

}  // namespace attnbench
