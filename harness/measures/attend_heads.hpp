// Applies one method to every head of a caller's arrays: `attnbench attend` on files, `attnbench.attend` of Python on
// arrays.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "harness/core/layer_place.hpp"
#include "harness/core/needs.hpp"

namespace attnbench {

// Both functions return scaled heads (harness/core/scaling.hpp).
template <class T>
struct GivenHeads {
  Index batches = 1, heads = 1;
  Index key_heads = 0;  // of each batch, shared by equal groups of heads; 0: each head has its own
  Index nq = 0, nk = 0, d = 0, dv = 0;
  std::function<HeadData<T>(Index batch, Index head)> measured;
  std::function<HeadData<double>(Index batch, Index head)> calibration;  // called for fitted methods only
};

struct AttendRequest {
  const Params& method;
  bool causal = false;  // the last query sees every key
  std::uint64_t seed = 1;
  // Tensors to use instead of drawing or learning them: none, one set for all heads, or one for each head.
  std::vector<Tensors> states = {};
  LayerPlace place = {};
  // Who gives the heads, and how to give what a method needs beside Q, K and V: see extras_for.
  std::string giver = "the caller";
  std::function<std::string(const Need&)> advice = {};
};

// The caller's memory, row-major with the axes batch, head, row, column. The caller leaves unwanted results empty.
template <class T>
struct AttendResults {
  std::span<T> out;                                  // nq x dv
  std::span<T> attention;                            // nq x nk
  std::span<T> kernel;                               // nq x nk: exp(log_row_i + log_column_j) times the method's block
  std::span<T> kernel_log_rows, kernel_log_columns;  // nq, nk; only with `kernel`
  std::vector<Tensors>* states = nullptr;            // what each head of the first batch drew and learnt
};

// First rounds the heads to the context's half precision. If the method takes several heads in one call (AllHeads), the
// outputs of a batch are one call. Throws Misuse if the method cannot give a wanted result or does not know an injected
// tensor, Skip like make_approximation, and NumericallyInvalid for the first result that is NaN or infinite.
template <class T>
void attend_heads(const AttendRequest& request, const GivenHeads<T>& given, Context& context,
                  const AttendResults<T>& results);

}  // namespace attnbench
