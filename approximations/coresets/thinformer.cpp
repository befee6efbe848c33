// Thinformer: softmax over a coreset of the keys, which kernel halving chooses. Carrell, Gong, Shetty, Dwivedi and
// Mackey, arXiv:2502.12063, KH-Compress.
//   K((k, v), (k', v')) = exp(k.k' - max|k|^2) (v.v' / b^2 + 1),  b = max|v|_inf
//   halving a block: of each pair (x_2i, x_2i+1) of neighbours one stays; with
//     D_il = K(x_2i, x_2l) - K(x_2i, x_2l+1) - K(x_2i+1, x_2l) + K(x_2i+1, x_2l+1),  eta = 1 where the first stays,
//     else -1,  psi_i = sum_(l<i) eta_l D_li,  A_i = (1/2 + log(4 b_1 R n / s)) D_ii^1/2 max_(l<=i) D_ll^1/2
//   the second stays if (2 u_i - 1) A_i <= psi_i, u_i uniform in [0, 1): the kernel sums of the two halves stay near
//   R rounds; in round t of c 2^R keys, min(4^(R-t), pairs) even blocks of c 2^(R-t) pairs: the last is one block
//   out = softmax over the keys that stay, each with the number of keys that it stands for             methods.md E
// s is the block's size, b_1 that of a block of the first round, and failure probability 1/2 over all halvings. For n a
// power of 4 and keep = 2^g n^1/2 these are the blocks and numbers of the paper's algorithm.
// No key is lost at another n: the first c 2^R keys go through R rounds (c = n / 2^R, rounded down), and of the rest
// 2^b keys go through b rounds for each binary digit b of its number. The weights are these powers of 2 and sum to n. R
// is the least number of rounds that leaves at most `keep` keys, or, where none does, the one that leaves the fewest:
// at least as many stay as n has binary ones. keep >= n is exact. Each key stays with probability 1 / its weight, so
// the sums over the coreset are unbiased.
// halving=coin: D = 0, so each pair is decided by a coin: a uniform coreset, to compare with.
// strided=true: as the authors' code, only n' keys are read, n' the largest power of 4 below or at n: those at 0, s, 2s
// ... with s = n / n' rounded down. Up to 3/4 of the keys have no influence.
// Padded keys are left out first. No causal form: the coreset is chosen among all keys. Halving is in double for both
// scalar types. With k of keep's size, O(k^2 (d + dv) log(n / k) + n k (d + dv)) time, O(k^2 + k (d + dv)) memory.
#include <algorithm>
#include <bit>
#include <boost/random/uniform_01.hpp>
#include <cmath>
#include <cstdint>

#include "approximations/softmax/tiled_softmax.hpp"
#include "harness/linalg/products.hpp"

namespace attnbench::thinformer_method {
namespace {

// c 2^rounds keys that become c.
struct Chunk {
  Index begin, count, rounds;
  Index left() const { return count >> rounds; }
  Index pairs_before(Index round) const { return count >> round; }  // rounds are counted from 1
  Index blocks_of(Index round) const {
    const Index levels = rounds - round, pairs = pairs_before(round);
    return levels >= 31 ? pairs : std::min(pairs, Index{1} << (2 * levels));
  }
};

// Of a number above 0, in binary.
Index highest_digit(Index number) { return static_cast<Index>(std::bit_width(static_cast<std::uint64_t>(number))) - 1; }

// How n keys become at most `keep`, or as few as can be.
std::vector<Chunk> chunks_of(Index n, Index keep) {
  const auto left = [n](Index rounds) {
    const auto rest = static_cast<std::uint64_t>(n & ((Index{1} << rounds) - 1));
    return (n >> rounds) + static_cast<Index>(std::popcount(rest));
  };
  Index rounds = 0;
  for (Index more = 1; left(rounds) > keep && (n >> more) > 0; ++more)
    if (left(more) < left(rounds)) rounds = more;
  std::vector<Chunk> chunks;
  for (Index begin = 0; begin < n; begin += chunks.back().count) {
    const Index rest = n - begin, digit = std::min(rounds, highest_digit(rest));
    chunks.push_back({begin, digit == rounds ? rest >> rounds << rounds : Index{1} << digit, digit});
  }
  return chunks;
}

// Keys 0, stride, 2 stride ..., `count` of them.
struct Strided {
  Index stride = 1, count = 0;
};
Strided strided(Index n) {
  const Index count = Index{1} << (highest_digit(n) / 2 * 2);
  return {n / count, count};
}

// Halves blocks of keys, in double.
class Halving {
 public:
  // K and V of every key that is read.
  Halving(Matrix<double> K, Matrix<double> V, bool by_kernel)
      : K_(std::move(K)), V_(std::move(V)), by_kernel_(by_kernel) {
    largest_ = K_.rowwise().squaredNorm().maxCoeff();
    if (const double b = V_.cwiseAbs().maxCoeff(); b > 0) V_ /= b;
  }

