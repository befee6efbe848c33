// Loki: exact softmax over the keys whose logits are largest in the principal components of the keys. Singhania et al.
// 2024, arXiv:2406.02542, algorithm 1.
//   B = the r leading eigenvectors of the covariance of the calibration head's keys, r x d                 methods.md U
//   S = the k keys of largest (B q).(B k) (ties: the first);  softmax of q.k over S
// The paper fits B for each layer and head on a calibration set, as here. r = d is exact top-k, because B is then
// orthogonal. A fit to the head's own keys would let rows see later keys through B.
#include "approximations/selection/chosen_keys.hpp"
#include "harness/linalg/factorisations.hpp"

namespace attnbench::loki_method {
namespace {

// The r leading principal components of X (n x d), r x d, as rows. Largest variance first.
Matrix<double> principal_components(const In<double>& X, Index r) {
  const Matrix<double> centred = X.rowwise() - X.colwise().mean().eval();
  const Matrix<double> R = triangular_factor(centred);
  const Matrix<double> V = right_singular_vectors(R).V;
  return V.leftCols(r).transpose();
}

template <class T>
class LargestReduced final : public KeyChoice<T> {
 public:
  LargestReduced(const Head<T>& head, Index k, const Matrix<T>& basis)
      : head_(head), k_(k), basis_(basis), keys_(head.K.rows(), basis.rows()) {}

  void extend(Context& context, Index first, Index end) override {
    multiply_transposed<T>(context, row_block(head_.K, first, end - first), basis_,
                           row_block(keys_, first, end - first));
  }
  size_t bytes(Index keys) const override { return static_cast<size_t>(keys * basis_.rows()) * sizeof(T); }

  void choose(Context& context, Mask mask, Index first, std::span<WeighedKeys<T>> rows,
              std::span<double>) const override {
    const Index count = std::ssize(rows), nk = head_.K.rows(), most = mask.visible(first + count - 1, nk);
    if (most == 0) return;
    Matrix<T> queries(count, basis_.rows()), scores(count, most);
    multiply_transposed<T>(context, row_block(head_.Q, first, count), basis_, queries);
    multiply_transposed<T>(context, queries, row_block(keys_, 0, most), scores);
    LargestScores<T> largest(k_);
    for (Index i = 0; i < count; ++i) {
      largest.clear();
      largest.add(0, {&scores(i, 0), static_cast<size_t>(mask.visible(first + i, nk))});
      for (const auto& found : largest.found()) rows[static_cast<size_t>(i)].keys.push_back(found.key);
    }
  }

 private:
  Head<T> head_;
  Index k_;
  const Matrix<T>& basis_;
  Matrix<T> keys_;  // nk x r
};

template <class T>
class Loki final : public SelectedSoftmax<T> {
 public:
  explicit Loki(const Draw& draw) : k_(draw.params.integer("k")) {
    const Index r = std::min(draw.params.integer("r"), draw.shape.d);
    if (const auto* given = draw.injected("basis", r, draw.shape.d)) {
      basis_ = *given;
    } else {
      if (!draw.calibration) throw Misuse("loki: the basis is fitted to a calibration head, but none was given");
      basis_ = principal_components(draw.calibration->K, r);
    }
    rounded_ = basis_.cast<T>();
  }

  Tensors state() const override { return {{"basis", basis_}}; }

 private:
  std::unique_ptr<KeyChoice<T>> choice(const Head<T>& head, Mask, Context&) const override {
    return std::make_unique<LargestReduced<T>>(head, k_, rounded_);
  }

  Index k_;
  Matrix<double> basis_;  // r x d
  Matrix<T> rounded_;
};

const bool registered = add(method<Loki>({
    .text = {.name = "loki",
             .summary = "softmax over the keys that are largest in the principal components of the keys",
             .formula = "A_ij = exp(q_i.k_j) / sum over the k largest (B q_i).(B k_l) of exp(q_i.k_l), B the r leading "
                        "principal components of the calibration head's keys",
             .reference = "Singhania et al. 2024, arXiv:2406.02542, algorithm 1",
             .cost = "O(n^2 r + n r d + n k (d + dv)) time, O(n r) memory",
             .family = "selection",
             .departure =
                 "r and k are numbers, not shares of d and n; every row is treated as a decoding step is there"},
    .parameters = {Parameter::integer("r", 16, "principal components that scores are computed from, of d", 1, 1 << 20),
                   Parameter::integer("k", 64, "keys of a row", 1).as_budget()},
    .claims =
        [](const Params&, const Shape&) {
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .permutation_equivariant = true,
                        .causal_exact = true,
                        .exact_when = "k=1000000000"};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          const double r = static_cast<double>(std::min(params.integer("r"), shape.d));
          const double kept = static_cast<double>(std::min(params.integer("k"), shape.nk));
          return static_cast<double>(shape.nk) * (r + gathered_rows + 1) * bytes_of(shape.precision) +
                 memory_of_gathered(kept, false, shape);
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const double r = static_cast<double>(std::min(params.integer("r"), shape.d));
          const double d = static_cast<double>(shape.d), dv = static_cast<double>(shape.dv);
          const double scored = sum_over_blocks(shape, [](Index keys) { return keys; });
          const double pairs =
              sum_over_rows(shape, [&](Index keys, Index) { return std::min(keys, params.integer("k")); });
          return Work{
              .flops = 2 * static_cast<double>(shape.nq + shape.nk) * r * d + 2 * scored * r + 2 * pairs * (d + dv),
              .exps = pairs};
        },
    .fitted = [](const Params&) { return true; },
}));

}  // namespace
}  // namespace attnbench::loki_method
