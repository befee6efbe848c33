// An input, an experiment, a projection, a key score and two feature maps: entries of every registry can come from a
// plugin.
#include "harness/core/feature_map.hpp"
#include "harness/core/key_score.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/inputs/input.hpp"
#include "harness/linalg/exp.hpp"

namespace attnbench {
namespace {

// elu(x) + 1 as the program's own; the difference in time is the cost of calling it through a plugin.
template <class T>
class EluTwin final : public FeatureMap<T> {
 public:
  explicit EluTwin(const Draw& draw) : d_(draw.shape.d) {}
  Index features() const override { return d_; }
  Form form() const override { return Form::values; }
  void map(Context& context, const In<T>& X, Side, Index, Out<T> block, std::span<T> log_scale) const override {
    for (Index i = 0; i < X.rows(); ++i)
      block.row(i).array() = X.row(i).array().max(T(0)) + exponential(X.row(i).array().min(T(0)));
    context.work.exps += static_cast<double>(X.size());
    std::fill(log_scale.begin(), log_scale.end(), T(0));
  }

 private:
  Index d_;
};

const bool map = add(deterministic_map<EluTwin>({
    .text = {.name = "elu-twin",
             .summary = "elu(x) + 1 once more",
             .formula = "phi(x) = elu(x) + 1",
             .reference = "arXiv:2006.16236, eq. 7",
             .cost = "O(n d) time"},
    .features = [](const Params&, Index d) { return d; },
    .token_work = [](const Params&, Index d) { return Work{.exps = static_cast<double>(d)}; },
    .non_negative = true,
}));

// exp(q.k) by positive features of the first half of the rows: the same closed form.
template <class T>
class PositiveTwin final : public FeatureMap<T> {
 public:
  explicit PositiveTwin(const Draw& draw)
      : W_(draw_projection(draw, draw.params.integer("m")).template cast<T>()),
        log_m_(std::log(static_cast<T>(W_.rows())) / 2) {}
  Index features() const override { return W_.rows(); }
  Form form() const override { return Form::exponents; }
  void map(Context&, const In<T>& X, Side, Index, Out<T> block, std::span<T> log_scale) const override {
    block.noalias() = X * W_.transpose();
    for (Index i = 0; i < X.rows(); ++i) log_scale[static_cast<size_t>(i)] = -X.row(i).squaredNorm() / 2 - log_m_;
  }

 private:
  Matrix<T> W_;
  T log_m_;
};

const bool random_map = add(feature_map<PositiveTwin>({
    .text = {.name = "positive-twin",
             .summary = "positive features once more",
             .formula = "phi(x) = exp(w.x - |x|^2/2) / sqrt(m)",
             .reference = "arXiv:2009.14794, Lemma 1",
             .cost = "O(n m d) time"},
    .parameters = {Parameter::integer("m", 256, "features", 1),
                   Parameter::entry("projection", "iid", "ensemble of w", "projections"),
                   Parameter::choice("share", "head", "who shares a draw", {"head", "layer", "step"})},
    .features = [](const Params& params, Index) { return params.integer("m"); },
    .token_work = [](const Params& params, Index) { return Work{.exps = static_cast<double>(params.integer("m"))}; },
    .non_negative = true,
}));

const bool projection = add(ProjectionEntry{
    .text =
        {.name = "zero", .summary = "no directions at all", .formula = "w = 0", .reference = "none", .cost = "none"},
    .parameters = {},
    .draw = [](const Draw&, Index m, Index d) { return Matrix<double>(Matrix<double>::Zero(m, d)); },
    .law = [](const Params&, Index) { return EnsembleLaw{.gaussian = false}; },
});

const bool score = add(KeyScoreEntry{
    .text = {.name = "latest",
             .summary = "the place of the key",
             .formula = "s_j = j",
             .reference = "none",
             .cost = "O(n)"},
    .parameters = {Parameter::integer("every", 1, "only each such key", 1)},
    .score =
        [](const Params& params, const Head<double>& head, Mask, Context&, const Matrix<double>&) {
          std::vector<double> scores;
          for (Index j = 0; j < head.K.rows(); ++j)
            scores.push_back(j % params.integer("every") == 0 ? static_cast<double>(j) : -1.0);
          return scores;
        },
    .check =
        [](const Params& params) {
          if (params.integer("every") > 1000) throw Misuse("latest: every is at most 1000");
        },
});

const bool input = add(InputEntry{
    .text = {.name = "ones",
             .summary = "all numbers are one",
             .formula = "Q = K = V = 1",
             .reference = "none",
             .cost = "O(n d)"},
    .parameters = {},
    .draw =
        [](const Params&, const InputRequest& r) {
          return HeadData<double>{Matrix<double>::Ones(r.nq, r.d), Matrix<double>::Ones(r.nk, r.d),
                                  Matrix<double>::Ones(r.nk, r.dv)};
        },
});

const bool experiment = add(ExperimentEntry{
    .text = {.name = "largest-output",
             .summary = "the largest number of the output",
             .formula = "max |out|",
             .reference = "none",
             .cost = "one call"},
    .parameters = {},
    .metrics = {{"largest", "1", "max_ic |out_ic|"}},
    .headline = {.metric = "largest", .label = "largest output"},
    .run = [](const Task& task,
              Recorder& record) { record.scalar("largest", "1", task.output().cwiseAbs().maxCoeff()); },
});

}  // namespace
}  // namespace attnbench
