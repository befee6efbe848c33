// Bias, variance and mean squared error of a method's estimate of the kernel it targets, over many draws, with the
// closed form beside it. methods.md A, B. Everything is relative to the target, pair by pair, in double.
//
// Inputs and draws are separate levels: a replicate is one input. Within it, the number of draws grows until the
// standard error of the mean squared error is at most `precision` times that error, or `draws` is reached. Estimates of
// exponentials have heavy tails: if single draws dominate the mean squared error, it is left out (estimable = 0).
#include <algorithm>
#include <cmath>
#include <optional>

#include "harness/experiment/experiment.hpp"
#include "harness/statistics/intervals.hpp"

namespace attnbench::kernel_error_experiment {
namespace {

// Draw t belongs to batch t mod 64 for any number of draws, so that intervals and tails can be computed from batches.
constexpr Index batches = 64;
constexpr Index first_draws = 4 * batches;
constexpr Index kept_a_batch = 16;  // draws kept for quantiles: draws are iid, so the first ones suffice
constexpr double quantiles[] = {0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99};

// Evenly spaced tokens of the head: pair p is (q_i, k_i) for i = p n / pairs.
HeadData<double> chosen_pairs(const HeadData<double>& head, Index pairs) {
  HeadData<double> chosen{Matrix<double>(pairs, head.Q.cols()), Matrix<double>(pairs, head.K.cols()),
                          Matrix<double>::Zero(pairs, 1)};
  std::vector<Index> queries, keys;
  for (Index p = 0; p < pairs; ++p) {
    queries.push_back(p * head.Q.rows() / pairs);
    keys.push_back(p * head.K.rows() / pairs);
    chosen.Q.row(p) = head.Q.row(queries.back());
    chosen.K.row(p) = head.K.row(keys.back());
  }
  chosen.extra = part_of(head.extra, queries, keys);
  return chosen;
}

struct Target {
  Pair pair;
  double mean;
  double log_magnitude = std::log(std::abs(mean));
};

std::vector<Target> targets_of(const HeadData<double>& head, const KernelTheory& theory) {
  std::vector<Target> targets;
  const auto d = static_cast<size_t>(head.Q.cols());
  for (Index p = 0; p < head.Q.rows(); ++p) {
    const Pair pair = pair_of({head.Q.row(p).data(), d}, {head.K.row(p).data(), d});
    targets.push_back({pair, theory.mean(pair)});
    if (std::abs(targets.back().mean) < 1e-12 * pair.softmax())
      throw Skip("the kernel " + theory.target + " of pair " + std::to_string(p) +
                 " is zero: there is no error relative to it");
  }
  return targets;
}

// Statistics of estimate / target over one batch of draws, for each pair.
struct Batch {
  std::vector<Moments> ratio, squared_error;
  std::vector<std::vector<double>> kept;  // ratios of the first draws, one vector per pair
};

class Sample {
 public:
  Sample(const Task& task, const HeadData<double>& head, const std::vector<Target>& targets)
      : head_(head), targets_(targets), draw_(task.cell, task.replicate, 0), batches_(batches) {
    for (Batch& batch : batches_) {
      batch.ratio.resize(targets.size());
      batch.squared_error.resize(targets.size());
      batch.kept.resize(targets.size());
    }
  }

  // Adds draws until there are `total`, a multiple of 64.
  void grow(const Task& task, Index total) {
    task.context.for_blocks(batches, 1, [&](Context& single, Index b, Index) {
      std::vector<double> values(targets_.size()), log_scale(targets_.size());
      Batch& batch = batches_[static_cast<size_t>(b)];
      for (Index t = drawn_ + b; t < total; t += batches) {
        // Every replicate has its own draws, so that the errors of replicates are independent.
        const auto method = draw_(task.replicate * (Index{1} << 32) + t);
        method->kernel()->diagonal(head_.view(), single, values, log_scale);
        for (size_t p = 0; p < targets_.size(); ++p) {
          const double target = targets_[p].mean;
          const double ratio =
              std::copysign(values[p], values[p] * target) * std::exp(log_scale[p] - targets_[p].log_magnitude);
          if (!std::isfinite(ratio)) throw NumericallyInvalid("the kernel estimate of a pair overflows");
          batch.ratio[p].add(ratio);
          batch.squared_error[p].add((ratio - 1) * (ratio - 1));
          if (std::ssize(batch.kept[p]) < kept_a_batch) batch.kept[p].push_back(ratio);
        }
      }
    });
    drawn_ = total;
  }

