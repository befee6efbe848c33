// Positive random features for the softmax kernel (FAVOR+). Choromanski et al., arXiv:2009.14794, Lemma 1.
//   phi(x) = m^-1/2 exp(W x - |x|^2/2),  rows of W marginally N(0, I_d)       E[phi(q).phi(k)] = exp(q.k)
//   one row: X = exp(omega.(q+k) - (|q|^2+|k|^2)/2);  MSE (iid) = exp(2 q.k) (exp(|q+k|^2) - 1) / m      methods.md A1
// O(n m d) time, m features.
//
// Published libraries compute exp(L - c) + epsilon with L = W x - |x|^2/2 and their own stabiliser c. A c with one
// number per query and one number for all keys cancels without the epsilon, but not with it.
#include <cmath>

#include "approximations/linear/features/random_features.hpp"
#include "harness/linalg/exp.hpp"
#include "harness/linalg/rows.hpp"
#include "harness/theory/summand.hpp"

namespace attnbench::positive_map {
namespace {

// The variants of published libraries; the defaults give the method itself.
struct Published {
  explicit Published(const Params& params)
      : epsilon(params.real("epsilon")), plain(params.text("epsilon_kind") == "plain"), c(params.text("stabiliser")) {}
  double epsilon;
  bool plain;     // m^-1/2 exp(L - c) + epsilon instead of m^-1/2 (exp(L - c) + epsilon)
  std::string c;  // full: max L; projection-only: max W x; per-key: max L of each key, never restored
  bool departs() const { return epsilon != 0 || c != "full"; }
};

template <class T>
class PositiveFeatures final : public FeatureMap<T> {
 public:
  explicit PositiveFeatures(const Draw& draw)
      : W_(draw_projection(draw, projection_vectors(draw.params)).cast<T>()),
        Wt_(W_.transpose()),
        log_norm_(T(0.5) * std::log(static_cast<T>(W_.rows()))),
        published_(draw.params) {}

  Index features() const override { return W_.rows(); }
  Form form() const override { return key_maximum_ ? Form::values : Form::exponents; }
  void map(Context& context, const In<T>& X, Side side, Index, Out<T> block, std::span<T> log_scale) const override {
    multiply<T>(context, X, Wt_, block);  // b x m
    half_squared_norms<T>(X, log_scale);
    if (key_maximum_) return as_published(context, side, block, log_scale);
    for (T& scale : log_scale) scale = -scale - log_norm_;
  }
  // A published stabiliser is a maximum over all keys, so the gradient of each key would depend on all keys.
  bool differentiable() const override { return !published_.departs(); }
  void pullback(Context& context, const In<T>& X, Side, Index, const In<T>&, const In<T>& d_block,
                std::span<const T> d_log_scale, Out<T> dX) const override {
    multiply<T>(context, d_block, W_, dX);
    for (Index i = 0; i < X.rows(); ++i) dX.row(i) -= d_log_scale[static_cast<size_t>(i)] * X.row(i);
  }
  Tensors state() const override { return {{"projection", W_.template cast<double>()}}; }

  bool depends_on_keys() const override { return published_.departs() && !key_maximum_; }
  std::unique_ptr<FeatureMap<T>> given_keys(Context& context, const In<T>& K) const override {
    if (!depends_on_keys()) return nullptr;
    auto given = std::make_unique<PositiveFeatures>(*this);
    Matrix<T> exponents(K.rows(), W_.rows());
    multiply_transposed<T>(context, K, W_, exponents);
    if (published_.c == "full") exponents.colwise() -= T(0.5) * K.rowwise().squaredNorm();
    given->key_maximum_ = K.rows() == 0 ? T(0) : exponents.maxCoeff();
    return given;
  }

 private:
  // On entry block holds W x and log_scale |x|^2/2; on return the features and the stabilisers taken out of them.
  void as_published(Context& context, Side side, Out<T>& block, std::span<T> log_scale) const {
    const T norm = std::exp(-log_norm_), epsilon = static_cast<T>(published_.epsilon);
    for (Index i = 0; i < block.rows(); ++i) {
      T& scale = log_scale[static_cast<size_t>(i)];
      auto row = block.row(i).array();
      const T half_norm = scale, largest = row.maxCoeff();
      const bool per_key = side == Side::key && published_.c == "per-key";
      if (side == Side::query || per_key)
        scale = published_.c == "projection-only" ? largest : largest - half_norm;
      else
        scale = *key_maximum_;
      row = exponential(row - half_norm - scale);
      row = row * norm + (published_.plain ? epsilon : epsilon * norm);
      if (per_key) scale = 0;
    }
    context.work.exps += static_cast<double>(block.size());
  }

  Matrix<T> W_, Wt_;  // m x d and its transpose, so that each product reads its right operand by rows
  T log_norm_;
  Published published_;
  std::optional<T> key_maximum_;  // over all keys and features; set in a published variant once it is given the keys
};

std::optional<KernelTheory> theory(const Params& params, Index, const EnsembleLaw& ensemble, const Head<double>*) {
  return average_of_summands(
      "exp(q.k)", projection_vectors(params), ensemble,
      {.mean = [](const Pair& p,
                  const EnsembleLaw& law) { return std::exp(-(p.q2 + p.k2) / 2) * law.mean_exponential(p, 1, 1); },
       .second = [](const Pair& p,
                    const EnsembleLaw& law) { return std::exp(-(p.q2 + p.k2)) * law.mean_exponential(p, 2, 2); },
       .cross = [](const Pair& p,
                   const EnsembleLaw& law) { return std::exp(-(p.q2 + p.k2)) * law.pair_moment(p.plus2(), 1, 0); },
       // exp((q + k_j).(q + k_l))                                                                    methods.md A4
       .correlation =
           [](Context& context, const In<double>& q, const In<double>& J, const In<double>& K, Out<double> block) {
             multiply_transposed<double>(context, Matrix<double>(J.rowwise() + q.row(0)),
                                         Matrix<double>(K.rowwise() + q.row(0)), block);
             block = block.array().exp();
           }});
}

const bool registered = add(feature_map<PositiveFeatures>({
    .text = {.name = "positive",
             .summary = "positive random features (FAVOR+), unbiased for exp(q.k)",
             .formula = "phi(x) = m^-1/2 exp(W x - |x|^2/2), W m x d",
             .reference = "Choromanski et al. 2020, arXiv:2009.14794, Lemma 1",
             .cost = "O(n m d) time, m features",
             .family = "positive"},
    .parameters = random_feature_parameters(
        {Parameter::real("epsilon", 0,
                         "added to every feature, a bias towards the mean of V: 1e-4 with projection-only lifts the "
                         "kernel by 5 % for "
                         "entries of N(0, 1/4) at d = 64, m = 256, and for N(0, 1) the output is all but the mean of V",
                         0, 1)
             .as_published(),
         Parameter::choice("epsilon_kind", "scaled", "m^-1/2 (exp + epsilon), or plain: m^-1/2 exp + epsilon",
                           {"scaled", "plain"})
             .as_published(),
         Parameter::choice("stabiliser", "full",
                           "what is subtracted from the exponents: the maximum of W x - |x|^2/2, of W x alone (keys "
                           "underflow in float as |k| grows), or each key's own, never restored, which no library that "
                           "we know does: -94 % in the first case above",
                           {"full", "projection-only", "per-key"})
             .as_published()}),
    .features = [](const Params& params, Index) { return projection_vectors(params); },
    .token_work = [](const Params& params, Index d) { return projection_work(params, d, 1); },
    .non_negative = true,
    .theory = theory,
}));

}  // namespace
}  // namespace attnbench::positive_map