  // The keys of a chunk that stay, in order. uniforms: one for each key that does not.
  std::vector<Index> halve(const Chunk& chunk, std::span<const double> uniforms, Context& context) const {
    std::vector<Index> keys(static_cast<size_t>(chunk.count));
    for (Index j = 0; j < chunk.count; ++j) keys[static_cast<size_t>(j)] = chunk.begin + j;
    const double first_block =
        chunk.rounds == 0 ? 0 : static_cast<double>(chunk.count) / static_cast<double>(chunk.blocks_of(1));
    // The numerator of log(2 s / delta), delta = s^2 / (2 b_1 R n).
    const double failures = 4 * first_block * static_cast<double>(chunk.rounds) * static_cast<double>(chunk.count);
    for (Index round = 1; round <= chunk.rounds; ++round) {
      const Index pairs = chunk.pairs_before(round), blocks = chunk.blocks_of(round);
      std::vector<Index> left(static_cast<size_t>(pairs));
      context.for_blocks(blocks, 1, [&](Context& single, Index a, Index) {
        const Index begin = a * pairs / blocks, count = (a + 1) * pairs / blocks - begin;
        const auto at = static_cast<size_t>(begin), size = static_cast<size_t>(count);
        halve_block({keys.data() + 2 * at, 2 * size}, uniforms.subspan(at, size), failures, single,
                    {left.data() + at, size});
      });
      uniforms = uniforms.subspan(static_cast<size_t>(pairs));
      keys = std::move(left);
    }
    return keys;
  }

 private:
  void halve_block(std::span<const Index> keys, std::span<const double> uniforms, double failures, Context& context,
                   std::span<Index> left) const {
    const Index pairs = std::ssize(left);
    const Matrix<double> D = by_kernel_ ? differences(keys, context) : Matrix<double>::Zero(0, 0);
    const double multiplier = 0.5 + std::log(failures / static_cast<double>(keys.size()));
    Eigen::RowVectorXd psi = Eigen::RowVectorXd::Zero(pairs);
    double largest = 0;
    for (Index i = 0; i < pairs; ++i) {
      const double size = by_kernel_ ? std::sqrt(std::max(0.0, D(i, i))) : 0;
      largest = std::max(largest, size);
      const double coin = 2 * uniforms[static_cast<size_t>(i)] - 1, A = multiplier * size * largest;
      // Where the kernel tells the two apart by nothing, a coin decides.
      const bool second = A > 0 ? coin * A <= psi[i] : coin <= 0;
      left[static_cast<size_t>(i)] = keys[static_cast<size_t>(2 * i + second)];
      if (by_kernel_) psi += (second ? -1 : 1) * D.row(i);
    }
  }

