// Arithmetic on measurements, such as "1 - mass_recall / random.mass_recall": how a statement computes its numbers from
// metrics, replicate by replicate.
//   numbers     2, 0.5, 1e-3
//   names       metrics and sizes of the statement's own cells; random.mass_recall: of the selection `random`
//   operators   + - * / ^ and brackets; 0 / 0 is 1, as two errors of 0 are equal
//   functions   abs, sqrt, cbrt, log, log2, exp of one number; min, max, mod of two
//   over cells  least, greatest, mean, sum, rank_correlation, exponent, crossing and those that other files register
//               (cells_function.hpp): of an expression in each cell, sum(kept * weight), where its selections have
//               several cells, which go together in order
//   arrays      at(metric, i): the element i of an array, the last for -1; elements(metric) within a function over
//   cells:
//               all elements, as if each were a cell
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/statistics/estimate.hpp"

namespace attnbench {

class Expression {
 public:
  // A name in the expression.
  struct Reference {
    std::string selection;             // empty: the statement's own cells
    std::string name;                  // of a metric or a size
    bool several_cells = false;        // within a function over cells
    std::optional<long> element = {};  // of an array; -1: the last
    bool elements = false;             // all elements of an array, in place of cells
  };
  // The numbers of a reference, by replicate, for each of its cells. Numbers that nothing draws, such as sizes, have
  // one replicate, 0, and go with every replicate of other numbers.
  using Read = std::function<std::vector<Samples>(const Reference&)>;

  // Throws Misuse for a text that is not an expression, with the place in it.
  explicit Expression(const std::string& text);

  const std::string& text() const { return text_; }
  const std::vector<Reference>& references() const { return references_; }
  // Replicates that some name lacks are left out.
  Samples value(const Read& read) const;

  struct Node;

 private:
  std::string text_;
  std::vector<Reference> references_;  // before root_, whose making fills it
  std::shared_ptr<const Node> root_;
};

}  // namespace attnbench
