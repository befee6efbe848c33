#include "harness/runner/experiment.hpp"

#include "harness/measures/attention_matrix.hpp"

namespace attnbench {

void Recorder::scalar(std::string metric, std::string unit, double value) {
  measurements_.push_back({std::move(metric), std::move(unit), {}, {value}});
}

void Recorder::array(std::string metric, std::string unit, std::vector<Index> shape, std::vector<double> values) {
  measurements_.push_back({std::move(metric), std::move(unit), std::move(shape), std::move(values)});
}

template <class T>
std::unique_ptr<Approximation<T>> Task::method(Index head, Index draw) const {
  std::optional<HeadData<double>> calibration;
  std::optional<Head<double>> view;
  if (find<MethodEntry>(cell.method.name()).fitted(cell.method)) {
    calibration = draw_cell_head(cell, replicate, head, Purpose::calibration);
    view.emplace(calibration->view());
  }
  return make_approximation<T>({.shape = cell.problem.shape,
                                .params = cell.method,
                                .streams = Streams(cell.seed),
                                .head = head,
                                .replicate = draw,
                                .calibration = view ? &*view : nullptr});
}

template std::unique_ptr<Approximation<float>> Task::method<float>(Index, Index) const;
template std::unique_ptr<Approximation<double>> Task::method<double>(Index, Index) const;

namespace {
template <class T>
Task::Applied apply(const Task& task) {
  const auto exact = task.exact.get(task.cell, task.replicate);
  const HeadData<T> head = exact->head.cast<T>();
  const auto method = task.method<T>(0, task.replicate);
  const auto& mask = task.cell.problem.shape.mask;
  Matrix<T> output(head.Q.rows(), head.V.cols());
  method->attend(head.view(), mask, task.context, output);
  require_finite<T>(output, "output");
  return {attention_matrix(*method, head.view(), mask, task.context), output.template cast<double>()};
}
}  // namespace

Task::Applied Task::applied() const {
  return cell.problem.shape.precision == Precision::f32 ? apply<float>(*this) : apply<double>(*this);
}

}  // namespace attnbench
