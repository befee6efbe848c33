// Tools for transcriptions. A method gets one by a file in this folder that adds itself:
//   const bool registered = add({.method = "local", .attention = local});
// Loops over single numbers in extended precision, written from methods.md and from nothing in approximations/.
#pragma once

#include <cmath>
#include <functional>

#include "tests/oracle/oracle.hpp"

namespace attnbench::oracle {

using Real = long double;

struct Table {
  Table(Index row_count, Index column_count)
      : rows(row_count), columns(column_count), entries(static_cast<size_t>(row_count * column_count), 0) {}
  Real& operator()(Index i, Index j) { return entries[static_cast<size_t>(i * columns + j)]; }
  Real operator()(Index i, Index j) const { return entries[static_cast<size_t>(i * columns + j)]; }

  Index rows, columns;
  std::vector<Real> entries;
};

Table table(const Matrix<double>& X);

// weight_ij = value_ij exp(log_ij); magnitude_ij is the sum of the absolute terms that value_ij is the sum of.
struct Weights {
  Weights(Index nq, Index nk) : value(nq, nk), magnitude(nq, nk), log(nq, nk) {}
  Table value, magnitude, log;
};

// One method. Only `attention` is needed.
struct Transcription {
  std::string method;
  Answer (*attention)(const Params&, const Tensors& state, const HeadData<double>&, Mask);
  // Where the method offers a kernel: what oracle::kernel gives.
  Weights (*weights)(const Params&, const Tensors& state, const HeadData<double>&) = nullptr;
  // Whether the output jumps somewhere; null: where `distance_to_jump` is there.
  bool (*jumps)(const Params&) = nullptr;
  // How near the head is to a jump, over what a relative rounding error of eps in its numbers may move it: the least,
  // over all decisions that the method takes, of the difference that decides over that error.
  double (*distance_to_jump)(const Params&, const Tensors& state, const HeadData<double>&, Mask, double eps) = nullptr;
};

bool add(Transcription transcription);

// Of row i of X and row j of Y.
Real dot(const Matrix<double>& X, Index i, const Matrix<double>& Y, Index j);
Real dot(const Table& X, Index i, const Matrix<double>& Y, Index j);
Real dot(const Table& X, Index i, const Table& Y, Index j);
bool sees(Mask mask, Index i, Index j);
bool in_band(Mask mask, Index window, Index i, Index j);

using Set = std::function<bool(Index, Index)>;  // of pairs (query, key)

// A_ij = weight_ij / (sum of weight_il over the l in `normalised`) for the j in `kept`, 0 elsewhere.
Answer normalise(const Weights& weights, const HeadData<double>& head, const Set& normalised, const Set& kept);
Answer normalise_visible(const Weights& weights, const HeadData<double>& head, Mask mask);

// Weights exp(logit), all positive.
template <class Logit>
Weights exponential(Index nq, Index nk, const Logit& logit) {
  Weights weights(nq, nk);
  for (Index i = 0; i < nq; ++i)
    for (Index j = 0; j < nk; ++j) {
      weights.log(i, j) = logit(i, j);
      weights.value(i, j) = weights.magnitude(i, j) = 1;
    }
  return weights;
}

// methods.md 0.
Weights softmax_weights(const HeadData<double>& head);
// weight_ij = sum over features f of exp(of_queries_if + of_keys_jf).
Weights of_exponents(Table of_queries, Table of_keys);
// Linear attention of either kind, before the mask (tests/oracle/linear.cpp).
const Weights& linear_weights(const Params& params, const Tensors& state, const HeadData<double>& head);

// Rows of X in groups by k-means, of methods with parameters `clusters` and `sweeps` and the state "uniforms"
// (tests/oracle/clusters.cpp).
struct GroupsOfRows {
  Table centroids;
  std::vector<Index> nearest;
};
GroupsOfRows group(const Params& params, const Tensors& state, const Matrix<double>& X);

}  // namespace attnbench::oracle
