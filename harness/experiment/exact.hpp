// What is exact for one input: computed once for all the cells that share it.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>

#include "harness/experiment/cell.hpp"

namespace attnbench {

class Exact {
 public:
  Exact(const Cell& cell, Index replicate);

  const HeadData<double> head;  // scaled
  Matrix<double> output;        // nq x dv
  // nq x nk, made when it is first asked for; safe to call from several threads.
  const Matrix<double>& attention() const;

 private:
  Shape shape_;
  mutable std::once_flag once_;
  mutable Matrix<double> attention_;
};

// Keeps the last few; safe to call from several threads, which then wait for the one that computes.
class ExactCache {
 public:
  std::shared_ptr<const Exact> get(const Cell& cell, Index replicate);
  // Numbers that some cells of one input share: computed by the first that asks under that name.
  std::vector<double> remembered(const Cell& cell, Index replicate, const std::string& name,
                                 const std::function<void(std::vector<double>&)>& compute);

 private:
  struct Slot {
    std::string key;
    std::shared_ptr<std::once_flag> once = std::make_shared<std::once_flag>();
    std::shared_ptr<std::shared_ptr<const Exact>> value = std::make_shared<std::shared_ptr<const Exact>>();
  };
  struct Numbers {
    std::once_flag once;
    std::vector<double> values;
  };
  std::mutex mutex_;
  std::list<Slot> slots_;
  std::map<std::string, std::shared_ptr<Numbers>> numbers_;
};

}  // namespace attnbench
