// What is exact for one input: computed once for all the cells that share it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "harness/experiment/cell.hpp"
#include "harness/inputs/last_read.hpp"

namespace attnbench {

class Exact {
 public:
  Exact(const Cell& cell, Index replicate);

  const HeadData<double> head;  // scaled
  Matrix<double> output;        // nq x dv
  // nq x nk, made when it is first asked for.
  const Matrix<double>& attention() const;

 private:
  Shape shape_;
  mutable std::optional<Matrix<double>> attention_;
};

// Keeps the last ones. Of one thread: a worker does one unit after the other, on its main thread.
class ExactCache {
 public:
  std::shared_ptr<const Exact> get(const Cell& cell, Index replicate);
  // Numbers that some cells of one input share: computed by the first that asks under that name.
  const std::vector<double>& remembered(const Cell& cell, Index replicate, const std::string& name,
                                        const std::function<std::vector<double>()>& compute);

 private:
  // Units come by input, until a worker takes single units of two inputs in turns at the end of a run.
  LastRead<std::shared_ptr<const Exact>, 2> exact_;
  std::map<std::string, std::vector<double>> numbers_;
};

}  // namespace attnbench
