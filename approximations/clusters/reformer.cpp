// Reformer: a token attends to tokens of its own hash bucket. Kitaev et al., arXiv:2001.04451, section 2.
//   Queries and keys are shared: K is not read. With x the scaled queries (Q d^-1/4, as everywhere),
//   L_ij = Q_i.(Q_j / |Q_j|) / sqrt(d) = d^-1/4 x_i.x_j / |x_j|;  a token sees itself only when it sees no other
//   h_r(x) = argmax [x R_r, -x R_r] in 1..b,  R_r d x b/2 standard normal: the scale of x does not matter
//   per round: tokens sorted by (h_r, position), cut into chunks of c; a token's candidates are those of its bucket in
//   its own chunk and the one before; N_ij counts the rounds in which j is a candidate of i. Rounds are combined by
//   o_i = sum_r e^(z_ri - z_i) o_ri,  z_ri = log sum_j e^(L_ij - log N_ij):  the softmax over the union     methods.md
//   F6
// Its exact counterpart is not softmax(q k^T) but softmax(L) without the diagonal. Two tokens at an angle theta share a
// bucket with probability 1 - theta/pi (b = 2), (1 - theta/pi)^2 (b = 4). Here the first chunk does not look back to
// the last; it would matter only if one bucket held all tokens.
//
// Where a chunk of the sorted order begins depends on the buckets of all tokens, later ones too: with a causal mask
// later tokens get no weight, but they change which earlier ones are candidates. chunks=bucket cuts chunks within each
// bucket and is exactly causal; chunks=auto does so under a causal mask. chunks=sorted follows the paper in both cases.
// A padded token is never a candidate and its row is 0.
#include <algorithm>
#include <cmath>

#include "approximations/clusters/hashing.hpp"
#include "harness/linalg/exp.hpp"
#include "harness/linalg/per_row.hpp"
#include "harness/linalg/rounding.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::reformer_method {
namespace {

constexpr Index segments_block = 8;  // segments in one thread's block

template <class T>
class Reformer final : public Approximation<T>, public Rows<T>, public Pattern<T> {
 public:
  explicit Reformer(const Draw& draw)
      : hashing_(draw),
        rounds_(draw.params.integer("rounds")),
        chunk_(draw.params.integer("chunk")),
        uniform_(draw.params.text("combine") == "uniform") {}

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const Index n = tokens(head, mask);
    out.setZero();
    const auto rounds = hashed(head, mask, context);
    State state(head, n);
    for (const Round& round : rounds)
      context.for_blocks(static_cast<Index>(round.segments.size()), segments_block,
                         [&](Context& single, Index first, Index count) {
                           for (Index s = first; s < first + count; ++s)
                             attend_segment(head, mask, rounds, round, s, single, state, out);
                         });
    if (uniform_) return;
    for (Index i = 0; i < n; ++i)
      if (const T sum = state.sum[static_cast<size_t>(i)]; sum > 0)
        out.row(i) /= sum;
      else
        out.row(i) = head.V.row(i);
  }

  const Rows<T>* rows() const override { return this; }
  const Pattern<T>* pattern() const override { return this; }
  Tensors state() const override { return {{"rotations", hashing_.rotations()}}; }

  void keys_of_rows(const Head<T>& head, Mask mask, Index first, Context& context,
                    std::span<std::vector<Index>> keys) const override {
    const auto rounds = hashed(head, mask, context);
    for (size_t a = 0; a < keys.size(); ++a) keys[a] = candidates_of(rounds, mask, first + static_cast<Index>(a));
  }

