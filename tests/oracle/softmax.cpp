// Exact attention of the softmax and of the Gaussian kernel, and the baselines.
#include <algorithm>

#include "tests/oracle/transcription.hpp"

namespace attnbench::oracle {

namespace {

// exp(-|q - k|^2 / 2), the distance entry by entry. methods.md A7.
Weights gaussian_kernel_weights(const HeadData<double>& head) {
  return exponential(head.Q.rows(), head.K.rows(), [&](Index i, Index j) {
    Real distance = 0;
    for (Index l = 0; l < head.Q.cols(); ++l) {
      const Real difference = static_cast<Real>(head.Q(i, l)) - static_cast<Real>(head.K(j, l));
      distance += difference * difference;
    }
    return -distance / 2;
  });
}

Weights uniform_weights(const HeadData<double>& head) {
  return exponential(head.Q.rows(), head.K.rows(), [](Index, Index) { return Real(0); });
}

Answer softmax(const Params&, const Tensors&, const HeadData<double>& head, Mask mask) {
  return normalise_visible(softmax_weights(head), head, mask);
}

Answer rbf(const Params&, const Tensors&, const HeadData<double>& head, Mask mask) {
  return normalise_visible(gaussian_kernel_weights(head), head, mask);
}

// exp(c tanh(q.k / c)), tanh from exponentials. methods.md W4.
Weights capped_weights(const Params& params, const Tensors&, const HeadData<double>& head) {
  const Real cap = static_cast<Real>(params.real("cap"));
  return exponential(head.Q.rows(), head.K.rows(), [&](Index i, Index j) {
    const Real grown = std::exp(2 * dot(head.Q, i, head.K, j) / cap);
    return cap * (grown - 1) / (grown + 1);
  });
}

Answer capped(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  return normalise_visible(capped_weights(params, state, head), head, mask);
}

Answer uniform(const Params&, const Tensors&, const HeadData<double>& head, Mask mask) {
  return normalise_visible(uniform_weights(head), head, mask);
}

// A_ij = 1 for the row's own key, if that is one that it sees.
Answer identity(const Params&, const Tensors&, const HeadData<double>& head, Mask mask) {
  const Set own = [=](Index i, Index j) { return sees(mask, i, j) && in_band(mask, 0, i, j); };
  return normalise(uniform_weights(head), head, own, own);
}

Answer zero(const Params&, const Tensors&, const HeadData<double>& head, Mask) {
  return normalise(
      uniform_weights(head), head, [](Index, Index) { return false; }, [](Index, Index) { return false; });
}

Weights exact_weights(const Params&, const Tensors&, const HeadData<double>& head) { return softmax_weights(head); }

Weights rbf_weights(const Params&, const Tensors&, const HeadData<double>& head) {
  return gaussian_kernel_weights(head);
}

const bool registered = add({.method = "softmax", .attention = softmax, .weights = exact_weights}) &&
                        add({.method = "rbf", .attention = rbf, .weights = rbf_weights}) &&
                        add({.method = "capped", .attention = capped, .weights = capped_weights}) &&
                        add({.method = "uniform", .attention = uniform}) &&
                        add({.method = "identity", .attention = identity}) &&
                        add({.method = "zero", .attention = zero});

}  // namespace

}  // namespace attnbench::oracle
