// The exact results for one input, computed once for all the cells that share it.
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
  // nq x nk, computed on the first call.
  const Matrix<double>& attention() const;

 private:
  Shape shape_;
  mutable std::optional<Matrix<double>> attention_;
};

// Keeps the results of the last inputs. Not thread-safe: a worker runs one unit at a time, on its main thread.
class ExactCache {
 public:
  std::shared_ptr<const Exact> get(const Cell& cell, Index replicate);
  // Numbers that some cells of one input share. The first call under a name computes them.
  const std::vector<double>& remembered(const Cell& cell, Index replicate, const std::string& name,
                                        const std::function<std::vector<double>()>& compute);

 private:
  // Two, because at the end of a run a worker may alternate between units of two inputs. Before that, units come sorted
  // by input.
  LastRead<std::shared_ptr<const Exact>, 2> exact_;
  std::map<std::string, std::vector<double>> numbers_;
};

}  // namespace attnbench