  Index drawn() const { return drawn_; }
  const std::vector<Batch>& by_batch() const { return batches_; }

  Moments ratio(size_t p) const { return merged(p, &Batch::ratio); }
  Moments squared_error(size_t p) const { return merged(p, &Batch::squared_error); }

  // The mean over pairs of the squared errors, one number a batch: pairs share draws, so only batches are independent.
  Moments mean_squared_error() const {
    Moments all;
    for (const Batch& batch : batches_) {
      double sum = 0;
      for (const Moments& pair : batch.squared_error) sum += pair.mean;
      all.add(sum / static_cast<double>(targets_.size()));
    }
    return all;
  }

  // The mean over pairs of ratio - 1, one number a batch.
  Moments mean_bias() const {
    Moments all;
    for (const Batch& batch : batches_) {
      double sum = 0;
      for (const Moments& pair : batch.ratio) sum += pair.mean - 1;
      all.add(sum / static_cast<double>(targets_.size()));
    }
    return all;
  }

  // The share of all squared errors that comes from heavy pairs: those where one draw makes more than a tenth of the
  // pair's sum of squares. (In a normal sample of N errors the largest square is about 2 ln N / N of the sum.)
  double share_of_heavy_pairs() const {
    double heavy = 0, all = 0;
    for (size_t p = 0; p < targets_.size(); ++p) {
      const Moments squared = squared_error(p);
      all += squared.mean;
      if (squared.share_of_largest() > std::max(0.1, 20 / static_cast<double>(drawn_))) heavy += squared.mean;
    }
    return all > 0 ? heavy / all : 0;
  }
  bool estimable() const { return share_of_heavy_pairs() <= 0.1; }

 private:
  Moments merged(size_t p, std::vector<Moments> Batch::*member) const {
    Moments all;
    for (const Batch& batch : batches_) all.merge((batch.*member)[p]);
    return all;
  }

  const HeadData<double>& head_;
  const std::vector<Target>& targets_;
  MethodDraws draw_;
  std::vector<Batch> batches_;
  Index drawn_ = 0;
};

// Of each pair: one number, or several.
struct PairTable {
  std::vector<double> norms, bias, bias_error, mse, mse_error, closed, all_quantiles, all_batches;

  void add(const Target& target, const Moments& ratio, const Moments& squared, const Sample& sample, size_t p) {
    norms.push_back(target.pair.plus2());
    bias.push_back(ratio.mean - 1);
    bias_error.push_back(ratio.standard_error());
    mse.push_back(squared.mean);
    mse_error.push_back(squared.standard_error());
    std::vector<double> draws;
    for (const Batch& batch : sample.by_batch()) {
      const Moments& m = batch.ratio[p];
      all_batches.insert(all_batches.end(), {m.count, m.mean, m.m2, m.m3, m.m4, m.share_of_largest()});
      draws.insert(draws.end(), batch.kept[p].begin(), batch.kept[p].end());
    }
    std::sort(draws.begin(), draws.end());
    for (const double q : quantiles) all_quantiles.push_back(quantile(draws, q));
  }

  void record(Recorder& recorder) && {
    const Index count = std::ssize(norms);
    recorder.array("pair_plus_norm2", "1", {count}, std::move(norms));
    recorder.array("pair_bias", "1", {count}, std::move(bias));
    recorder.array("pair_bias_standard_error", "1", {count}, std::move(bias_error));
    recorder.array("pair_mse", "1", {count}, std::move(mse));
    recorder.array("pair_mse_standard_error", "1", {count}, std::move(mse_error));
    if (!closed.empty()) recorder.array("pair_mse_theory", "1", {count}, std::move(closed));
    recorder.array("pair_quantiles", "1", {count, std::ssize(quantiles)}, std::move(all_quantiles));
    recorder.array("batches", "1", {count, batches, 6}, std::move(all_batches));
  }
};

// Means over pairs.
struct PairMeans {
  Moments bias, variance, target_bias, theory, share_of_largest, softmax_bias, to_softmax, to_softmax_theory;

