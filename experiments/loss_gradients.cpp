#include "experiments/loss_gradients.hpp"

namespace attnbench {

Matrix<double> loss_weights(const Task& task, Index head) {
  const Shape& shape = task.cell.problem.shape;
  Generator generator = Streams(task.cell.seed).stream("loss", shape.nq, shape.dv, head, task.replicate);
  return standard_normal(generator, shape.nq, shape.dv);
}

template <class T>
HeadData<T> loss_gradients(const Task& task, const Approximation<T>& method, const HeadData<T>& head,
                           const Matrix<T>& G) {
  const Differentiable<T>* differentiable = method.differentiable();
  if (!differentiable) throw Skip(task.cell.method.spec() + " has no gradients here");
  const Mask& mask = task.cell.problem.shape.mask;
  Matrix<T> out(head.Q.rows(), head.V.cols());
  std::vector<T> saved;
  HeadData<T> gradients{Matrix<T>(head.Q.rows(), head.Q.cols()), Matrix<T>(head.K.rows(), head.K.cols()),
                        Matrix<T>(head.V.rows(), head.V.cols())};
  differentiable->forward(head.view(), mask, task.context, out, saved);
  differentiable->backward(head.view(), mask, out, saved, G, task.context, {gradients.Q, gradients.K, gradients.V});
  return gradients;
}

template HeadData<float> loss_gradients(const Task&, const Approximation<float>&, const HeadData<float>&,
                                        const Matrix<float>&);
template HeadData<double> loss_gradients(const Task&, const Approximation<double>&, const HeadData<double>&,
                                         const Matrix<double>&);

}  // namespace attnbench
