// Keys and values compressed along the sequence to the principal components of the keys: Linformer's eq. 7 (Wang et
// al., arXiv:2006.04768) with the projection that fits the head's own keys.
//   out = softmax(q (E k)^T) (E v),  E = U_r^T with k = U S W^T
// Of all r x n projections, this E makes E^T E k nearest to k (Eckart and Young 1936); no such bound is known for the
// softmax. There are at most d components. The sign of a singular vector is arbitrary; it is chosen so that the entries
// sum to >= 0. E is C k^T with C = S^-1 W^T, so that E k = S W^T, and E v = C (k^T v) needs no n x r matrix.
#include <cmath>
#include <limits>

#include "approximations/softmax/tiled_softmax.hpp"
#include "harness/linalg/factorisations.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::principal_keys_method {
namespace {

// A QR decomposition of n x d and the SVD of its triangle (Golub and Van Loan 2013, section 8.6).
double decomposition_flops(double n, double d) { return 2 * n * d * d + 12 * d * d * d; }

template <class T>
class PrincipalKeys final : public Approximation<T>, public Factored<T> {
 public:
  explicit PrincipalKeys(const Draw& draw) : most_(draw.params.integer("r")) {}

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const Index keys = mask.visible(0, head.K.rows());
    if (keys == 0) return void(out.setZero());
    const In<T> K = row_block(head.K, 0, keys), V = row_block(head.V, 0, keys);
    const Components components = components_of(context, K);
    Matrix<T> sums = Matrix<T>::Zero(K.cols(), V.cols()), values(components.C.rows(), V.cols());
    transposed_multiply_add<T>(context, K, V, sums);
    multiply<T>(context, components.C, sums, values);
    tiled_softmax<T>({head.Q, components.keys, values}, {}, {}, context, out);
  }

  const Factored<T>* factored() const override { return this; }

  // L = softmax(q (E k)^T), R = E^T.
  void factors(const Head<T>& head, Mask mask, Context& context, Matrix<T>& L, Matrix<T>& R) const override {
    const Index keys = mask.visible(0, head.K.rows());
    if (keys == 0) {
      L = Matrix<T>::Zero(head.Q.rows(), 1);
      R = Matrix<T>::Zero(head.K.rows(), 1);
      return;
    }
    const In<T> K = row_block(head.K, 0, keys);
    const Components components = components_of(context, K);
    const Index count = components.C.rows();
    L.resize(head.Q.rows(), count);
    multiply_transposed<T>(context, head.Q, components.keys, L);
    for (Index i = 0; i < L.rows(); ++i) softmax_within<T>(context, L, i, 0, count);
    R = Matrix<T>::Zero(head.K.rows(), count);
    multiply_transposed<T>(context, K, components.C, row_block(R, 0, keys));
  }

 private:
  struct Components {
    Matrix<T> C, keys;  // count x d each: E = C k^T, and E k
  };

  // In double for every T. Drops components up to the size of the rounding error of the largest one, but never the
  // first component.
  Components components_of(Context& context, const In<T>& K) const {
    const Matrix<double> keys = K.template cast<double>();
    const auto [sigma, W] = right_singular_vectors(triangular_factor(keys));
    const auto n = static_cast<double>(K.rows()), d = static_cast<double>(K.cols());
    context.work.flops += decomposition_flops(n, d);
    const double least = sigma.front() * std::max(n, d) * static_cast<double>(std::numeric_limits<T>::epsilon());
    const Index most = std::min(most_, K.cols());
    Index count = 1;
    while (count < most && sigma[static_cast<size_t>(count)] > least) ++count;
    const Matrix<double> sums = keys.colwise().sum();
    Components found{Matrix<T>::Zero(count, K.cols()), Matrix<T>::Zero(count, K.cols())};
    if (sigma.front() == 0) return found;  // all keys are 0
    for (Index a = 0; a < count; ++a) {
      const double size = sigma[static_cast<size_t>(a)];
      const double sign = sums.row(0).dot(W.col(a)) < 0 ? -1 : 1;
      found.C.row(a) = (sign / size * W.col(a)).transpose().template cast<T>();
      found.keys.row(a) = (sign * size * W.col(a)).transpose().template cast<T>();
    }
    return found;
  }

  Index most_;
};

const bool registered = add(method<PrincipalKeys>({
    .text = {.name = "principal-keys",
             .summary = "keys and values compressed to the principal components of the keys",
             .formula = "A = softmax(q (E k)^T) E, E = U_r^T with k = U S W^T",
             .reference = "Wang et al. 2020, arXiv:2006.04768, eq. 7; Eckart and Young 1936, Psychometrika 1:211",
             .cost = "O(n d (d + dv) + n r (d + dv)) time, O(d^2) memory",
             .family = "low-rank"},
    .parameters = {Parameter::integer("r", 64, "components, of which there are at most d", 1, 1 << 20).as_budget()},
    .claims =
        [](const Params& params, const Shape& shape) {
          return Claims{.row_stochastic = false,
                        .non_negative = false,
                        .no_form = shape.mask.causal ? "every component mixes all tokens, later ones included" : "",
                        .rank_at_most = std::min(params.integer("r"), shape.d)};
        },
    .memory =
        [](const Params&, const Shape& shape) {
          const auto d = static_cast<double>(shape.d), dv = static_cast<double>(shape.dv);
          return static_cast<double>(shape.nk) * d * sizeof(double) +
                 d * (2 * d + 2 * dv) * static_cast<double>(bytes_of(shape.precision));
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const auto nq = static_cast<double>(shape.nq), nk = static_cast<double>(shape.nk),
                     d = static_cast<double>(shape.d), dv = static_cast<double>(shape.dv);
          const auto r = static_cast<double>(std::min(params.integer("r"), shape.d));
          return Work{.flops = decomposition_flops(nk, d) + 2 * nk * d * dv + 2 * r * d * dv + 2 * r * nq * (d + dv),
                      .exps = r * nq};
        },
}));

}  // namespace
}  // namespace attnbench::principal_keys_method