  // closed: the closed form of the squared error, if one is known.
  void add(const Target& target, const Moments& ratio, const Moments& squared, std::optional<double> closed) {
    bias.add(ratio.mean - 1);
    variance.add(ratio.variance());
    share_of_largest.add(ratio.share_of_largest());
    // K' / exp(q.k) - 1 = c (K' / K - 1) + (c - 1).
    const double c = target.mean / target.pair.softmax();
    target_bias.add(c - 1);
    softmax_bias.add(c * ratio.mean - 1);
    to_softmax.add(c * c * squared.mean + 2 * c * (c - 1) * (ratio.mean - 1) + (c - 1) * (c - 1));
    if (!closed) return;
    theory.add(*closed);
    to_softmax_theory.add(c * c * *closed + (c - 1) * (c - 1));
  }
};

// Draws until the mean squared error is known to this precision, or `most` draws are there.
Sample drawn_sample(const Task& task, const HeadData<double>& head, const std::vector<Target>& targets) {
  const Index most = task.cell.experiment.integer("draws") / batches * batches;
  const double precision = task.cell.experiment.real("precision");
  Sample sample(task, head, targets);
  for (Index total = std::min(first_draws, most);; total = std::min(2 * total, most)) {
    sample.grow(task, total);
    const Moments squares = sample.mean_squared_error();
    if (total == most || (squares.standard_error() <= precision * squares.mean && sample.estimable())) return sample;
  }
}

void record_means(const PairMeans& means, const Sample& sample, Recorder& record) {
  record.scalar("relative_bias", "1", means.bias.mean);
  record.scalar("relative_bias_standard_error", "1", sample.mean_bias().standard_error());
  record.scalar("softmax_bias", "1", means.softmax_bias.mean);
  if (sample.estimable()) {
    const Moments squares = sample.mean_squared_error();
    record.scalar("relative_variance", "1", means.variance.mean);
    record.scalar("relative_mse", "1", squares.mean);
    record.scalar("relative_mse_standard_error", "1", squares.standard_error());
    record.scalar("softmax_mse", "1", means.to_softmax.mean);
    if (squares.mean > 0) {
      record.scalar("log_mse", "1", std::log(squares.mean));
      record.scalar("log_mse_standard_error", "1", squares.standard_error() / squares.mean);
    }
  }
  if (means.theory.count > 0) {
    record.scalar("relative_mse_theory", "1", means.theory.mean);
    record.scalar("softmax_mse_theory", "1", means.to_softmax_theory.mean);
  }
  record.scalar("estimable", "1", sample.estimable() ? 1 : 0);
  record.scalar("draws_used", "1", static_cast<double>(sample.drawn()));
  record.scalar("share_of_heavy_pairs", "1", sample.share_of_heavy_pairs());
  record.scalar("share_of_largest", "1", means.share_of_largest.mean);
  record.scalar("target_bias", "1", means.target_bias.mean);
}

void measure(const Task& task, Recorder& record) {
  const Params& method = task.cell.method;
  const auto theory = task.theory(0);
  if (!theory) throw Skip(method.spec() + " declares no kernel that it estimates");
  if (method.has("share") && method.text("share") == "step")
    throw Skip(method.spec() + " has one draw for all steps; over draws it errs as with share=layer");
  const auto whole = draw_cell_head(task.cell, task.replicate, 0, Purpose::measured);
  const auto head =
      chosen_pairs(whole, std::min({task.cell.experiment.integer("pairs"), whole.Q.rows(), whole.K.rows()}));
  const auto targets = targets_of(head, *theory);
  const Sample sample = drawn_sample(task, head, targets);
  if (!sample.estimable())
    record.note("variance not estimable with " + std::to_string(sample.drawn()) + " draws" +
                (theory->variance ? "; only its closed form is there" : ""));
  PairTable table;
  PairMeans means;
  for (size_t p = 0; p < targets.size(); ++p) {
    const Moments ratio = sample.ratio(p), squared = sample.squared_error(p);
    std::optional<double> closed;
    if (theory->variance) {
      closed = theory->variance(targets[p].pair) / (targets[p].mean * targets[p].mean);
      table.closed.push_back(*closed);
    }
    table.add(targets[p], ratio, squared, sample, p);
    means.add(targets[p], ratio, squared, closed);
  }
  record_means(means, sample, record);
  if (task.cell.experiment.flag("by_pair")) std::move(table).record(record);
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "kernel-error",
             .summary = "bias, variance and MSE of the kernel estimate over draws, with the closed form",
             .formula = "E (K'_ii / K_ii - 1)^2 over draws, pairs (q_i, k_i) evenly spaced over the head",
             .reference = "Choromanski et al. 2020, arXiv:2009.14794, Lemma 2 and Theorem 2",
             .cost = "draws x (one construction + pairs x features)"},
    .parameters = {Parameter::integer("draws", 16384, "draws of the method in each replicate, at most", 64),
                   Parameter::integer("pairs", 16, "pairs (q_i, k_i)", 1, 4096),
                   Parameter::real("precision", 0.05,
                                   "draws end when the standard error of the MSE is within this of it; 0: all draws", 0,
                                   1),
                   Parameter::flag("by_pair", true,
                                   "keep what is known of each pair, and of 64 batches of its draws; false: means over "
                                   "pairs alone")},
    .metrics =
        {{"relative_bias", "1", "mean over pairs of E K' / K - 1", {}, "E K'/K - 1"},
         {"relative_bias_standard_error", "1", "its standard error over draws, within this input"},
         {"softmax_bias",
          "1",
          "mean over pairs of E K' / exp(q.k) - 1: the bias of the target counts",
          {},
          "bias  E K'/exp(q.k) - 1"},
         {"relative_variance", "1", "mean over pairs of Var K' / K^2", Better::less},
         {"relative_mse", "1", "mean over pairs of E (K' / K - 1)^2; left out where it is not estimable", Better::less,
          "E (K'/K - 1)^2", "log10"},
         {"relative_mse_standard_error", "1", "its standard error over draws, within this input"},
         {"log_mse", "1", "its natural logarithm"},
         {"log_mse_standard_error", "1", "the standard error of that"},
         {"relative_mse_theory", "1", "its closed form, where one is known"},
         {"softmax_mse", "1", "mean over pairs of E (K' / exp(q.k) - 1)^2: the bias of the target counts", Better::less,
          "relative MSE  E (K'/exp(q.k) - 1)^2", "log10"},
         {"softmax_mse_theory", "1", "its closed form, where one is known"},
         {"estimable", "1",
          "0 when more than a tenth of all squared errors belongs to pairs where one draw holds more than a tenth: "
          "that many draws do not estimate the variance"},
         {"draws_used", "1", "draws that it took"},
         {"share_of_heavy_pairs", "1",
          "share, in all squared errors, of pairs where one draw holds more than a tenth of its pair's"},
         {"share_of_largest", "1", "share of the largest draw in the sum of draws, mean over pairs"},
         {"target_bias", "1", "mean over pairs of K / exp(q.k) - 1: what the method targets against softmax"},
         {"pair_plus_norm2", "1", "|q + k|^2 of each pair"},
         {"pair_bias", "1", "E K' / K - 1 of each pair"},
         {"pair_bias_standard_error", "1", "its standard error"},
         {"pair_mse", "1", "E (K' / K - 1)^2 of each pair, estimable or not", Better::less},
         {"pair_mse_standard_error", "1", "its standard error"},
         {"pair_mse_theory", "1", "its closed form"},
         {"pair_quantiles", "1",
          "[pairs, 7]: the 1, 5, 25, 50, 75, 95 and 99 % quantiles of K' / K over 1024 "
          "draws at most"},
         {"batches", "1",
          "[pairs, 64, 6]: count, mean, sums of squared, cubed and fourth deviations, and share of "
          "the largest, of K' / K in 64 batches of draws"}},
    .headline = {.metric = "relative_mse", .label = "relative MSE  E (K'/K - 1)^2", .theory = "relative_mse_theory"},
    .work =
        [](const Cell& cell) {
          return work_of_draws(cell, cell.experiment.integer("draws"), cell.experiment.integer("pairs"));
        },
    .run = measure,
});

}  // namespace
}  // namespace attnbench::kernel_error_experiment
