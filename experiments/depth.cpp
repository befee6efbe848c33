// How tokens, and the error of an approximation, evolve through layers: composed attention A_L ... A_1, with or without
// skip connections, feed-forward and norms. methods.md I; Dong et al. 2021, arXiv:2103.03404; Choromanski et al. 2020,
// arXiv:2009.14794, Fig. 14.
//
// The tokens and layers. The input `model` has a transformer and gives both: embedded text, the weights of its first
// layers, all heads. For any other input X_0 = V, and every layer has one head. Its weights, and those of a
// feed-forward network of width 4 dv, are independent N(0, 1 / fan in), drawn by names and replicate: the same for
// every method. Every layer and head has its own draw of the method. A fitted method learns from the calibration tokens
// in that layer and head of the exact transformer.
//
// The exact states come from the same weights with softmax in every layer.
#include <cmath>
#include <map>

#include "experiments/depth_layers.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/linalg/lapack.hpp"
#include "harness/linalg/products.hpp"
#include "harness/measures/attention_matrix.hpp"
#include "harness/measures/collapse.hpp"
#include "harness/measures/spectrum.hpp"

namespace attnbench::depth_experiment {
namespace {

constexpr Index largest_dense = 4096;

using States = std::vector<Matrix<double>>;

// The attention matrices of one head through the layers, and their product.
class Path {
 public:
  void add(const Matrix<double>& A, Context& context) {
    coefficients_.push_back(dobrushin(A));
    bounds_.push_back(coefficients_.back() * (bounds_.empty() ? 1 : bounds_.back()));
    if (product_.size() == 0) {
      product_ = A;
    } else {
      Matrix<double> next(A.rows(), A.cols());
      multiply<double>(context, A, product_, next);
      product_ = std::move(next);
    }
    const auto sigma = singular_values(product_);
    ranks_.push_back(static_cast<double>(numerical_rank(sigma, rank_tolerance(sigma, A.rows(), A.cols()))));
    effective_ranks_.push_back(effective_rank(sigma));
    products_.push_back(dobrushin(product_));
  }

  void record(Recorder& to) && {
    const auto layers = static_cast<Index>(coefficients_.size());
    to.array("dobrushin", "1", {layers}, std::move(coefficients_));
    to.array("dobrushin_product", "1", {layers}, std::move(products_));
    to.array("dobrushin_bound", "1", {layers}, std::move(bounds_));
    to.array("product_numerical_rank", "1", {layers}, std::move(ranks_));
    to.array("product_effective_rank", "1", {layers}, std::move(effective_ranks_));
  }

