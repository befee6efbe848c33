// Every method a second time, as loops over single numbers in extended precision, written from methods.md and from
// nothing in approximations/. Slow, O(n^2 F), and right at logits where double would overflow: weights carry their
// exponent beside them. Drawn or learnt numbers (projections, codebooks) are read from the method's own state.
//
// A new method gets its transcription in a file of this folder (transcription.hpp), a feature map one line in the
// tables of linear.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/core/parameters.hpp"
#include "harness/core/problem.hpp"

namespace attnbench::oracle {

struct Answer {
  Matrix<double> A;    // nq x nk
  Matrix<double> out;  // nq x dv, A V
  // One a row: (sum of the absolute terms) / |their sum|, of the row's normaliser and, where A is a product of signed
  // factors, of that product: how much a rounding error of the terms may grow. 1 where nothing cancels. A row whose
  // weights sum to exactly 0 is 0.
  std::vector<double> condition;
};

// Whether that method has a transcription, regardless of its feature map.
bool transcribes(const std::string& method);
// The feature map of this spec that has no transcription; nothing when there is one or none is needed.
std::optional<std::string> unknown_features(const Params& params);

// The weights that take the place of exp(q.k), nq x nk, before mask and normalisation, over exp(log), and beside each
// the sum of the absolute terms that it is the sum of, down to the products omega_l x_l where a feature is a power of
// omega.x: what a relative rounding error refers to. Nothing for methods that have no weights of their own (linformer).
struct Estimate {
  Matrix<double> weight, magnitude, log;
};
std::optional<Estimate> kernel(const Params& params, const Tensors& state, const HeadData<double>& head);

// Whether the output jumps somewhere, so that a rounding error of any size may show.
bool jumps(const Params& params);
// The distance of the head from the nearest jump, divided by how far a relative rounding error of eps may move it.
// Above 1, rounding changes no decision.
double distance_to_jump(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask,
                        double eps);

Answer attention(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask);

}  // namespace attnbench::oracle
