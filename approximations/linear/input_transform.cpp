#include "approximations/linear/input_transform.hpp"

#include "harness/linalg/factorisations.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench {

namespace {

Matrix<double> product(const In<double>& A, const In<double>& B) {
  Context context;
  Matrix<double> C(A.rows(), B.cols());
  multiply<double>(context, A, B, C);
  return C;
}

// Uncentred second moments of rows, regularised: adds 1e-4 of their mean to the diagonal, or I if all rows are 0.
// Otherwise a G fitted to keys that span few directions would be as ill-conditioned as they are and amplify other keys.
Matrix<double> second_moments(const Matrix<double>& X) {
  Context context;
  Matrix<double> M = Matrix<double>::Zero(X.cols(), X.cols());
  transposed_multiply_add<double>(context, X, X, M);
  M /= static_cast<double>(std::max<Index>(1, X.rows()));
  const double mean = M.trace() / static_cast<double>(M.rows());
  M.diagonal().array() += mean > 0 ? 1e-4 * mean : 1.0;
  return M;
}

Matrix<double> power(const Matrix<double>& M, double exponent) {
  const auto [values, V] = symmetric_eigenvectors(M);
  Matrix<double> scaled = V;
  for (Index j = 0; j < V.cols(); ++j)
    scaled.col(j) *= std::pow(std::max(values[static_cast<size_t>(j)], std::numeric_limits<double>::min()), exponent);
  Context context;
  Matrix<double> result(M.rows(), M.cols());
  multiply_transposed<double>(context, scaled, V, result);
  return result;
}

// The geometric mean of M1^-1 and M2: P M1 P = M2. G = P^1/2.
Matrix<double> full(const Matrix<double>& M1, const Matrix<double>& M2) {
  const Matrix<double> root = power(M1, 0.5), inverse_root = power(M1, -0.5);
  const Matrix<double> P = product(product(inverse_root, power(product(product(root, M2), root), 0.5)), inverse_root);
  return power((P + P.transpose()) / 2, 0.5);
}

Matrix<double> diagonal(const Matrix<double>& M1, const Matrix<double>& M2) {
  return (M2.diagonal().array() / M1.diagonal().array()).pow(0.25).matrix().asDiagonal();
}

}  // namespace

Matrix<double> InputTransform::of_queries(const In<double>& Q) const { return product(Q, query); }
Matrix<double> InputTransform::of_keys(const In<double>& K) const {
  Matrix<double> moved = product(K, key);
  moved.rowwise() += shift.row(0);
  return moved;
}

InputTransform transform_of(const Matrix<double>& G, const Matrix<double>& shift) {
  return {G, inverse(G).transpose(), shift};
}

InputTransform fit_transform(const Head<double>& head, TransformKind kind, bool centre) {
  const Index d = head.Q.cols();
  Matrix<double> Q = head.Q, K = head.K;
  const Matrix<double> mean_q = Q.colwise().mean(), mean_k = K.colwise().mean();
  if (centre) {
    Q.rowwise() -= mean_q.row(0);
    K.rowwise() -= mean_k.row(0);
  }
  Matrix<double> G = Matrix<double>::Identity(d, d);
  if (kind == TransformKind::diagonal) G = diagonal(second_moments(Q), second_moments(K));
  if (kind == TransformKind::full) G = full(second_moments(Q), second_moments(K));
  InputTransform fitted = transform_of(G, Matrix<double>::Zero(1, d));
  if (centre) fitted.shift = -(product(mean_q, fitted.query) + product(mean_k, fitted.key));
  return fitted;
}

const Head<double>& calibration_of(const Draw& draw, const std::string& what) {
  if (!draw.calibration)
    throw Misuse(draw.params.spec() + ": " + what +
                 " is learnt from a head, and no head was given; give one to learn from");
  return *draw.calibration;
}

