// A Performer as linear attention with exponentials of wider keys. Its features are exp(W x - |x|^2/2) up to a factor.
// With queries and keys of m dimensions, q' = W q - |q|^2/2 and k' = W k - |k|^2/2, elementwise exponentials therefore
// give the same attention. A linear layer gives W k without the norm (norms=false): the same attention if all keys
// have the same norm.
#include "harness/experiment/experiment.hpp"
#include "harness/linalg/products.hpp"

namespace attnbench::wider_keys_experiment {
namespace {

void refuse_what_has_other_features(const Cell& cell) {
  const Params& method = cell.method;
  if (method.name() != "performer" || method.text("features") != "positive")
    throw Misuse("wider-keys with --method " + method.spec() + ": expected a performer with features=positive");
}

// W x, minus |x|^2/2 if `norms`; b x m.
Matrix<double> widened(Context& context, const Matrix<double>& X, const Matrix<double>& W, bool norms) {
  Matrix<double> wide(X.rows(), W.rows());
  multiply_transposed<double>(context, X, W, wide);
  if (norms) wide.colwise() -= X.rowwise().squaredNorm() / 2;
  return wide;
}

void measure(const Task& task, Recorder& record) {
  const auto head = draw_cell_head(task.cell, task.replicate, 0, Purpose::measured);
  const auto& shape = task.cell.problem.shape;
  const auto method = task.method<double>(0, task.replicate);
  Matrix<double> out(shape.nq, shape.dv), wide_out(shape.nq, shape.dv);
  method->attend(head.view(), shape.mask, task.context, out);
  const Matrix<double> W = method->state().at("projection");
  const bool norms = task.cell.experiment.flag("norms");
  const HeadData<double> wide{widened(task.context, head.Q, W, norms), widened(task.context, head.K, W, norms), head.V};
  Shape wide_shape = shape;
  wide_shape.d = W.rows();
  const Params linear("methods", "linear:features=exp");
  make_approximation<double>({.shape = wide_shape, .params = linear, .streams = Streams(task.cell.seed)})
      ->attend(wide.view(), shape.mask, task.context, wide_out);
  record.scalar("distance", "1", (wide_out - out).norm() / out.norm());
}

const bool registered = add(ExperimentEntry{
    .text =
        {.name = "wider-keys",
         .summary = "a Performer against linear attention with exponentials of keys as wide as its features",
         .formula =
             "|out' - out| / |out|, out' = linear attention with exp(x'), x' = W x - |x|^2/2 or, without norms, W x",
         .reference = "Su 2021, kexue.fm/archives/8338",
         .cost = "two calls of linear attention"},
    .parameters = {Parameter::flag("norms", true, "x' has -|x|^2/2; false: what a linear layer gives")},
    .metrics = {{"distance", "1", "|out' - out|_F / |out|_F", {}, "|A' - A| / |A|", "log10"}},
    .headline = {.metric = "distance", .label = "distance to the Performer"},
    .check = refuse_what_has_other_features,
    .run = measure,
});

}  // namespace
}  // namespace attnbench::wider_keys_experiment
