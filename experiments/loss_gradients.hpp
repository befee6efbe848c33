// The gradients of a loss with respect to the queries, keys and values of one head: <G, out> with G normal.
#pragma once

#include "harness/experiment/experiment.hpp"

namespace attnbench {

// G, n x dv, of one head of the task. It is the same for every method and precision.
Matrix<double> loss_weights(const Task& task, Index head);

// The method's gradients, in the shapes of Q, K and V. Throws Skip if the method has none under the cell's mask.
template <class T>
HeadData<T> loss_gradients(const Task& task, const Approximation<T>& method, const HeadData<T>& head,
                           const Matrix<T>& G);

}  // namespace attnbench
