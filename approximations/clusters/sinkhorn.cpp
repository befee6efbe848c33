// Sparse Sinkhorn attention: blocks of keys are sorted by a doubly stochastic matrix, and each block of queries looks
// at the block sorted to its place and at its own. Tay et al., arXiv:2002.11296, sections 3.1 to 3.3.
//   n tokens in N blocks of b = ceil(n / blocks), the last one shorter; N = ceil(n / b)
//   R_IJ = psi_I(q).psi_J(k), psi the mean over the block: the mean logit between two blocks. The paper learns R; one
//   can be given as the state "R" (blocks x blocks).
//   log P = (R + Gumbel noise, if asked) / temperature, then rows and columns less their log-sum-exp in turn, until all
//   row sums are within the tolerance of 1 (columns are, after each sweep)                           methods.md F8
//   slot t of sorted block I: with m_It = sum of P_IJ over the blocks J that have a token t,
//     k^_It = sum_J P_IJ k_Jt / m_It,   v^_It likewise   (m = 1 for full blocks: P times the blocks)
//   out_i = [sum over i's block of exp(q_i.k_j) v_j + sum_t m_It exp(q_i.k^_It) v^_It] / [the same with v = 1]
// A place that the shorter last block lacks gets no weight, so that rows of A sum to 1 for every P. A block that P
// sorts to its own place counts twice, as in the paper; dedup=true removes it from the sorted block (P_II = 0). No
// causal form: each column of P is normalised over all blocks. A padded token is in no block; its row is one of the
// last block's. O(n N (d + dv) + n b (d + dv) + N^2 sweeps) time: n^1.5 at best, with N = sqrt(n); O(n (d + dv) + N^2)
// memory.
#include <boost/random/uniform_01.hpp>
#include <cmath>

#include "approximations/clusters/clusters.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::sinkhorn_method {
namespace {

constexpr Index query_block = 64;

struct Blocks {
  Blocks(Index tokens, Index most)
      : n(tokens), size(std::max<Index>(1, (n + most - 1) / most)), count((n + size - 1) / size) {}

  Index begin(Index I) const { return I * size; }
  Index tokens(Index I) const { return std::min(size, n - begin(I)); }
  // How many blocks have a token at place t.
  Index with_place(Index t) const { return t < tokens(count - 1) ? count : count - 1; }

  Index n, size, count;
};

// -log(-log u): the argmax over J of R_IJ plus this noise is distributed as softmax(R_I).
Matrix<double> gumbel_noise(const Draw& draw, Index blocks) {
  if (const auto* given = draw.injected("noise", blocks, blocks)) return *given;
  auto generator = draw.streams.stream("noise", "sinkhorn", blocks, draw.head, draw.replicate);
  boost::random::uniform_01<double> uniform;
  Matrix<double> noise(blocks, blocks);
  for (Index i = 0; i < noise.size(); ++i) {
    double u = uniform(generator);
    while (u == 0) u = uniform(generator);
    noise.data()[i] = -std::log(-std::log(u));
  }
  return noise;
}

template <class T>
class Sinkhorn final : public Approximation<T>, public Rows<T> {
 public:
  explicit Sinkhorn(const Draw& draw)
      : blocks_(draw.params.integer("blocks")),
        sweeps_(draw.params.integer("sweeps")),
        tolerance_(draw.params.real("tolerance")),
        temperature_(draw.params.real("temperature")),
        dedup_(draw.params.flag("dedup")) {
    if (const auto* given = draw.injected("R", blocks_, blocks_)) R_ = *given;
    if (draw.params.flag("gumbel")) noise_ = gumbel_noise(draw, blocks_);
  }

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    out.setZero();
    const Blocks blocks = blocks_of(head, mask);
    if (blocks.n == 0) return;
    const Sorted sorted = sort(head, blocks, context);
    std::vector<Turn> turns;
    for (Index I = 0; I < blocks.count; ++I) {
      const Index end = I + 1 < blocks.count ? blocks.begin(I + 1) : out.rows();
      for (Index row = blocks.begin(I); row < end; row += query_block)
        turns.push_back({I, row, std::min(query_block, end - row)});
    }
    context.for_blocks(std::ssize(turns), 1, [&](Context& single, Index turn, Index) {
      const auto [I, row, count] = turns[static_cast<size_t>(turn)];
      const Index own = blocks.tokens(I), b = blocks.size;
      Matrix<T> memory(count, own + b);
      weigh(head, blocks, sorted, I, row, single, memory);
      auto block = row_block(out, row, count);
      multiply<T>(single, part(memory, 0, own), row_block(head.V, blocks.begin(I), own), block);
      multiply_add<T>(single, part(memory, own, b), row_block(sorted.V, I * b, b), block);
    });
  }

