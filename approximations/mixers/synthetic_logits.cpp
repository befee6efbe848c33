#include "approximations/mixers/synthetic_logits.hpp"

#include <cmath>

#include "harness/linalg/products.hpp"

namespace attnbench {

namespace {

template <class T>
class RandomLogits final : public SyntheticLogits<T> {
 public:
  explicit RandomLogits(const Draw& draw)
      : drawn_(positions_of_rows(draw.shape.nq, draw.shape.mask)),
        R_(rows_by_position<T>(draw, "R", drawn_, draw.shape.nk, 1)) {}

  void logits(const Head<T>&, Index, Index position, Context&, Out<T> B) const override {
    require_drawn(drawn_, {position, position + B.rows()}, "synthesizer");
    B = R_.block(position - drawn_.begin, 0, B.rows(), B.cols());
  }
  Tensors state() const override { return {{"R", R_.template cast<double>()}}; }

 private:
  Positions drawn_;
  Matrix<T> R_;  // rows at drawn positions x nk
};

template <class T>
class FactorisedLogits final : public SyntheticLogits<T> {
 public:
  explicit FactorisedLogits(const Draw& draw) : drawn_(positions_of_rows(draw.shape.nq, draw.shape.mask)) {
    const Index k = draw.params.integer("k");
    const double scale = std::pow(static_cast<double>(k), -0.25);
    R1_ = rows_by_position<T>(draw, "R1", drawn_, k, scale);
    R2_ = rows_by_position<T>(draw, "R2", {0, draw.shape.nk}, k, scale);
  }

  void logits(const Head<T>&, Index, Index position, Context& context, Out<T> B) const override {
    require_drawn(drawn_, {position, position + B.rows()}, "synthesizer:kind=factorised");
    multiply_transposed<T>(context, row_block(R1_, position - drawn_.begin, B.rows()), row_block(R2_, 0, B.cols()), B);
  }
  Tensors state() const override { return {{"R1", R1_.template cast<double>()}, {"R2", R2_.template cast<double>()}}; }

 private:
  Positions drawn_;
  Matrix<T> R1_, R2_;  // rows at drawn positions x k, nk x k
};

// y = W2 relu(W1 x + b1) + b2 for each row x of X. Outputs belong to positions, and more outputs extend fewer.
template <class T>
class TwoLayers {
 public:
  TwoLayers(const Draw& draw, const std::string& suffix, Index outputs) : suffix_(suffix) {
    const Index hidden = draw.params.integer("hidden"), d = draw.shape.d;
    W1_ = rows_in_order<T>(draw, "W1" + suffix, hidden, d, std::sqrt(2 / std::sqrt(static_cast<double>(d))));
    W2_ = rows_in_order<T>(draw, "W2" + suffix, outputs, hidden, 1 / std::sqrt(static_cast<double>(hidden)));
    b1_ = constant_unless_injected<T>(draw, "b1" + suffix, 1, hidden, 0);
    b2_ = constant_unless_injected<T>(draw, "b2" + suffix, 1, outputs, 0);
  }

  // The first Y.cols() outputs.
  void apply(Context& context, const In<T>& X, Out<T> Y) const {
    Matrix<T> hidden(X.rows(), W1_.rows());
    multiply_transposed<T>(context, X, W1_, hidden);
    hidden = (hidden.rowwise() + b1_.row(0)).cwiseMax(T(0));
    multiply_transposed<T>(context, hidden, row_block(W2_, 0, Y.cols()), Y);
    Y.rowwise() += b2_.row(0).head(Y.cols());
  }

  Tensors state() const {
    return {{"W1" + suffix_, W1_.template cast<double>()},
            {"b1" + suffix_, b1_.template cast<double>()},
            {"W2" + suffix_, W2_.template cast<double>()},
            {"b2" + suffix_, b2_.template cast<double>()}};
  }

 private:
  std::string suffix_;
  Matrix<T> W1_, W2_, b1_, b2_;  // hidden x d, outputs x hidden, and rows
};

template <class T>
class DenseLogits final : public SyntheticLogits<T> {
 public:
  explicit DenseLogits(const Draw& draw) : network_(draw, "", draw.shape.nk) {}
  void logits(const Head<T>& head, Index first, Index, Context& context, Out<T> B) const override {
    network_.apply(context, row_block(head.Q, first, B.rows()), B);
  }
  Tensors state() const override { return network_.state(); }

 private:
  TwoLayers<T> network_;
};

Index short_factor(Index nk) { return static_cast<Index>(std::ceil(std::sqrt(static_cast<double>(nk)))); }
Index long_factor(Index nk) { return (nk + short_factor(nk) - 1) / short_factor(nk); }

template <class T>
class FactorisedDenseLogits final : public SyntheticLogits<T> {
 public:
  explicit FactorisedDenseLogits(const Draw& draw)
      : a_(draw, "_a", long_factor(draw.shape.nk)),
        c_(draw, "_c", short_factor(draw.shape.nk)),
        short_(short_factor(draw.shape.nk)),
        long_(long_factor(draw.shape.nk)) {}

  void logits(const Head<T>& head, Index first, Index, Context& context, Out<T> B) const override {
    Matrix<T> a(B.rows(), long_), c(B.rows(), short_);
    a_.apply(context, row_block(head.Q, first, B.rows()), a);
    c_.apply(context, row_block(head.Q, first, B.rows()), c);
    for (Index i = 0; i < B.rows(); ++i)
      for (Index j = 0; j < B.cols(); ++j) B(i, j) = a(i, j / short_) * c(i, j % short_);
    context.work.flops += static_cast<double>(B.size());
  }
  Tensors state() const override {
    Tensors both = a_.state();
    both.merge(c_.state());
    return both;
  }

 private:
  TwoLayers<T> a_, c_;
  Index short_, long_;
};

}  // namespace

template <class T>
std::unique_ptr<SyntheticLogits<T>> synthetic_logits(const Draw& draw) {
  const std::string& kind = draw.params.text("kind");
  if (kind == "random") return std::make_unique<RandomLogits<T>>(draw);
  if (kind == "factorised") return std::make_unique<FactorisedLogits<T>>(draw);
  if (kind == "dense") return std::make_unique<DenseLogits<T>>(draw);
  return std::make_unique<FactorisedDenseLogits<T>>(draw);
}

template std::unique_ptr<SyntheticLogits<float>> synthetic_logits<float>(const Draw&);
template std::unique_ptr<SyntheticLogits<double>> synthetic_logits<double>(const Draw&);

bool of_positions_alone(const Params& params) {
  return params.text("kind") == "random" || params.text("kind") == "factorised";
}

double flops_of_logits(const Params& params, const Shape& shape) {
  const std::string& kind = params.text("kind");
  const auto nq = static_cast<double>(shape.nq), d = static_cast<double>(shape.d);
  const double keys = static_cast<double>(shape.nk) / (shape.mask.causal ? 2 : 1);
  const auto hidden = static_cast<double>(params.integer("hidden"));
  if (kind == "random") return 0;
  if (kind == "factorised") return 2 * nq * keys * static_cast<double>(params.integer("k"));
  if (kind == "dense") return 2 * nq * hidden * (d + keys);
  return 2 * nq * hidden * (2 * d + static_cast<double>(short_factor(shape.nk) + long_factor(shape.nk))) + nq * keys;
}

}  // namespace attnbench