  // D, pairs x pairs.
  Matrix<double> differences(std::span<const Index> keys, Context& context) const {
    const Index size = std::ssize(keys), pairs = size / 2;
    Matrix<double> K(size, K_.cols()), V(size, V_.cols()), weights(size, size), kernel(size, size), D(pairs, pairs);
    for (Index j = 0; j < size; ++j) {
      K.row(j) = K_.row(keys[static_cast<size_t>(j)]);
      V.row(j) = V_.row(keys[static_cast<size_t>(j)]);
    }
    multiply_transposed<double>(context, K, K, weights);
    multiply_transposed<double>(context, V, V, kernel);
    kernel.array() = (weights.array() - largest_).exp() * (kernel.array() + 1);
    context.work.exps += static_cast<double>(size * size);
    for (Index i = 0; i < pairs; ++i)
      for (Index l = 0; l < pairs; ++l)
        D(i, l) =
            kernel(2 * i, 2 * l) - kernel(2 * i, 2 * l + 1) - kernel(2 * i + 1, 2 * l) + kernel(2 * i + 1, 2 * l + 1);
    return D;
  }

  Matrix<double> K_, V_;
  bool by_kernel_;
  double largest_;  // |k|^2
};

template <class T>
class Thinformer final : public Approximation<T> {
 public:
  explicit Thinformer(const Draw& draw)
      : keep_(draw.params.integer("keep")),
        by_kernel_(draw.params.text("halving") == "kernel"),
        strided_(draw.params.flag("strided")) {
    const Index count = draw.shape.nk;  // each key but one may be removed
    if (const auto* given = draw.injected("uniforms", count, 1)) {
      uniforms_ = *given;
      return;
    }
    auto generator = draw.streams.stream("coreset", "thinformer", draw.head, draw.replicate);
    boost::random::uniform_01<double> uniform;
    uniforms_.resize(count, 1);
    for (Index j = 0; j < count; ++j) uniforms_(j, 0) = uniform(generator);
  }

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const Index visible = mask.visible(0, head.K.rows());
    if (visible == 0) return void(out.setZero());
    const Strided read = strided_ ? strided(visible) : Strided{1, visible};
    const auto every = [&](const In<T>& X) {
      return In<T>(X.data(), read.count, X.cols(), read.stride * X.outerStride());
    };
    const In<T> K = every(head.K), V = every(head.V);
    std::vector<Index> keys;
    std::vector<T> log_weights;
    // Emulated half precision is that of products of the head, not of choosing keys.
    Context unrounded(context.threads());
    const Halving halving(K.template cast<double>(), V.template cast<double>(), by_kernel_);
    std::span<const double> uniforms(uniforms_.data(), static_cast<size_t>(uniforms_.size()));
    for (const Chunk& chunk : chunks_of(read.count, keep_)) {
      const auto left = halving.halve(chunk, uniforms, unrounded);
      uniforms = uniforms.subspan(static_cast<size_t>(chunk.count - chunk.left()));
      keys.insert(keys.end(), left.begin(), left.end());
      log_weights.resize(keys.size(), static_cast<T>(static_cast<double>(chunk.rounds) * std::log(2.0)));
    }
    context.work += unrounded.work;
    const Index count = std::ssize(keys);
    Matrix<T> kept_keys(count, K.cols()), kept_values(count, V.cols());
    for (Index s = 0; s < count; ++s) {
      kept_keys.row(s) = K.row(keys[static_cast<size_t>(s)]);
      kept_values.row(s) = V.row(keys[static_cast<size_t>(s)]);
    }
    tiled_softmax<T>({head.Q, kept_keys, kept_values}, {}, log_weights, context, out);
  }

  Tensors state() const override { return {{"uniforms", uniforms_}}; }

