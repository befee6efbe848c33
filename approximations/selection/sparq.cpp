// SparQ: exact softmax over the keys whose logits are largest by the r largest channels of the query, and the mean
// value for the rest. Ribar et al. 2023, arXiv:2312.04985, algorithm 1.
//   R = the r channels of largest |q_c|;  s~_j = sum over R of q_c k_jc / sqrt(|q_R|_1 / |q|_1)              methods.md
//   U S = the k keys of largest s~, those with |i - j| < local before all others (ties: the first) alpha = sum over S
//   of softmax(s~);  out = alpha softmax over S of q.k V + (1 - alpha) (mean of V)
// The temperature sqrt(d |q_R|_1 / |q|_1) of the paper is this one, because q and k are scaled. r = d is exact top-k
// with the mean value. alpha estimates the mass that softmax gives S; the mean is that of the keys that the row sees.
// Scores take O(n r) of a row instead of O(n d): the keys are read by channel.
#include <cmath>
#include <numeric>

#include "approximations/selection/chosen_keys.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench {
namespace {

constexpr Index summed_keys = 64;  // keys between two stored sums of values

struct Settings {
  Index r, k, local;
  bool mean;
};

template <class T>
class LargestChannels final : public KeyChoice<T> {
 public:
  LargestChannels(const Head<T>& head, Mask mask, const Settings& settings)
      : head_(head), mask_(mask), settings_(settings), channels_(head.K.transpose()) {
    if (!settings.mean) return;
    sums_.setZero(head.V.rows() / summed_keys + 1, head.V.cols());
    for (Index b = 1; b < sums_.rows(); ++b)
      sums_.row(b) = sums_.row(b - 1) +
                     row_block(head.V, (b - 1) * summed_keys, summed_keys).template cast<double>().colwise().sum();
  }

  void choose(Context& context, Index first, std::span<ChosenRow> rows) const override {
    Matrix<T> scores;
    std::vector<Index> kept;
    for (size_t i = 0; i < rows.size(); ++i) {
      const Index row = first + static_cast<Index>(i), seen = mask_.visible(row, head_.K.rows());
      if (seen == 0) continue;
      set_scores(context, row, seen, scores);
      kept.resize(static_cast<size_t>(seen));
      std::iota(kept.begin(), kept.end(), Index(0));
      keep_largest(kept, settings_.k, [&](Index j) {
        return std::pair(std::abs(row + mask_.offset - j) < settings_.local, scores(0, j));
      });
      rows[i].runs = runs_of(kept);
      if (!settings_.mean) continue;
      softmax_within<T>(context, scores, 0, 0, seen);
      double share = 0;
      for (const Index j : kept) share += static_cast<double>(scores(0, j));
      rows[i].share = std::min(1.0, share);
    }
  }

  void complete_output(Index first, std::span<const ChosenRow> rows, Out<T> out) const override {
    if (!settings_.mean) return;
    for (Index i = 0; i < out.rows(); ++i) {
      const Index seen = mask_.visible(first + i, head_.V.rows()), block = seen / summed_keys;
      if (seen == 0) continue;
      Eigen::RowVectorXd sum = sums_.row(block);
      for (Index j = block * summed_keys; j < seen; ++j) sum += head_.V.row(j).template cast<double>();
      const double share = rows[static_cast<size_t>(i)].share;
      out.row(i) =
          static_cast<T>(share) * out.row(i) + ((1 - share) / static_cast<double>(seen) * sum).template cast<T>();
    }
  }
  void complete_attention(Index first, std::span<const ChosenRow> rows, Out<T> A) const override {
    if (!settings_.mean) return;
    for (Index i = 0; i < A.rows(); ++i) {
      const Index seen = mask_.visible(first + i, A.cols());
      if (seen == 0) continue;
      const double share = rows[static_cast<size_t>(i)].share;
      A.row(i) *= static_cast<T>(share);
      A.row(i).head(seen).array() += static_cast<T>((1 - share) / static_cast<double>(seen));
    }
  }

 private:
  // s~ of the keys that the row sees, 1 x seen.
  void set_scores(Context& context, Index row, Index seen, Matrix<T>& scores) const {
    const auto query = head_.Q.row(row);
    std::vector<Index> channels(static_cast<size_t>(query.size()));
    std::iota(channels.begin(), channels.end(), Index(0));
    keep_largest(channels, settings_.r, [&](Index c) { return std::abs(query(c)); });
    std::sort(channels.begin(), channels.end());
    const auto count = std::ssize(channels);
    Matrix<T> entries(1, count), keys(count, seen);
    for (Index c = 0; c < count; ++c) {
      const Index channel = channels[static_cast<size_t>(c)];
      entries(0, c) = query(channel);
      keys.row(c) = channels_.row(channel).head(seen);
    }
    const T read = entries.cwiseAbs().sum(), all = query.cwiseAbs().sum();
    if (read > 0) entries /= std::sqrt(read / all);
    scores.resize(1, seen);
    multiply<T>(context, entries, keys, scores);
  }

  Head<T> head_;
  Mask mask_;
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
class SparQ final : public ChosenSoftmax<T> {
 public:
  explicit SparQ(const Draw& draw) : settings_(settings_of(draw.params)) {}
  // The mean value gives every key some weight.
  const Pattern<T>* pattern() const override { return settings_.mean ? nullptr : this; }

 private:
  std::unique_ptr<const KeyChoice<T>> choice(const Head<T>& head, Mask mask, Context&) const override {
    return std::make_unique<LargestChannels<T>>(head, mask, settings_);
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
             .cost = "O(n^2 r + n k (d + dv)) time, O(n (r + d)) memory",
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
          const double r = std::min(d, static_cast<double>(params.integer("r")));
          const double sums = params.flag("mean") ? nk / summed_keys * static_cast<double>(shape.dv) * 8 : 0;
          return nk * ((d + r + 1) * bytes_of(shape.precision) + sizeof(Index)) + sums;
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
}  // namespace attnbench