  const Rows<T>* rows() const override { return this; }
  Tensors state() const override {
    Tensors tensors;
    if (R_.size() > 0) tensors["R"] = R_;
    if (noise_.size() > 0) tensors["noise"] = noise_;
    return tensors;
  }

  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    A.setZero();
    const Blocks blocks = blocks_of(head, mask);
    if (blocks.n == 0) return;
    const Sorted sorted = sort(head, blocks, context);
    for (Index a = 0; a < A.rows(); ++a) {
      const Index I = std::min((first + a) / blocks.size, blocks.count - 1), own = blocks.tokens(I);
      Matrix<T> weights(1, own + blocks.size);
      weigh(head, blocks, sorted, I, first + a, context, weights);
      A.row(a).segment(blocks.begin(I), own) = weights.row(0).head(own);
      for (Index t = 0; t < blocks.size; ++t)
        for (Index J = 0; J < blocks.with_place(t); ++J)
          if (sorted.P(I, J) > 0) A(a, blocks.begin(J) + t) += weights(0, own + t) * sorted.P(I, J) / sorted.mass(I, t);
    }
  }

 private:
  // Rows of one block that are computed together.
  struct Turn {
    Index block, row, count;
  };
  struct Sorted {
    Matrix<T> P;     // N x N
    Matrix<T> mass;  // N x b
    Matrix<T> K, V;  // N b rows: slot t of block I is row I b + t
  };

  Blocks blocks_of(const Head<T>& head, Mask mask) const { return {mask.visible(0, head.K.rows()), blocks_}; }
  static Out<T> part(Matrix<T>& weights, Index first, Index columns) {
    return {weights.data() + first, weights.rows(), columns, weights.cols()};
  }

  static Matrix<double> block_means(const In<T>& X, const Blocks& blocks) {
    Matrix<double> means(blocks.count, X.cols());
    for (Index I = 0; I < blocks.count; ++I)
      means.row(I) = row_block(X, blocks.begin(I), blocks.tokens(I)).template cast<double>().colwise().mean();
    return means;
  }

  Matrix<double> permutation(const Head<T>& head, const Blocks& blocks, Context& context) const {
    const Index N = blocks.count;
    Matrix<double> P(N, N);
    if (R_.size() > 0)
      P = R_.topLeftCorner(N, N);
    else
      multiply_transposed<double>(context, block_means(head.Q, blocks), block_means(head.K, blocks), P);
    if (noise_.size() > 0) P += noise_.topLeftCorner(N, N);
    P /= temperature_;
    sinkhorn(context, P, sweeps_, tolerance_);
    P = P.array().exp();
    context.work.exps += static_cast<double>(P.size());
    if (dedup_) P.diagonal().setZero();
    return P;
  }

  Sorted sort(const Head<T>& head, const Blocks& blocks, Context& context) const {
    const Index N = blocks.count, b = blocks.size;
    Sorted sorted{permutation(head, blocks, context).template cast<T>(), Matrix<T>(N, b),
                  Matrix<T>(N * b, head.K.cols()), Matrix<T>(N * b, head.V.cols())};
    context.for_blocks(b, 1, [&](Context& single, Index t, Index) {
      const Index J = blocks.with_place(t);
      const In<T> P(sorted.P.data(), N, J, N);
      sorted.mass.col(t) = P.rowwise().sum();
      // Every b-th row from row t on: the tokens at place t of each block.
      const auto mix = [&](const In<T>& X, Matrix<T>& to) {
        const Out<T> slots(to.data() + t * to.cols(), N, to.cols(), b * to.cols());
        multiply<T>(single, P, In<T>(X.data() + t * X.outerStride(), J, X.cols(), b * X.outerStride()), slots);
      };
      mix(head.K, sorted.K);
      mix(head.V, sorted.V);
      for (Index I = 0; I < N; ++I)
        if (const T mass = sorted.mass(I, t); mass > 0) {
          sorted.K.row(I * b + t) /= mass;
          sorted.V.row(I * b + t) /= mass;
        }
    });
    return sorted;
  }

  // Softmax of rows [row, row + weights.rows()), all of block I, over the block's own keys and then the sorted slots.
  static void weigh(const Head<T>& head, const Blocks& blocks, const Sorted& sorted, Index I, Index row,
                    Context& context, Matrix<T>& weights) {
    const Index own = blocks.tokens(I), b = blocks.size;
    const In<T> Q = row_block(head.Q, row, weights.rows());
    multiply_transposed<T>(context, Q, row_block(head.K, blocks.begin(I), own), part(weights, 0, own));
    multiply_transposed<T>(context, Q, row_block(sorted.K, I * b, b), part(weights, own, b));
    weights.rightCols(b).array().rowwise() += sorted.mass.row(I).array().log();  // no mass: -infinity
    for (Index a = 0; a < weights.rows(); ++a) softmax_within<T>(context, weights, a, 0, own + b);
  }

  Index blocks_, sweeps_;
  double tolerance_, temperature_;
  bool dedup_;
  Matrix<double> R_, noise_;  // blocks x blocks, or empty
};