 private:
  Index keep_;
  bool by_kernel_, strided_;
  Matrix<double> uniforms_;  // nk x 1
};

std::vector<Chunk> chunks_of(const Params& params, const Shape& shape) {
  const Index unpadded = Mask{.keys = shape.mask.keys}.visible(0, shape.nk);
  return chunks_of(params.flag("strided") && unpadded > 0 ? strided(unpadded).count : unpadded, params.integer("keep"));
}

double left_of(const std::vector<Chunk>& chunks) {
  Index left = 0;
  for (const Chunk& chunk : chunks) left += chunk.left();
  return static_cast<double>(left);
}

Work cost(const Params& params, const Shape& shape) {
  const auto chunks = chunks_of(params, shape);
  const double d = static_cast<double>(shape.d), dv = static_cast<double>(shape.dv);
  const double pairs_seen = static_cast<double>(shape.nq) * left_of(chunks);
  Work work{.flops = 2 * pairs_seen * (d + dv), .exps = pairs_seen};
  if (params.text("halving") == "coin") return work;
  for (const Chunk& chunk : chunks)
    for (Index round = 1; round <= chunk.rounds; ++round) {
      const double keys = 2 * static_cast<double>(chunk.pairs_before(round));
      const double entries = keys * keys / static_cast<double>(chunk.blocks_of(round));
      work += {.flops = 2 * entries * (d + dv), .exps = entries};
    }
  return work;
}

double memory(const Params& params, const Shape& shape) {
  const auto chunks = chunks_of(params, shape);
  const double d = static_cast<double>(shape.d), dv = static_cast<double>(shape.dv);
  const double n = static_cast<double>(shape.nk), left = left_of(chunks);
  double largest_block = 0;
  if (params.text("halving") == "kernel")
    for (const Chunk& chunk : chunks)
      if (chunk.rounds > 0) largest_block = std::max(largest_block, 2 * static_cast<double>(chunk.left()));
  return 8 * (n * (d + dv + 1) + largest_block * (2.25 * largest_block + d + dv)) +
         left * (d + dv) * bytes_of(shape.precision);
}

const bool registered = add(method<Thinformer>({
    .text = {.name = "thinformer",
             .printed = "Thinformer",
             .summary = "softmax over a coreset of the keys, halved until `keep` are left",
             .formula =
                 "A_ij = m_j exp(q_i.k_j) / sum over S of m_l exp(q_i.k_l), j in S, m_j the keys that j stands for",
             .reference = "Carrell et al. 2025, Low-Rank Thinning, arXiv:2502.12063, section 4",
             .cost = "O(keep^2 (d + dv) log(n / keep) + n keep (d + dv)) time, O(keep^2 + n (d + dv)) memory",
             .family = "coresets",
             .departure =
                 "halves any number of keys to any `keep`; the published algorithm takes n a power of 4 and keep "
                 "= 2^g n^1/2, where both are the same",
             .aliases = {"kh-compress"}},
    .parameters =
        {Parameter::integer("keep", 256, "keys in the coreset, at most (no fewer than n has binary ones)", 1)
             .as_budget(),
         Parameter::choice("halving", "kernel",
                           "which key of a pair stays: the one that keeps the kernel sums balanced, or a coin's, which "
                           "makes a uniform coreset",
                           {"kernel", "coin"}),
         Parameter::flag("strided", false, "true: read every s-th key alone, so many that they are a power of 4")
             .as_published()},
    .claims =
        [](const Params& params, const Shape& shape) {
          Claims claims{.row_stochastic = true,
                        .non_negative = true,
                        .no_form = shape.mask.causal ? "the coreset is chosen among all keys, later ones included" : "",
                        .exact_when = "keep=1000000000"};
          if (params.text("halving") == "kernel") {
            claims.linear_in_V = false;
            claims.scales_with_V = true;
            claims.no_attention_matrix = "which keys stay depends on V: with V = I it keeps others";
          } else {
            claims.rank_at_most = static_cast<Index>(left_of(chunks_of(params, shape)));
          }
          return claims;
        },
    .memory = memory,
    .cost = cost,
}));

}  // namespace
}  // namespace attnbench::thinformer_method
