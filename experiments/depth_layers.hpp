// The layers of the experiment `depth`: their weights, the tokens that enter, and the methods in them.
#pragma once

#include <functional>
#include <memory>

#include "harness/experiment/experiment.hpp"
#include "harness/inputs/transformer.hpp"

namespace attnbench {

class DepthLayers {
 public:
  using Method = std::shared_ptr<const Approximation<double>>;
  // Which method a head has, given its Q and K (scaled) and V.
  using Choose = std::function<Method(Index layer, Index head, const HeadData<double>& drawn)>;

  // Throws Skip if layers cannot be composed: nq != nk, several heads of a random input, more layers than the
  // model has, or another precision than f64.
  explicit DepthLayers(const Task& task);

  const Shape& shape() const { return shape_; }
  Index path() const { return path_; }  // the head whose attention matrices are composed

  // X_0 ... X_L of the measured or of the calibration tokens.
  std::vector<Matrix<double>> states(Context& context, LayerParts parts, Purpose purpose, const Choose& choose) const;
  // Softmax in every layer and head.
  Choose exact() const;
  // The cell's method, drawn for that layer and head; calibration: the head that it learns from, or null.
  Method method(Index layer, Index head, const HeadData<double>* calibration) const;

 private:
  EmbeddedTokens tokens(Purpose purpose) const;

  const Task& task_;
  Shape shape_;
  Index path_ = 0;
  std::shared_ptr<const Transformer<double>> transformer_;
  Method softmax_;
};

}  // namespace attnbench
