#include "harness/experiment/exact.hpp"

#include "harness/core/approximation.hpp"
#include "harness/measures/attention_matrix.hpp"

namespace attnbench {

namespace {
std::unique_ptr<Approximation<double>> softmax(const Shape& shape) {
  const Params params("methods", "softmax");
  return make_approximation<double>({.shape = shape, .params = params, .streams = Streams(0)});  // draws nothing
}
}  // namespace

Exact::Exact(const Cell& cell, Index replicate)
    : head(draw_cell_head(cell, replicate, 0, Purpose::measured)), shape_(cell.problem.shape) {
  Context context;
  output.resize(head.Q.rows(), head.V.cols());
  softmax(shape_)->attend(head.view(), shape_.mask, context, output);
}

const Matrix<double>& Exact::attention() const {
  if (attention_) return *attention_;
  Context context;
  // Row by row this costs n^2 d. Calling attend with V = I, which is proved equal, would cost n^3.
  Matrix<double> A(head.Q.rows(), head.K.rows());
  softmax(shape_)->rows()->attention_rows(head.view(), shape_.mask, 0, context, A);
  require_finite<double>(A, "exact attention matrix");
  return attention_.emplace(std::move(A));
}

namespace {
std::string key_of(const Cell& cell, Index replicate) {
  std::string key = cell.input_key() + " replicate=" + std::to_string(replicate);
  for (const Need& need : needs_of(cell.method)) key += " " + need.name + " " + words_of(need);
  return key;
}
}  // namespace

std::shared_ptr<const Exact> ExactCache::get(const Cell& cell, Index replicate) {
  return exact_.get(key_of(cell, replicate), [&] { return std::make_shared<const Exact>(cell, replicate); });
}

const std::vector<double>& ExactCache::remembered(const Cell& cell, Index replicate, const std::string& name,
                                                  const std::function<std::vector<double>()>& compute) {
  const std::string key = key_of(cell, replicate) + " " + name;
  const auto found = numbers_.find(key);
  return found != numbers_.end() ? found->second : numbers_.emplace(key, compute()).first->second;
}

}  // namespace attnbench