  // One softmax over the union of the candidates of all rounds.
  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    A.setZero();
    Matrix<T> shared = head.Q;
    const State state(head, shared.rows());
    for (Index j = 0; j < shared.rows(); ++j) shared.row(j) *= state.key_scale[static_cast<size_t>(j)];
    const auto rounds = hashed(head, mask, context);
    for (Index a = 0; a < A.rows(); ++a) {
      const auto keys = candidates_of(rounds, mask, first + a);
      softmax_over<T>(context, row_block(head.Q, first + a, 1), shared, keys, row_block(A, a, 1));
    }
  }

 private:
  // Running values, carried from round to round.
  struct State {
    State(const Head<T>& head, Index n)
        : key_scale(static_cast<size_t>(n)), maximum(static_cast<size_t>(n), -INFINITY), sum(static_cast<size_t>(n)) {
      const T unit = static_cast<T>(std::pow(static_cast<double>(head.Q.cols()), -0.25));
      for (Index j = 0; j < n; ++j) {
        const T norm = head.Q.row(j).norm();
        key_scale[static_cast<size_t>(j)] = norm > 0 ? unit / norm : T(0);
      }
    }

    std::vector<T> key_scale;  // d^-1/4 / |x_j|
    std::vector<T> maximum, sum;
  };

  static Index tokens(const Head<T>& head, Mask mask) { return Mask{.keys = mask.keys}.visible(0, head.Q.rows()); }

  std::vector<Round> hashed(const Head<T>& head, Mask mask, Context& context) const {
    return hashing_.rounds<T>(row_block(head.Q, 0, tokens(head, mask)), mask.causal, context);
  }
  // Empty for a padded token.
  static std::vector<Index> candidates_of(const std::vector<Round>& rounds, Mask mask, Index i) {
    if (i >= std::ssize(rounds.front().order)) return {};
    return candidates(rounds, mask.causal, i);
  }

  // Adds the output of one segment's tokens in one round. Blocks are at least 2 x 2 and all have the same row stride:
  // the bits of products and exponentials then do not depend on how many later tokens a segment holds.
  void attend_segment(const Head<T>& head, Mask mask, const std::vector<Round>& rounds, const Round& round, Index s,
                      Context& context, State& state, Out<T> out) const {
    const Segment segment = round.segments[static_cast<size_t>(s)];
    const Index n = std::ssize(round.order), queries = segment.end - segment.begin,
                keys = segment.end - segment.candidates, dv = head.V.cols();
    const Index stride = (std::max<Index>(2, std::min(2 * chunk_, n)) + 15) / 16 * 16;
    const auto padded = [](Index size) { return std::max<Index>(2, size); };
    Matrix<T> Q = Matrix<T>::Zero(padded(queries), head.Q.cols()), K = Matrix<T>::Zero(padded(keys), head.Q.cols());
    Matrix<T> V = Matrix<T>::Zero(keys, padded(dv)), found(Q.rows(), padded(dv)), memory(Q.rows(), stride);
    const auto token = [&](Index at) -> Index { return round.order[static_cast<size_t>(at)]; };
    for (Index a = 0; a < queries; ++a) Q.row(a) = head.Q.row(token(segment.begin + a));
    for (Index k = 0; k < keys; ++k) {
      const Index j = token(segment.candidates + k);
      K.row(k) = head.Q.row(j) * state.key_scale[static_cast<size_t>(j)];
      V.row(k).head(dv) = head.V.row(j);
    }
    multiply_transposed<T>(context, Q, K, corner(memory, Q.rows(), K.rows()));
    const Out<T> weights = corner(memory, Q.rows(), keys);
    if (queries == 1) memory.row(1).setZero();
    const Places places = places_of(rounds, round, segment);
    PerRow<T> kept(queries);  // factors for the sums of earlier rounds
    for (Index a = 0; a < queries; ++a)
      kept[a] = weigh(mask, rounds, round, places, segment, a, context, state, weights);
    multiply<T>(context, weights, V, found);
    for (Index a = 0; a < queries; ++a) {
      const Index i = token(segment.begin + a);
      if (!uniform_)
        out.row(i) = out.row(i) * kept[a] + found.row(a).head(dv);
      else if (const T sum = state.sum[static_cast<size_t>(i)]; sum > 0)
        out.row(i) += found.row(a).head(dv) / (sum * static_cast<T>(rounds_));
      else
        out.row(i) += head.V.row(i) / static_cast<T>(rounds_);
    }
  }

  // The place of each of a segment's candidates in every round, one row per round. N_ij is counted from it.
  using Places = Eigen::Array<std::int32_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  static Places places_of(const std::vector<Round>& rounds, const Round& round, const Segment& segment) {
    Places places(std::ssize(rounds), segment.end - segment.candidates);
    for (Index r = 0; r < places.rows(); ++r)
      for (Index k = 0; k < places.cols(); ++k)
        places(r, k) = rounds[static_cast<size_t>(r)]
                           .place[static_cast<size_t>(round.order[static_cast<size_t>(segment.candidates + k)])];
    return places;
  }

  // Divides token i's weights by N_ij, the number of rounds that find the same pair.
  static void divide_by_rounds(const std::vector<Round>& rounds, const Places& places, Index i, Out<T> row) {
    Eigen::Array<std::int32_t, 1, Eigen::Dynamic> times = decltype(times)::Zero(row.cols());
    for (Index r = 0; r < places.rows(); ++r) {
      const Segment& looks = rounds[static_cast<size_t>(r)].of(i);
      const auto first = static_cast<std::int32_t>(looks.candidates), end = static_cast<std::int32_t>(looks.end);
      const std::int32_t* at = &places(r, 0);
      for (Index k = 0; k < row.cols(); ++k) times[k] += (first <= at[k]) & (at[k] < end);
    }
    row.row(0).array() /= times.template cast<T>();
  }

  // Turns row a's logits into weights, divided by the number of rounds that find the same pair, and updates the running
  // maximum and sum (of this round alone if rounds are averaged). Returns the factor by which the caller rescales the
  // earlier sums.
  T weigh(Mask mask, const std::vector<Round>& rounds, const Round& round, const Places& places, const Segment& segment,
          Index a, Context& context, State& state, Out<T> weights) const {
    const auto token = [&](Index at) -> Index { return round.order[static_cast<size_t>(at)]; };
    const Index i = token(segment.begin + a), own = segment.begin + a - segment.candidates;
    // Within a bucket, tokens are sorted by position.
    const Index seen = mask.causal && hashing_.bucket_mask() ? own : weights.cols();
    auto row = weights.row(a).head(seen).array();
    const auto exclude = [&](T value) {
      if (own < seen) row[own] = value;
      if (mask.causal && !hashing_.bucket_mask())
        for (Index k = 0; k < seen; ++k)
          if (token(segment.candidates + k) > i) row[k] = value;
    };
    weights.row(a).tail(weights.cols() - seen).setZero();
    exclude(-INFINITY);
    const T found = seen == 0 ? -INFINITY : row.maxCoeff();
    if (found == -INFINITY) {
      row.setZero();
      if (uniform_) state.sum[static_cast<size_t>(i)] = 0;
      return 1;
    }
    T& maximum = state.maximum[static_cast<size_t>(i)];
    const T before = uniform_ ? -INFINITY : maximum, now = std::max(before, found);
    row = exponential(row - now);
    exclude(0);
    round_to<T>(context.rounding(), Out<T>(&weights(a, 0), 1, seen, weights.outerStride()));
    context.work.exps += static_cast<double>(seen);
    if (!uniform_ && rounds_ > 1)
      divide_by_rounds(rounds, places, i, Out<T>(&weights(a, 0), 1, seen, weights.outerStride()));
    maximum = now;
    const T kept = before == now ? T(1) : std::exp(before - now);
    T& sum = state.sum[static_cast<size_t>(i)];
    sum = sum * kept + row.sum();
    return kept;
  }

  Hashing hashing_;
  Index rounds_, chunk_;
  bool uniform_;
};

