// The engine of exact softmax attention, for weights exp(q.k_j + bias_j) (no bias: plain softmax).
//   out_i = sum_j exp(q_i.k_j + bias_j) v_j / sum_j exp(q_i.k_j + bias_j)
// Tiled with online rescaling (methods.md H): a tile of rows keeps running maxima, sums and output, never an n x n
// matrix. Skips tiles that a causal mask hides. Memory beyond input and output: O(tile) per thread.
//
// Gradients recompute the weights p_ij tile by tile from the logarithms of the normalisers. With G = dL/d out,
//   ds_ij = p_ij (G_i.v_j - G_i.out_i),  dq_i = sum_j ds_ij k_j,  dk_j = sum_i ds_ij q_i,  dv_j = sum_i p_ij G_i,
//   dbias_j = sum_i ds_ij.
#pragma once

#include "harness/core/approximation.hpp"
#include "harness/linalg/integer_products.hpp"

namespace attnbench {

// bias: nk entries, or empty. log_normalisers: nq entries to write, or empty; -infinity for a row that sees no key.
template <class T>
void tiled_softmax(const Head<T>& head, Mask mask, std::span<const T> bias, Context& context, Out<T> out,
                   std::span<T> log_normalisers = {});

// The same without a bias, for queries and keys that are codes: logits are integer sums. V: nk x dv.
void tiled_softmax_of_codes(const Codes& Q, const Codes& K, const In<float>& V, Mask mask, Context& context,
                            const Out<float>& out);

// bias_gradient: nk entries to write, or empty.
template <class T>
void tiled_softmax_backward(const Head<T>& head, Mask mask, std::span<const T> bias, const In<T>& out,
                            std::span<const T> log_normalisers, const In<T>& G, Context& context,
                            Gradients<T> gradients, std::span<T> bias_gradient = {});

}  // namespace attnbench