Blocks blocks_of(const Params& params, const Shape& shape) { return {shape.nk, params.integer("blocks")}; }

const bool registered = add(method<Sinkhorn>({
    .text = {.name = "sinkhorn",
             .printed = "Sinkhorn",
             .summary = "blocks of keys sorted by a doubly stochastic matrix; a block sees its own and the sorted one",
             .formula =
                 "A_i = softmax over i's block and the slots t of sum_J P_IJ k_Jt, P = Sinkhorn(psi(q) psi(k)^T)",
             .reference = "Tay et al. 2020, Sparse Sinkhorn Attention, arXiv:2002.11296, sections 3.1 to 3.3",
             .cost = "O(n (blocks + n / blocks) (d + dv)) time, O(n (d + dv) + blocks^2) memory",
             .family = "clusters",
             .departure = "slots of the sorted block weigh in by their mass sum_J P_IJ, so that rows sum to 1 for "
                          "every P: before the sweeps converge this is not the paper's P k (8e-2 apart after one "
                          "sweep, 5e-7 after eight on a Gaussian head); psi is the mean over a block, the paper's the "
                          "sum; R is q's and k's, the paper's is learnt"},
    .parameters = {Parameter::integer("blocks", 16,
                                      "blocks that the tokens are cut into; fewer when tokens do not suffice", 1,
                                      1 << 15)
                       .as_budget(),
                   Parameter::integer("sweeps", 100, "sweeps of normalising rows and columns at most", 0, 1000000),
                   Parameter::real("tolerance", 1e-6, "of the row sums, where sweeps end", 0, 1),
                   Parameter::real("temperature", 0.75,
                                   "what R is divided by: towards 0 a permutation, ever more slowly", 1e-6, 1e6),
                   Parameter::flag("gumbel", false, "noise on R, drawn once"),
                   Parameter::flag("dedup", false, "leave a block's own keys out of the block that is sorted to it")},
    .claims =
        [](const Params&, const Shape& shape) {
          Claims claims{.row_stochastic = true, .non_negative = true, .exact_when = "blocks=1"};
          if (shape.nq != shape.nk || shape.mask.offset != 0)
            claims.no_form = "blocks of queries are those of keys: there must be as many, at the same positions";
          else if (shape.mask.causal)
            claims.no_form = "a column of the sorting matrix is normalised over all blocks, later ones included";
          return claims;
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          const Blocks blocks = blocks_of(params, shape);
          const double N = static_cast<double>(blocks.count), n = static_cast<double>(shape.nk);
          return (16 + bytes_of(shape.precision)) * N * N +
                 bytes_of(shape.precision) * (n * static_cast<double>(shape.d + shape.dv + 1) +
                                              static_cast<double>(2 * query_block * blocks.size));
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const Blocks blocks = blocks_of(params, shape);
          const double N = static_cast<double>(blocks.count), n = static_cast<double>(shape.nk);
          const double seen = n * 2 * static_cast<double>(blocks.size);
          const double usual_sweeps = params.flag("gumbel") ? 60 : 4;  // 20 to 100 and 4, measured on Gaussian heads
          return Work{.flops = 2 * (N * n + seen) * static_cast<double>(shape.d + shape.dv),
                      .exps = seen + 2 * N * N * usual_sweeps};
        },
    .caveats =
        [](const Params& params, const Shape&) {
          std::vector<std::string> caveats;
          if (params.real("temperature") < 0.2)
            caveats.push_back(
                "at small temperatures sweeps converge slowly: after 100 of them, rows of P are off by 1e-2 at "
                "temperature 0.1 where entries of R have variance 1");
          return caveats;
        },
}));

}  // namespace
}  // namespace attnbench::sinkhorn_method
