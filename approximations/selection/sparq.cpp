// SparQ: exact softmax over the keys whose logits are largest by the r largest channels of the query, and the mean
// value for the rest. Ribar et al. 2023, arXiv:2312.04985, algorithm 1.
//   R = the r channels of largest |q_c|;  s~_j = sum over R of q_c k_jc / sqrt(|q_R|_1 / |q|_1)              methods.md
//   U S = the k keys of largest s~, those with |i - j| < local before all others (ties: the first) alpha = sum over S
//   of softmax(s~);  out = alpha softmax over S of q.k V + (1 - alpha) (mean of V)
// The temperature sqrt(d |q_R|_1 / |q|_1) of the paper is this one, because q and k are scaled. r = d is exact top-k
// with the mean value. alpha estimates the mass that softmax gives S; the mean is that of the keys that the row sees.
// Scores take O(n r) of a row instead of O(n d): the keys are read by channel.
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <utility>

#include "approximations/selection/chosen_keys.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::sparq_method {
namespace {

constexpr Index summed_keys = 64;  // keys between two stored sums of values

struct Settings {
  Index r, k, local;
  bool mean;
};

template <class T>
class LargestChannels final : public KeyChoice<T> {
 public:
  LargestChannels(const Head<T>& head, const Settings& settings)
      : head_(head), settings_(settings), channels_(head.K.cols(), head.K.rows()) {
    if (settings.mean) sums_.setZero(head.V.rows() / summed_keys + 1, head.V.cols());
  }

  void extend(Context&, Index first, Index end) override {
    channels_.middleCols(first, end - first) = head_.K.middleRows(first, end - first).transpose();
    if (!settings_.mean) return;
    for (Index b = first / summed_keys + 1; b <= end / summed_keys; ++b)
      sums_.row(b) = sums_.row(b - 1) +
                     row_block(head_.V, (b - 1) * summed_keys, summed_keys).template cast<double>().colwise().sum();
  }
  size_t bytes(Index keys) const override {
    const Index sums = settings_.mean ? keys / summed_keys * head_.V.cols() : 0;
    return static_cast<size_t>(keys * head_.K.cols()) * sizeof(T) + static_cast<size_t>(sums) * sizeof(double);
  }

  void choose(Context& context, Mask mask, Index first, std::span<WeighedKeys<T>> rows,
              std::span<double> shares) const override {
    const Index count = std::ssize(rows), nk = head_.K.rows(), most = mask.visible(first + count - 1, nk);
    if (most == 0) return;
    Matrix<T> scores(count, most);
    set_scores(context, mask, first, scores);
    for (Index i = 0; i < count; ++i) {
      const Index seen = mask.visible(first + i, nk);
      std::vector<Index>& kept = rows[static_cast<size_t>(i)].keys;
      keep(first + i + mask.offset, {&scores(i, 0), static_cast<size_t>(seen)}, kept);
      if (!settings_.mean || seen == 0) continue;
      softmax_within<T>(context, scores, i, 0, seen);
      double share = 0;
      for (const Index j : kept) share += static_cast<double>(scores(i, j));
      shares[static_cast<size_t>(i)] = std::min(1.0, share);
    }
  }

  void complete_output(Mask mask, Index first, std::span<const double> shares, Out<T> out) const override {
    if (!settings_.mean) return;
    for (Index i = 0; i < out.rows(); ++i) {
      const Index seen = mask.visible(first + i, head_.V.rows()), block = seen / summed_keys;
      if (seen == 0) continue;
      Eigen::RowVectorXd sum = sums_.row(block);
      for (Index j = block * summed_keys; j < seen; ++j) sum += head_.V.row(j).template cast<double>();
      const double share = shares[static_cast<size_t>(i)];
      out.row(i) =
          static_cast<T>(share) * out.row(i) + ((1 - share) / static_cast<double>(seen) * sum).template cast<T>();
    }
  }
  void complete_attention(Mask mask, Index first, std::span<const double> shares, Out<T> A) const override {
    if (!settings_.mean) return;
    for (Index i = 0; i < A.rows(); ++i) {
      const Index seen = mask.visible(first + i, A.cols());
      if (seen == 0) continue;
      const double share = shares[static_cast<size_t>(i)];
      A.row(i) *= static_cast<T>(share);
      A.row(i).head(seen).array() += static_cast<T>((1 - share) / static_cast<double>(seen));
    }
  }

 private:
  // The k keys of a row at that position: of the local ones and of the others those with the largest scores, local ones
  // before all others.
  void keep(Index position, std::span<const T> scores, std::vector<Index>& kept) const {
    const Index seen = std::ssize(scores), local = settings_.local;
    const Index begin = std::clamp<Index>(position - local + 1, 0, seen),
                end = std::clamp<Index>(position + local, begin, seen), inside = std::min(end - begin, settings_.k);
    const auto keep_of = [&](Index number, std::initializer_list<std::pair<Index, Index>> ranges) {
      LargestScores<T> largest(number);
      for (const auto& [from, to] : ranges)
        largest.add(from, scores.subspan(static_cast<size_t>(from), static_cast<size_t>(to - from)));
      for (const auto& found : largest.found()) kept.push_back(found.key);
    };
    keep_of(inside, {{begin, end}});
    keep_of(settings_.k - inside, {{0, begin}, {end, seen}});
  }

