#include "harness/experiment/experiment.hpp"

#include "harness/measures/attention_matrix.hpp"

namespace attnbench {

double matrix_bytes(const Cell& cell) {
  const auto& shape = cell.problem.shape;
  return 8.0 * static_cast<double>(shape.nq) * static_cast<double>(shape.nk);
}

void Recorder::scalar(std::string metric, std::string unit, double value) {
  measurements_.push_back({std::move(metric), std::move(unit), {}, {value}});
}

void Recorder::array(std::string metric, std::string unit, std::vector<Index> shape, std::vector<double> values) {
  measurements_.push_back({std::move(metric), std::move(unit), std::move(shape), std::move(values)});
}

namespace {
// The head that a fitted method learns from; nullopt for other methods.
std::optional<HeadData<double>> calibration_of(const Cell& cell, Index replicate, Index head) {
  if (!find<MethodEntry>(cell.method.name()).fitted(cell.method)) return std::nullopt;
  return draw_cell_head(cell, replicate, head, Purpose::calibration);
}

template <class T>
std::unique_ptr<Approximation<T>> make(const Cell& cell, Index head, Index draw,
                                       const std::optional<HeadData<double>>& calibration, const Tensors* state) {
  std::optional<Head<double>> view;
  if (calibration) view.emplace(calibration->view());
  return make_approximation<T>({.shape = cell.problem.shape,
                                .params = cell.method,
                                .streams = Streams(cell.seed),
                                .head = head,
                                .replicate = draw,
                                .calibration = view ? &*view : nullptr,
                                .state = state});
}
}  // namespace

MethodDraws::MethodDraws(const Cell& cell, Index replicate, Index head) : cell_(cell), head_(head) {
  const auto calibration = calibration_of(cell, replicate, head);
  if (!calibration) return;
  const Tensors first = make<double>(cell, head, 0, calibration, nullptr)->state(),
                second = make<double>(cell, head, 1, calibration, nullptr)->state();
  for (const auto& [name, tensor] : first)
    if (second.contains(name) && second.at(name) == tensor) fitted_[name] = tensor;
}

std::unique_ptr<Approximation<double>> MethodDraws::operator()(Index draw) const {
  return make<double>(cell_, head_, draw, std::nullopt, fitted_.empty() ? nullptr : &fitted_);
}

template <class T>
std::unique_ptr<Approximation<T>> Task::method(Index head, Index draw) const {
  if (doing) doing("drawing");
  auto drawn = make<T>(cell, head, draw, calibration_of(cell, replicate, head), nullptr);
  if (doing) doing("measuring");
  return drawn;
}

std::optional<KernelTheory> Task::theory(Index head) const {
  const auto calibration = calibration_of(cell, replicate, head);
  std::optional<Head<double>> view;
  if (calibration) view.emplace(calibration->view());
  return find<MethodEntry>(cell.method.name()).theory(cell.method, cell.problem.shape, view ? &*view : nullptr);
}

template std::unique_ptr<Approximation<float>> Task::method<float>(Index, Index) const;
template std::unique_ptr<Approximation<double>> Task::method<double>(Index, Index) const;

namespace {
template <class T>
Task::Applied apply(const Task& task) {
  Task::Applied::Instance<T> drawn{task.exact.get(task.cell, task.replicate)->head.template cast<T>(),
                                   task.method<T>(0, task.replicate)};
  Matrix<T> output(drawn.head.Q.rows(), drawn.head.V.cols());
  drawn.method->attend(drawn.head.view(), task.cell.problem.shape.mask, task.context, output);
  require_finite<T>(output, "output");
  return {std::move(drawn), output.template cast<double>(), {}};
}
}  // namespace

Task::Applied Task::applied() const {
  const auto claims = find<MethodEntry>(cell.method.name()).claims(cell.method, cell.problem.shape);
  if (!claims.no_attention_matrix.empty())
    throw Skip(cell.method.spec() + " has no attention matrix: " + claims.no_attention_matrix);
  Applied made = applied_without_matrix();
  made.attention = std::visit(
      [&](const auto& drawn) {
        return attention_matrix(*drawn.method, drawn.head.view(), cell.problem.shape.mask, context);
      },
      made.instance);
  return made;
}

Task::Applied Task::applied_without_matrix() const {
  return in_float(cell.problem.shape.precision) ? apply<float>(*this) : apply<double>(*this);
}

double cell_bytes(const Cell& cell) {
  const auto& shape = cell.problem.shape;
  const auto rows = static_cast<double>(shape.nq + shape.nk), widths = static_cast<double>(shape.d + shape.dv);
  // Counts the head drawn in double, the head in the cell's precision, and the output.
  const double heads = 16 * rows * widths * static_cast<double>(cell.problem.heads);
  return heads + find<ExperimentEntry>(cell.experiment.name()).bytes(cell);
}

Better better_of(const std::string& metric, const std::string& unit) {
  for (const std::string& name : catalogue(ExperimentEntry::plural).names())
    for (const Metric& one : find<ExperimentEntry>(name).metrics)
      if (one.name == metric && one.better != Better::unstated) return one.better;
  return better_by_unit(metric, unit);
}

template class Registry<ExperimentEntry>;

}  // namespace attnbench
