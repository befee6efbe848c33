// Log-linear attention: linear attention that weighs what lies further back by the level of a binary tree. Guo et al.,
// arXiv:2506.04761, section 3.
//   A_ij = lambda_i^(l) q_i.k_j for j <= p, p the last key that row i sees, l = the bits of p xor j: 0 for p itself,
//   and l for the 2^(l-1) tokens whose positions first differ from p in binary digit l                     methods.md V
//   lambda_i^(l) = softplus(w_l.q_i) / log 2, 1 at w = 0, w drawn; in the paper trained weights of the token
// The tokens before p fall into one block of 2^b for each binary one of p (Fenwick), so that log2 n states are kept and
// read. A chunk of 2^c tokens is a leaf: within it the tree is a product of A with V.
#include <bit>
#include <cmath>
#include <cstdint>

#include "approximations/recurrences/reading_rows.hpp"
#include "approximations/recurrences/recurrence.hpp"

namespace attnbench::log_linear_method {
namespace {

constexpr Index levels = 64;  // of any number of tokens: more tokens draw no other weights

Index digits(Index number) { return static_cast<Index>(std::bit_width(static_cast<std::uint64_t>(number))); }

// The sums k^T v of chunks that are complete: one state for each binary one of their number.
template <class T>
class Fenwick {
 public:
  explicit Fenwick(Index chunk) : leaf_(digits(chunk - 1)) {}

  // out_i += sum over the states of weights_i,level q_i^T S.
  void read(const In<T>& Q, const Matrix<T>& weights, Context& context, Out<T> out) const {
    for (Index b = 0; b < std::ssize(states_); ++b) {
      if ((complete_ >> b & 1) == 0) continue;
      const Matrix<T> weighed = (Q.array().colwise() * weights.col(leaf_ + b + 1).array()).matrix();
      multiply_add<T>(context, weighed, states_[static_cast<size_t>(b)], out);
    }
  }
  void add(Matrix<T> chunk) {
    size_t b = 0;
    for (; (complete_ >> b & 1) != 0; ++b) {
      chunk += states_[b];
      states_[b] = {};
    }
    if (b == states_.size()) states_.emplace_back();
    states_[b] = std::move(chunk);
    ++complete_;
  }
  size_t bytes() const {
    size_t numbers = 0;
    for (size_t b = 0; b < states_.size(); ++b)
      if ((complete_ >> b & 1) != 0) numbers += static_cast<size_t>(states_[b].size());
    return sizeof(T) * numbers;
  }

 private:
  Index leaf_, complete_ = 0;
  std::vector<Matrix<T>> states_;  // states_[b]: of 2^b chunks, where complete_ has that digit
};

template <class T>
class LogLinear final : public Approximation<T> {
 public:
  explicit LogLinear(const Draw& draw) : chunk_(draw.params.integer("chunk")), W_(draw, levels) {}
  Tensors state() const override { return W_.state(); }

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const Index nq = head.Q.rows();
    const ReadingRows rows(nq, head.K.rows(), mask);
    Fenwick<T> tree(chunk_);
    out.topRows(rows.begin).setZero();
    for (Index t = 0; t < rows.tokens; t += chunk_) {
      const Index count = std::min(chunk_, rows.tokens - t);
      const In<T> K = row_block(head.K, t, count), V = row_block(head.V, t, count);
      const Index end = t + count == rows.tokens ? nq : rows.of(t + count);
      for (Index row = rows.of(t); row < end; row += chunk_) {
        const Index queries = std::min(chunk_, end - row);
        const auto token = [&](Index i) { return std::min(row + i + mask.offset - t, count - 1); };
        read(row_block(head.Q, row, queries), K, V, token, tree, context, row_block(out, row, queries));
      }
      Matrix<T> sum = Matrix<T>::Zero(K.cols(), V.cols());
      transposed_multiply_add<T>(context, K, V, sum);
      tree.add(std::move(sum));
    }
  }
  std::unique_ptr<Decoder<T>> decoder(const Shape&) const override { return std::make_unique<Decoding>(*this); }