KernelTheory transformed(const KernelTheory& theory, const InputTransform& transform) {
  const auto inside = [transform](const auto& f) {
    return [=](const Pair& pair) {
      const In<double> q(pair.q.data(), 1, pair.d, pair.d), k(pair.k.data(), 1, pair.d, pair.d);
      const Matrix<double> q1 = transform.of_queries(q), k1 = transform.of_keys(k);
      const auto span = [](const Matrix<double>& x) { return std::span(x.data(), static_cast<size_t>(x.size())); };
      return f(pair_of(span(q1), span(k1)), q1.row(0).dot(transform.shift.row(0)));
    };
  };
  KernelTheory outer = theory;
  outer.mean = inside([=](const Pair& p, double qc) { return theory.mean(p) * std::exp(-qc); });
  if (theory.variance)
    outer.variance = inside([=](const Pair& p, double qc) { return theory.variance(p) * std::exp(-2 * qc); });
  if (theory.correlation)
    outer.correlation = [=](Context& context, const In<double>& q, const In<double>& J, const In<double>& K,
                            const Out<double>& block) {
      theory.correlation(context, transform.of_queries(q), transform.of_keys(J), transform.of_keys(K), block);
    };
  return outer;
}

template <class T>
TransformedInputs<T>::TransformedInputs(std::unique_ptr<FeatureMap<T>> map, const InputTransform& transform,
                                        Tensors state)
    : map_(std::move(map)),
      query_(transform.query.cast<T>()),
      key_(transform.key.cast<T>()),
      shift_(transform.shift.cast<T>()),
      state_(std::move(state)) {}

template <class T>
TransformedInputs<T>::TransformedInputs(std::unique_ptr<FeatureMap<T>> map, const TransformedInputs& other)
    : map_(std::move(map)), query_(other.query_), key_(other.key_), shift_(other.shift_), state_(other.state_) {}

template <class T>
Matrix<T> TransformedInputs<T>::transformed(Context& context, const In<T>& X, Side side) const {
  Matrix<T> moved(X.rows(), X.cols());
  multiply<T>(context, X, side == Side::query ? query_ : key_, moved);
  if (side == Side::key) moved.rowwise() += shift_.row(0);
  return moved;
}

template <class T>
void TransformedInputs<T>::map(Context& context, const In<T>& X, Side side, Index first_position, Out<T> block,
                               std::span<T> log_scale) const {
  const Matrix<T> moved = transformed(context, X, side);
  map_->map(context, moved, side, first_position, block, log_scale);
  if (side == Side::key) return;
  for (Index i = 0; i < X.rows(); ++i) {  // exp(-q'.c): the shift then preserves the kernel, not only the attention
    log_scale[static_cast<size_t>(i)] -= moved.row(i).dot(shift_.row(0));
  }
}

template <class T>
void TransformedInputs<T>::pullback(Context& context, const In<T>& X, Side side, Index first_position,
                                    const In<T>& block, const In<T>& d_block, std::span<const T> d_log_scale,
                                    Out<T> dX) const {
  Matrix<T> d_moved(X.rows(), X.cols());
  map_->pullback(context, transformed(context, X, side), side, first_position, block, d_block, d_log_scale, d_moved);
  if (side == Side::query)
    for (Index i = 0; i < X.rows(); ++i) d_moved.row(i) -= d_log_scale[static_cast<size_t>(i)] * shift_.row(0);
  multiply_transposed<T>(context, d_moved, side == Side::query ? query_ : key_, dX);
}

template <class T>
Tensors TransformedInputs<T>::state() const {
  Tensors all = map_->state();
  all.insert(state_.begin(), state_.end());
  return all;
}

template <class T>
std::unique_ptr<FeatureMap<T>> TransformedInputs<T>::given_keys(Context& context, const In<T>& K) const {
  auto given = map_->given_keys(context, transformed(context, K, Side::key));
  return given ? std::unique_ptr<FeatureMap<T>>(new TransformedInputs(std::move(given), *this)) : nullptr;
}

template class TransformedInputs<float>;
template class TransformedInputs<double>;

}  // namespace attnbench
