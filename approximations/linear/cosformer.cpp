// cosFormer. Qin et al., arXiv:2202.08791, eq. 10 and 12.
//   K_ij = relu(q_i).relu(k_j) cos(pi (i - j) / 2M)
//   phi(x_p) = [relu(x) cos(pi p / 2M); relu(x) sin(pi p / 2M)] at position p,  2d features          methods.md C
// M is the number of positions that the rows and keys of the drawn shape cover, so that every distance is below M.
// Positions count from the first of them, so that no feature is negative. A row that shares no positive channel with
// any key that it sees has normaliser 0.
#include <cmath>
#include <numbers>

#include "approximations/linear/linear_attention.hpp"
#include "approximations/linear/linear_cost.hpp"

namespace attnbench::cosformer_method {
namespace {

template <class T>
class CosFormerFeatures final : public FeatureMap<T> {
 public:
  explicit CosFormerFeatures(const Draw& draw)
      : d_(draw.shape.d),
        first_key_(std::max<Index>(0, -draw.shape.mask.offset)),
        first_query_(first_key_ + draw.shape.mask.offset),
        angle_(std::numbers::pi / 2 /
               static_cast<double>(std::max(first_key_ + draw.shape.nk, first_query_ + draw.shape.nq))) {}

  Index features() const override { return 2 * d_; }
  Form form() const override { return Form::values; }
  void map(Context& context, const In<T>& X, Side side, Index first, Out<T> block,
           std::span<T> log_scale) const override {
    for (Index i = 0; i < X.rows(); ++i) {
      const double angle = angle_of(side, first + i);
      const auto x = X.row(i).array().max(T(0));
      block.row(i).head(d_).array() = x * static_cast<T>(std::cos(angle));
      block.row(i).tail(d_).array() = x * static_cast<T>(std::sin(angle));
    }
    context.work.exps += 2 * static_cast<double>(X.rows());
    std::fill(log_scale.begin(), log_scale.end(), T(0));
  }
  bool differentiable() const override { return true; }
  void pullback(Context& context, const In<T>& X, Side side, Index first, const In<T>&, const In<T>& d_block,
                std::span<const T>, Out<T> dX) const override {
    for (Index i = 0; i < X.rows(); ++i) {
      const double angle = angle_of(side, first + i);
      const T cosine = static_cast<T>(std::cos(angle)), sine = static_cast<T>(std::sin(angle));
      dX.row(i).array() =
          (X.row(i).array() > 0)
              .select(d_block.row(i).head(d_).array() * cosine + d_block.row(i).tail(d_).array() * sine, T(0));
    }
    context.work.exps += 2 * static_cast<double>(X.rows());
  }

 private:
  double angle_of(Side side, Index token) const {
    return angle_ * static_cast<double>(token + (side == Side::query ? first_query_ : first_key_));
  }

  Index d_;
  Index first_key_, first_query_;  // their positions
  double angle_;                   // between neighbours: pi / 2M
};

template <class T>
class CosFormer final : public LinearAttention<T> {
 public:
  explicit CosFormer(const Draw& draw) : LinearAttention<T>(std::make_unique<CosFormerFeatures<T>>(draw)) {}
};

const bool registered = add(method<CosFormer>({
    .text = {.name = "cosformer",
             .printed = "cosFormer",
             .summary = "linear attention with ReLU features that are weighed down by distance",
             .formula = "A = D^-1 K, K_ij = relu(q_i).relu(k_j) cos(pi (i - j) / 2M), M = n",
             .reference = "Qin et al. 2022, arXiv:2202.08791, eq. 10",
             .cost = "O(n d dv) time, O(d dv) memory beyond input and output",
             .family = "kernel"},
    .parameters = {},
    .claims =
        [](const Params&, const Shape& shape) {
          return Claims{.non_negative = true, .causal_exact = true, .rank_at_most = 2 * shape.d};
        },
    .memory = [](const Params&, const Shape& shape) { return linear_memory(2 * shape.d, shape); },
    .cost =
        [](const Params&, const Shape& shape) {
          Work work = linear_cost(2 * shape.d, shape);
          work.exps += 2 * static_cast<double>(shape.nq + shape.nk);
          return work;
        },
    .caveats =
        [](const Params&, const Shape&) {
          return std::vector<std::string>{
              "a query and a key that are positive in no channel in common have weight 0: a row may be left without "
              "weight, and is then 0"};
        },
}));

}  // namespace
}  // namespace attnbench::cosformer_method