// The mean number of candidates per token in one round, if all buckets have the same size.
double candidates_of_a_round(const Params& params, const Shape& shape) {
  const double n = static_cast<double>(shape.nk),
               chunk = static_cast<double>(std::min(params.integer("chunk"), shape.nk));
  const double bucket =
      params.flag("bucket_mask") ? std::min(n, n / static_cast<double>(params.integer("buckets")) + 1) : n;
  return bucket <= chunk ? bucket : 2 * chunk - chunk * chunk / bucket;
}

const bool registered = add(method<Reformer>({
    .text = {.name = "reformer",
             .summary = "softmax among tokens of the same bucket of a hash; queries are keys, K is not read",
             .formula = "A = softmax(x_i.x_j / (d^1/4 |x_j|)) over j != i that some round puts into i's bucket, near i",
             .reference = "Kitaev et al. 2020, arXiv:2001.04451, section 2, eq. 3 to 7",
             .cost = "O(rounds n (d buckets + chunk (d + dv))) time, O(rounds n) memory beyond input and output",
             .family = "clusters",
             .aliases = {"lsh"}},
    .parameters =
        {Parameter::integer("buckets", 32, "buckets of a round's hash, an even number", 2, 1 << 20),
         Parameter::integer("rounds", 4, "rounds of hashing; attention is over the union", 1, 1024).as_budget(),
         Parameter::integer("chunk", 64, "tokens a chunk: candidates are a token's own chunk and the one before", 1),
         Parameter::choice("chunks", "auto",
                           "cut from the sorted order, or again in every bucket, which is exactly causal; auto: again "
                           "under a causal mask",
                           {"auto", "sorted", "bucket"}),
         Parameter::flag("bucket_mask", true, "false: tokens of other buckets in the two chunks are candidates as well")
             .as_published(),
         Parameter::choice("combine", "exact", "uniform: the plain mean of the rounds, without their weights",
                           {"exact", "uniform"})
             .as_published()},
    .claims =
        [](const Params& params, const Shape& shape) {
          Claims claims{
              .row_stochastic = true, .non_negative = true, .causal_exact = params.text("chunks") != "sorted"};
          if (shape.nq != shape.nk || shape.mask.offset != 0)
            claims.no_form = "queries are their own keys: there must be as many, at the same positions";
          return claims;
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          const double n = static_cast<double>(shape.nk), rounds = static_cast<double>(params.integer("rounds"));
          return 12 * rounds * n + 3 * n * bytes_of(shape.precision);
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const double tokens = static_cast<double>(params.integer("rounds") * shape.nq);
          const double pairs = tokens * candidates_of_a_round(params, shape);
          return Work{.flops = tokens * static_cast<double>(params.integer("buckets") * shape.d) +
                               2 * pairs * static_cast<double>(shape.d + shape.dv),
                      .exps = pairs * (shape.mask.causal ? 0.5 : 1)};
        },
    .check =
        [](const Params& params) {
          if (params.integer("buckets") % 2 != 0)
            throw Misuse(params.spec() +
                         ": an odd number of buckets; expected an even one: one of each two buckets is the direction "
                         "opposite to the other's");
        },
    .caveats =
        [](const Params& params, const Shape& shape) {
          std::vector<std::string> caveats{"K is not read: the exact counterpart is attention of x to x / |x|"};
          if (shape.mask.causal && params.text("chunks") == "sorted")
            caveats.push_back("later tokens take no weight but move where chunks begin: earlier rows depend on them");
          return caveats;
        },
}));

}  // namespace
}  // namespace attnbench::reformer_method