 private:
  class Decoding final : public Decoder<T> {
   public:
    explicit Decoding(const LogLinear& method) : method_(method) {}
    void prefill(const Head<T>& tokens, Context& context) override {
      for (Index t = 0; t < tokens.K.rows(); ++t) add(row_block(tokens.K, t, 1), row_block(tokens.V, t, 1), context);
    }
    void step(const Head<T>& token, Context& context, Out<T> out) override {
      method_.read(
          token.Q, token.K, token.V, [](Index) { return Index{0}; }, tree_, context, out);
      add(token.K, token.V, context);
    }
    size_t bytes() const override { return tree_.bytes(); }

   private:
    void add(const In<T>& k, const In<T>& v, Context& context) {
      Matrix<T> sum = Matrix<T>::Zero(k.cols(), v.cols());
      transposed_multiply_add<T>(context, k, v, sum);
      tree_.add(std::move(sum));
    }

    const LogLinear& method_;
    Fenwick<T> tree_{1};
  };

  // Rows that read after token(i) of the chunk K, V and the complete chunks before it.
  template <class Token>
  void read(const In<T>& Q, const In<T>& K, const In<T>& V, const Token& token, const Fenwick<T>& tree,
            Context& context, Out<T> out) const {
    Matrix<T> weights = W_.of(Q, context), A(Q.rows(), K.rows());
    weights = weights.unaryExpr([](T z) { return softplus(z) / static_cast<T>(std::log(2.0)); });
    context.work.exps += 2 * static_cast<double>(weights.size());
    multiply_transposed<T>(context, Q, K, A);
    for (Index i = 0; i < A.rows(); ++i)
      for (Index j = 0; j < A.cols(); ++j) A(i, j) *= j <= token(i) ? weights(i, digits(token(i) ^ j)) : T(0);
    multiply<T>(context, A, V, out);
    tree.read(Q, weights, context, out);
  }

  Index chunk_;
  GateLogits<T> W_;
};

void check(const Params& params) {
  if (const Index chunk = params.integer("chunk"); (chunk & (chunk - 1)) != 0)
    throw Misuse("chunk is " + std::to_string(chunk) +
                 "; expected a power of 2, which log-linear's tree has as a leaf");
}

const bool registered = add(method<LogLinear>({
    .text = {.name = "log-linear",
             .printed = "Log-linear attention",
             .summary = "linear attention that weighs tokens by their level in a binary tree of the past",
             .formula = "A_ij = lambda_i^(l) q_i.k_j, l the binary digits of i xor j, j <= i",
             .reference = "Guo et al. 2025, arXiv:2506.04761, section 3",
             .cost = "O(n log(n) d dv) time, O(log(n) d dv) memory",
             .family = "recurrences",
             .departure = "without the decay of its Mamba-2 form; lambda by drawn weights of the query, in place of "
                          "trained ones of the token",
             .aliases = {"log-linear-attention"}},
    .parameters = {chunk_parameter()},
    .claims = [](const Params&, const Shape& shape) { return recurrence_claims(shape); },
    .memory =
        [](const Params& params, const Shape& shape) {
          const Index chunk = std::min(params.integer("chunk"), shape.nk);
          const double numbers =
              static_cast<double>(digits(std::max<Index>(1, shape.nk / chunk)) * shape.d * shape.dv) +
              static_cast<double>(chunk) * static_cast<double>(chunk + 2 * levels + shape.d);
          return numbers * bytes_of(shape.precision);
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const double n = static_cast<double>(shape.nk), rows = static_cast<double>(shape.nq);
          const double d = static_cast<double>(shape.d), dv = static_cast<double>(shape.dv);
          const double chunk = static_cast<double>(std::min(params.integer("chunk"), shape.nk));
          const double states = std::log2(std::max(1.0, n / chunk)) / 2;  // binary ones of a mean position
          return Work{.flops = 2 * n * d * dv + 2 * rows * (chunk * (d + dv) + states * d * dv + levels * d),
                      .exps = 2 * rows * levels};
        },
    .check = check,
}));

}  // namespace
}  // namespace attnbench::log_linear_method
