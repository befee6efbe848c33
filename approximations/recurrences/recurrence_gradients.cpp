// Gradients of a recurrence, one token after another from the last to the first. With g_t the gradient of row t, and
// R_t that of S_t (R = sum of q g^T over the rows that read the last state, at its end),
//   R_t += q_t g_t^T,  dq_t = S_t g_t,  du_t = R_t^T k_t,  dk_t = R_t u_t,  dw_t = du_t.u_t / w_t,  dv_t = w_t du_t
//   P_t = R_t, the gradient of D_t S_t-1; delta rule: h_t = -w_t du_t, dk_t += D_t S_t-1 h_t, P_t = R_t + k_t h_t^T
//   dkeep_t = the row sums of P_t o S_t-1 (their sum for one gate a token),  R_t-1 = D_t P_t
// A first pass saves the state before each block of tokens, and a block computes its own states again.
#include "approximations/recurrences/reading_rows.hpp"
#include "approximations/recurrences/recurrence.hpp"

namespace attnbench {

namespace {

constexpr Index block = 16;  // states of a block: 16 d dv numbers

// D S.
template <class T>
Matrix<T> kept(const In<T>& keep, const Matrix<T>& S) {
  if (keep.cols() == 1) return keep(0, 0) * S;
  return (S.array().colwise() * keep.row(0).transpose().array()).matrix();
}

}  // namespace

template <class T>
void Recurrence<T>::backward(const Head<T>& head, Mask mask, const In<T>&, const std::vector<T>&, const In<T>& G,
                             Context& context, Gradients<T> gradients) const {
  const Index d = head.K.cols(), dv = head.V.cols();
  const ReadingRows rows(head.Q.rows(), head.K.rows(), mask);
  const Matrix<T> Q = prepared(head.Q), K = prepared(head.K);
  const Gates<T> given = gates(head, context);
  Gates<T> slopes{Matrix<T>::Zero(given.keep.rows(), given.keep.cols()), Matrix<T>::Zero(given.write.rows(), 1)};
  gradients.Q.setZero();
  gradients.K.setZero();
  gradients.V.setZero();

  std::vector<Matrix<T>> before;
  RecurrentState<T> state(d, dv, form_.erases);
  Matrix<T> none(0, dv);
  for (Index t = 0; t < rows.tokens; t += block) {
    const Index count = std::min(block, rows.tokens - t);
    before.push_back(state.S());
    state.take_in(row_block(K, t, count), row_block(head.V, t, count), row_block(given.keep, t, count),
                  row_block(given.write, t, count), row_block(Q, 0, 0), 0, context, none);
  }

  Matrix<T> R = Matrix<T>::Zero(d, dv);
  if (const Index after = head.Q.rows() - rows.end; after > 0) {
    multiply_transposed<T>(context, row_block(G, rows.end, after), state.S(), row_block(gradients.Q, rows.end, after));
    transposed_multiply_add<T>(context, row_block(Q, rows.end, after), row_block(G, rows.end, after), R);
  }

  Matrix<T> U(block, dv), held(1, dv), du(1, dv), dk(1, d), h(1, dv);
  for (Index b = std::ssize(before) - 1; b >= 0; --b) {
    const Index first = b * block, count = std::min(block, rows.tokens - first);
    std::vector<Matrix<T>> S{std::move(before[static_cast<size_t>(b)])}, faded;  // S_t-1 and D_t S_t-1
    for (Index t = first; t < first + count; ++t) {
      faded.push_back(kept<T>(row_block(given.keep, t, 1), S.back()));
      const Out<T> u = row_block(U, t - first, 1);
      row_block(U, t - first, 1) = head.V.row(t);
      if (form_.erases) {
        multiply<T>(context, row_block(K, t, 1), faded.back(), held);
        U.row(t - first) -= held;
      }
      U.row(t - first) *= given.write(t, 0);
      S.push_back(faded.back());
      transposed_multiply_add<T>(context, row_block(K, t, 1), u, S.back());
    }
    for (Index t = first + count - 1; t >= first; --t) {
      const auto at = static_cast<size_t>(t - first);
      if (const Index row = rows.of(t); rows.of(t + 1) > row) {
        multiply_transposed<T>(context, row_block(G, row, 1), S[at + 1], row_block(gradients.Q, row, 1));
        transposed_multiply_add<T>(context, row_block(Q, row, 1), row_block(G, row, 1), R);
      }
      multiply<T>(context, row_block(K, t, 1), R, du);
      multiply_transposed<T>(context, row_block(U, t - first, 1), R, dk);
      gradients.K.row(t) += dk;
      gradients.V.row(t) = given.write(t, 0) * du;
      Matrix<T> value = head.V.row(t);  // what w_t multiplies
      if (form_.erases) {
        multiply<T>(context, row_block(K, t, 1), faded[at], held);
        value -= held;
        h = -given.write(t, 0) * du;
        multiply_transposed<T>(context, h, faded[at], dk);
        gradients.K.row(t) += dk;
        transposed_multiply_add<T>(context, row_block(K, t, 1), h, R);
      }
      slopes.write(t, 0) = (du.array() * value.array()).sum();
      if (given.keep.cols() == 1)
        slopes.keep(t, 0) = (R.array() * S[at].array()).sum();
      else
        slopes.keep.row(t) = (R.array() * S[at].array()).rowwise().sum().transpose().matrix();
      R = kept<T>(row_block(given.keep, t, 1), R);
    }
  }

  if (form_.unit_length) {
    pull_length(head.Q, Q, gradients.Q);
    pull_length(head.K, K, gradients.K);
  }
  pull_gates(head, given, slopes, context, gradients.K);
}

// y = x / |x|: dx = (dy - y (y.dy)) / |x|. A row of zeros, which stays as it is, passes its gradient on.
template <class T>
void Recurrence<T>::pull_length(const In<T>& X, const Matrix<T>& Y, Out<T> slopes) {
  for (Index i = 0; i < X.rows(); ++i) {
    const T length = X.row(i).stableNorm();
    if (length == 0) continue;
    const T along = (Y.row(i).array() * slopes.row(i).array()).sum();
    slopes.row(i) = (slopes.row(i) - along * Y.row(i)) / length;
  }
}

#define ATTNBENCH_INSTANTIATE(T)                                                                                 \
  template void Recurrence<T>::backward(const Head<T>&, Mask, const In<T>&, const std::vector<T>&, const In<T>&, \
                                        Context&, Gradients<T>) const;                                           \
  template void Recurrence<T>::pull_length(const In<T>&, const Matrix<T>&, Out<T>);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
#undef ATTNBENCH_INSTANTIATE

}  // namespace attnbench
