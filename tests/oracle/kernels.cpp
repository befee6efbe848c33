// Kernels with features of their own, and Efficient attention. methods.md C.
#include <algorithm>

#include "tests/oracle/transcription.hpp"

namespace attnbench::oracle {

namespace {

// Weights f(q.k), f a sum of powers; the magnitude is f of the absolute terms of q.k.
template <class Function>
Weights of_products(const HeadData<double>& head, const Function& f) {
  Weights weights(head.Q.rows(), head.K.rows());
  for (Index i = 0; i < head.Q.rows(); ++i)
    for (Index j = 0; j < head.K.rows(); ++j) {
      Real absolute = 0;
      for (Index l = 0; l < head.Q.cols(); ++l)
        absolute += std::abs(static_cast<Real>(head.Q(i, l)) * static_cast<Real>(head.K(j, l)));
      weights.value(i, j) = f(dot(head.Q, i, head.K, j));
      weights.magnitude(i, j) = f(absolute);
    }
  return weights;
}

// methods.md C: (q.k)^p.
Weights polynomial_weights(const Params& params, const HeadData<double>& head) {
  const Real degree = static_cast<Real>(params.integer("degree"));
  return of_products(head, [=](Real s) { return std::pow(s, degree); });
}

// methods.md C: 1 + s + s^2/2, or 1 + cosine.
Weights taylor_weights(const Params& params, const HeadData<double>& head) {
  if (params.integer("order") == 2) return of_products(head, [](Real s) { return 1 + s + s * s / 2; });
  Weights weights = of_products(head, [](Real s) { return s; });
  for (Index i = 0; i < head.Q.rows(); ++i)
    for (Index j = 0; j < head.K.rows(); ++j) {
      const Real lengths = std::sqrt(dot(head.Q, i, head.Q, i)) * std::sqrt(dot(head.K, j, head.K, j));
      weights.value(i, j) = lengths > 0 ? 1 + weights.value(i, j) / lengths : 1;
      weights.magnitude(i, j) = lengths > 0 ? 1 + weights.magnitude(i, j) / lengths : 1;
    }
  return weights;
}

// methods.md C: relu(q).relu(k) cos(pi (i - j) / 2M), M the number of positions of rows and keys.
Weights cosformer_weights(const HeadData<double>& head, Mask mask) {
  const Index nq = head.Q.rows(), nk = head.K.rows();
  const Index M = std::max(nk, nq + mask.offset) - std::min<Index>(0, mask.offset);
  const Real pi = std::acos(Real(-1));
  Weights weights(nq, nk);
  for (Index i = 0; i < nq; ++i)
    for (Index j = 0; j < nk; ++j) {
      Real sum = 0;
      for (Index l = 0; l < head.Q.cols(); ++l)
        sum += std::max(static_cast<Real>(head.Q(i, l)), Real(0)) * std::max(static_cast<Real>(head.K(j, l)), Real(0));
      const Real distance = static_cast<Real>(i + mask.offset - j);
      weights.value(i, j) = weights.magnitude(i, j) = sum * std::cos(pi * distance / (2 * static_cast<Real>(M)));
    }
  return weights;
}

Answer polynomial(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  return normalise_visible(polynomial_weights(params, head), head, mask);
}

Answer taylor(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  return normalise_visible(taylor_weights(params, head), head, mask);
}

Answer cosformer(const Params&, const Tensors&, const HeadData<double>& head, Mask mask) {
  return normalise_visible(cosformer_weights(head, mask), head, mask);
}

// methods.md C: A_ij = sum_c softmax over c of q_ic times softmax over j of k_jc.
Answer efficient(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  const Index nq = head.Q.rows(), nk = head.K.rows(), d = head.Q.cols();
  const Real factor = params.text("inputs") == "unscaled" ? std::sqrt(std::sqrt(static_cast<Real>(d))) : 1;
  Weights weights(nq, nk);
  for (Index c = 0; c < d; ++c) {
    Real of_keys = 0;
    for (Index j = 0; j < nk; ++j)
      if (sees(mask, 0, j)) of_keys += std::exp(factor * static_cast<Real>(head.K(j, c)));
    for (Index i = 0; i < nq; ++i) {
      Real of_channels = 0;
      for (Index l = 0; l < d; ++l) of_channels += std::exp(factor * static_cast<Real>(head.Q(i, l)));
      const Real of_query = std::exp(factor * static_cast<Real>(head.Q(i, c))) / of_channels;
      for (Index j = 0; j < nk; ++j)
        weights.value(i, j) += of_query * std::exp(factor * static_cast<Real>(head.K(j, c))) / of_keys;
    }
  }
  weights.magnitude = weights.value;
  return normalise_visible(weights, head, mask);  // the rows sum to one as they are
}

Weights kernel_of_polynomial(const Params& params, const Tensors&, const HeadData<double>& head) {
  return polynomial_weights(params, head);
}

Weights kernel_of_taylor(const Params& params, const Tensors&, const HeadData<double>& head) {
  return taylor_weights(params, head);
}

Weights kernel_of_cosformer(const Params&, const Tensors&, const HeadData<double>& head) {
  return cosformer_weights(head, {});
}

const bool registered = add({.method = "polynomial", .attention = polynomial, .weights = kernel_of_polynomial}) &&
                        add({.method = "taylor", .attention = taylor, .weights = kernel_of_taylor}) &&
                        add({.method = "cosformer", .attention = cosformer, .weights = kernel_of_cosformer}) &&
                        add({.method = "efficient", .attention = efficient});

}  // namespace

}  // namespace attnbench::oracle