  // The channels that a query reads, each with its factor.
  struct Reading {
    std::vector<Index> channels;
    std::vector<T> factors;
  };
  Reading reading_of(Index row) const {
    const auto query = head_.Q.row(row);
    Reading reading{.channels = std::vector<Index>(static_cast<size_t>(query.size())), .factors = {}};
    std::iota(reading.channels.begin(), reading.channels.end(), Index(0));
    keep_largest(reading.channels, settings_.r, [&](Index c) { return std::abs(query(c)); });
    std::sort(reading.channels.begin(), reading.channels.end());
    T read = 0;
    for (const Index channel : reading.channels) read += std::abs(query(channel));
    const T scale = read > 0 ? std::sqrt(read / query.cwiseAbs().sum()) : T(1);
    for (const Index channel : reading.channels) reading.factors.push_back(query(channel) / scale);
    return reading;
  }

  // s~ of the keys that rows first, first + 1, ... see. Goes through the keys in slabs, so that all channels of a slab
  // stay in the second-level cache for these rows, and adds four channels at a time.
  void set_scores(Context& context, Mask mask, Index first, Matrix<T>& scores) const {
    constexpr Index slab = 1024;
    std::vector<Reading> readings;
    for (Index i = 0; i < scores.rows(); ++i) readings.push_back(reading_of(first + i));
    for (Index begin = 0; begin < scores.cols(); begin += slab)
      for (Index i = 0; i < scores.rows(); ++i) {
        const Index keys = std::min(slab, mask.visible(first + i, head_.K.rows()) - begin);
        if (keys <= 0) continue;
        const Reading& reading = readings[static_cast<size_t>(i)];
        auto of_slab = scores.row(i).segment(begin, keys);
        const auto term = [&](size_t c) {
          return reading.factors[c] * channels_.row(reading.channels[c]).segment(begin, keys);
        };
        of_slab.setZero();
        size_t c = 0;
        for (; c + 4 <= reading.channels.size(); c += 4) of_slab += term(c) + term(c + 1) + term(c + 2) + term(c + 3);
        for (; c < reading.channels.size(); ++c) of_slab += term(c);
        context.work.flops += 2.0 * static_cast<double>(std::ssize(reading.channels) * keys);
      }
  }

  Head<T> head_;
  Settings settings_;
  Matrix<T> channels_;   // d x nk
  Matrix<double> sums_;  // row b: the sum of the first b summed_keys values
};

Settings settings_of(const Params& params) {
  return {.r = params.integer("r"),
          .k = params.integer("k"),
          .local = params.integer("local"),
          .mean = params.flag("mean")};
}

template <class T>
class SparQ final : public SelectedSoftmax<T> {
 public:
  explicit SparQ(const Draw& draw) : settings_(settings_of(draw.params)) {}
  // The mean value gives every key some weight.
  const Pattern<T>* pattern() const override { return settings_.mean ? nullptr : this; }

 private:
  std::unique_ptr<KeyChoice<T>> choice(const Head<T>& head, Mask, Context&) const override {
    return std::make_unique<LargestChannels<T>>(head, settings_);
  }

  Settings settings_;
};

const bool registered = add(method<SparQ>({
    .text = {.name = "sparq",
             .printed = "SparQ",
             .summary =
                 "softmax over the keys that are largest by the largest channels of the query, and the mean value "
                 "for the rest",
             .formula =
                 "out_i = alpha softmax over S of q_i.k_j V + (1 - alpha) mean(V), S the k largest s~, s~_j = sum "
                 "over the r largest |q_c| of q_c k_jc / sqrt(|q_R|_1 / |q|_1), alpha = sum over S of softmax(s~)",
             .reference = "Ribar et al. 2023, arXiv:2312.04985, algorithm 1",
             .cost = "O(n^2 r + n k (d + dv)) time, O(n d) memory",
             .family = "selection",
             .departure = "every row is treated as a decoding step is there; without a causal mask keys on both sides "
                          "are local, and they may be more than k"},
    .parameters = {Parameter::integer("r", 16, "channels that scores are computed from, of d", 1, 1 << 20),
                   Parameter::integer("k", 64, "keys of a row", 1).as_budget(),
                   Parameter::integer("local", 16, "keys with |i - j| < local are chosen first", 0),
                   Parameter::flag("mean", true, "the mean value takes the share of the keys that are not chosen")},
    .claims =
        [](const Params& params, const Shape&) {
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .permutation_equivariant = params.integer("local") == 0,
                        .causal_exact = true,
                        .exact_when = "k=1000000000"};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          const auto nk = static_cast<double>(shape.nk), d = static_cast<double>(shape.d);
          const double sums = params.flag("mean") ? nk / summed_keys * static_cast<double>(shape.dv) * 8 : 0;
          const double kept = std::min(nk, static_cast<double>(params.integer("k")));
          return nk * (d + gathered_rows) * bytes_of(shape.precision) + memory_of_gathered(kept, false, shape) + sums;
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const Settings settings = settings_of(params);
          const double seen = sum_over_rows(shape, [](Index keys, Index) { return keys; });
          const double pairs = sum_over_rows(shape, [&](Index keys, Index) { return std::min(keys, settings.k); });
          return Work{.flops = 2 * seen * static_cast<double>(std::min(settings.r, shape.d)) +
                               2 * pairs * static_cast<double>(shape.d + shape.dv),
                      .exps = pairs + (settings.mean ? seen : 0)};
        },
}));

}  // namespace
}  // namespace attnbench::sparq_method