 private:
  Matrix<double> product_;
  std::vector<double> coefficients_, products_, bounds_, ranks_, effective_ranks_;
};

std::vector<double> of_each(const States& states, double (*measure)(const Matrix<double>&)) {
  std::vector<double> values;
  for (const auto& X : states) values.push_back(measure(X));
  return values;
}

// The relative error after each layer. X_0 is left out: it is the same for both.
std::vector<double> errors(const States& states, const States& exact) {
  std::vector<double> values;
  for (size_t l = 1; l < states.size(); ++l) {
    const double size = exact[l].stableNorm(), difference = (states[l] - exact[l]).stableNorm();
    if (size == 0 && difference > 0)
      throw Skip("the exact hidden state after layer " + std::to_string(l) + " is 0: no error is relative to it");
    values.push_back(size > 0 ? difference / size : 0);
  }
  return values;
}

void measure(const Task& task, Recorder& record) {
  const DepthLayers layers(task);
  const Params& options = task.cell.experiment;
  const LayerParts parts{options.flag("skip"), options.flag("feed_forward"), options.flag("norm")};
  const bool first_only = options.text("approximate") == "first";
  const std::string no_matrix =
      find<MethodEntry>(task.cell.method.name()).claims(task.cell.method, layers.shape()).no_attention_matrix;
  const bool matrices = options.flag("matrix") && no_matrix.empty();
  if (options.flag("matrix") && !no_matrix.empty())
    record.note(task.cell.method.spec() + " has no attention matrix (" + no_matrix +
                "): Dobrushin coefficients and ranks are left out");
  if (matrices && layers.shape().nk > largest_dense)
    throw Skip("products of attention matrices are computed up to n = " + std::to_string(largest_dense) +
               "; give matrix=false");

  Context in_double(task.context.threads());  // the exact states are never rounded
  const States exact = layers.states(in_double, parts, Purpose::measured, layers.exact());
  // The tokens that a fitted method learns from, by layer and head.
  std::map<std::pair<Index, Index>, HeadData<double>> calibration;
  if (find<MethodEntry>(task.cell.method.name()).fitted(task.cell.method))
    layers.states(in_double, parts, Purpose::calibration, [&](Index layer, Index head, const HeadData<double>& drawn) {
      calibration[{layer, head}] = drawn;
      return layers.exact()(layer, head, drawn);
    });
  Path path;
  const States states = layers.states(
      task.context, parts, Purpose::measured, [&](Index layer, Index head, const HeadData<double>& drawn) {
        const auto found = calibration.find({layer, head});
        auto method = first_only && layer > 0
                          ? layers.exact()(layer, head, drawn)
                          : layers.method(layer, head, found == calibration.end() ? nullptr : &found->second);
        if (matrices && head == layers.path())
          path.add(attention_matrix(*method, drawn.view(), layers.shape().mask, task.context), task.context);
        return method;
      });

  const auto count = static_cast<Index>(states.size());
  auto residuals = of_each(states, relative_residual_composite);
  auto error = errors(states, exact);
  record.scalar("final_residual", "1", residuals.back());
  record.scalar("final_output_error", "1", error.back());
  record.array("residual_composite", "1", {count}, std::move(residuals));
  record.array("residual_frobenius", "1", {count}, of_each(states, relative_residual_frobenius));
  record.array("output_error", "1", {count - 1}, std::move(error));
  if (matrices) std::move(path).record(record);
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "depth",
             .summary = "what composed attention layers do to tokens, and to an approximation's error",
             .formula = "res(X) = X - 1 mean(X)^T after every layer, X_l against exact X_l, A_l ... A_1",
             .reference = "Dong et al. 2021, arXiv:2103.03404; Choromanski et al. 2020, arXiv:2009.14794, Fig. 14",
             .cost = "that of the method and of softmax, layers x heads; matrix=true: O(layers n^3), n up to 4096"},
    .parameters = {Parameter::integer("layers", 4, "how many, each with weights of its own; of a model, its first", 1,
                                      1000),
                   Parameter::flag("skip", true, "X + branch; false: the branch alone"),
                   Parameter::flag("feed_forward", true, "a two-layer GELU network after attention"),
                   Parameter::flag("norm", true, "LayerNorm before attention and before the network"),
                   Parameter::choice("approximate", "all", "the layers that have the method; the others have softmax",
                                     {"all", "first"}),
                   Parameter::flag("matrix", true,
                                   "Dobrushin coefficients and ranks of the product of attention matrices")},
    .metrics = {{"residual_composite",
                 "1",
                 "|res(X_l)| / |X_l|, l = 0..L, in the norm sqrt(|X|_1 |X|_inf)",
                 {},
                 "|res(X)| / |X|  (composite norm)",
                 "log10"},
                {"residual_frobenius", "1", "the same in the Frobenius norm"},
                {"final_residual", "1", "residual_composite after the last layer"},
                {"output_error", "1", "|X_l - X_l of softmax|_F / |X_l of softmax|_F, l = 1..L", Better::less,
                 "|X' - X| / |X|  (Frobenius)", "log10"},
                {"final_output_error", "1", "output_error after the last layer", Better::less},
                {"dobrushin", "1", "1/2 max_ij |a_i - a_j|_1 of each layer's A (one head: the input's)"},
                {"dobrushin_product",
                 "1",
                 "the same of A_l ... A_1, l = 1..L",
                 {},
                 "Dobrushin coefficient of A_l ... A_1",
                 "log10"},
                {"dobrushin_bound", "1", "the product of the coefficients so far: at least dobrushin_product"},
                {"product_numerical_rank", "1", "of A_l ... A_1: singular values above sigma_1 n 2.2e-16"},
                {"product_effective_rank",
                 "1",
                 "of A_l ... A_1: exp of the entropy of sigma / sum sigma",
                 {},
                 "effective rank of A_l ... A_1",
                 "log10"}},
    .headline = {.metric = "final_output_error", .label = "error of the last hidden state (relative, Frobenius)"},
    .bytes = [](const Cell& cell) { return cell.experiment.flag("matrix") ? 4 * matrix_bytes(cell) : 0; },
    .work = [](const Cell& cell) { return work_of_layers(cell, cell.experiment.integer("layers")); },
    .run = measure,
});

}  // namespace
}  // namespace attnbench::depth_experiment
