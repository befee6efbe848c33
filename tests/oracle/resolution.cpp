// Blocks and clusters at two resolutions. methods.md T.
#include <algorithm>
#include <numeric>

#include "tests/oracle/transcription.hpp"

namespace attnbench::oracle {

namespace {

Index unpadded(Mask mask, Index nk) { return mask.keys < 0 ? nk : std::min(mask.keys, nk); }

bool always(const Params&) { return true; }

// ---- MRA-2

// The mean of rows [begin, end) of X, as row `place` of a table.
void put_mean(const Matrix<double>& X, Index begin, Index end, Table& means, Index place) {
  for (Index l = 0; l < X.cols(); ++l) {
    Real sum = 0;
    for (Index i = begin; i < end; ++i) sum += static_cast<Real>(X(i, l));
    means(place, l) = sum / static_cast<Real>(end - begin);
  }
}

// The first row of each block of b of the rows [begin, end).
void add_begins(Index begin, Index end, Index b, std::vector<Index>& begins) {
  for (Index i = begin; i < end; i += b) begins.push_back(i);
}

Answer mra(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  const Index nq = head.Q.rows(), nk = head.K.rows(), n = unpadded(mask, nk), b = params.integer("block");
  Answer answer{Matrix<double>::Zero(nq, nk), Matrix<double>::Zero(nq, head.V.cols()),
                std::vector<double>(static_cast<size_t>(nq), 1)};
  if (n == 0) return answer;
  Index queries = 0;
  for (Index i = 0; i < nq; ++i) queries += mask.keys < 0 || i + mask.offset < mask.keys;
  if (queries == 0) queries = nq;
  std::vector<Index> of_queries, of_keys;
  add_begins(0, queries, b, of_queries);
  const auto real = static_cast<Index>(of_queries.size());
  add_begins(queries, nq, b, of_queries);
  add_begins(0, n, b, of_keys);
  const auto A = static_cast<Index>(of_queries.size()), B = static_cast<Index>(of_keys.size());
  of_queries.push_back(nq);
  of_keys.push_back(n);
  Table mean_q(A, head.Q.cols()), mean_k(B, head.K.cols());
  for (Index a = 0; a < A; ++a)
    put_mean(head.Q, of_queries[static_cast<size_t>(a)], of_queries[static_cast<size_t>(a + 1)], mean_q, a);
  for (Index c = 0; c < B; ++c)
    put_mean(head.K, of_keys[static_cast<size_t>(c)], of_keys[static_cast<size_t>(c + 1)], mean_k, c);

  std::vector<Index> pairs(static_cast<size_t>(A * B));
  std::iota(pairs.begin(), pairs.end(), Index(0));
  std::stable_sort(pairs.begin(), pairs.end(), [&](Index x, Index y) {
    const bool x_padded = x / B >= real, y_padded = y / B >= real;
    if (x_padded != y_padded) return y_padded;
    return dot(mean_q, x / B, mean_k, x % B) > dot(mean_q, y / B, mean_k, y % B);
  });
  std::vector<bool> refined(pairs.size(), false);
  for (size_t t = 0; t < pairs.size() && static_cast<Index>(t) < params.integer("refine"); ++t)
    refined[static_cast<size_t>(pairs[t])] = true;

  for (Index i = 0; i < nq; ++i) {
    Index a = 0;
    while (of_queries[static_cast<size_t>(a + 1)] <= i) ++a;
    std::vector<Real> logit;
    Real largest = -INFINITY, sum = 0;
    for (Index j = 0; j < n; ++j) {
      const Index c = j / b, size = of_keys[static_cast<size_t>(c + 1)] - of_keys[static_cast<size_t>(c)];
      const bool exact = refined[static_cast<size_t>(a * B + c)];
      logit.push_back(exact ? dot(head.Q, i, head.K, j) : dot(mean_q, a, mean_k, c));
      largest = std::max(largest, logit.back() + (exact ? 0 : std::log(static_cast<Real>(size))));
    }
    for (const Real l : logit) sum += std::exp(l - largest);
    sum += static_cast<Real>(params.real("epsilon"));
    for (Index j = 0; j < n; ++j) {
      const Real weight = std::exp(logit[static_cast<size_t>(j)] - largest) / sum;
      answer.A(i, j) = static_cast<double>(weight);
    }
    for (Index l = 0; l < head.V.cols(); ++l) {
      Real out = 0;
      for (Index j = 0; j < n; ++j)
        out += std::exp(logit[static_cast<size_t>(j)] - largest) / sum * static_cast<Real>(head.V(j, l));
      answer.out(i, l) = static_cast<double>(out);
    }
  }
  return answer;
}

// ---- Multipole

Answer multipole(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Index nk = head.K.rows(), n = unpadded(mask, nk), d = head.K.cols();
  if (n == 0) return normalise_visible(softmax_weights(head), head, mask);
  const GroupsOfRows groups = group(params, state, head.K.topRows(n));
  const Index count = groups.centroids.rows;
  Table means(count, d);
  std::vector<Index> size(static_cast<size_t>(count), 0);
  for (Index j = 0; j < n; ++j) {
    const Index c = groups.nearest[static_cast<size_t>(j)];
    ++size[static_cast<size_t>(c)];
    for (Index l = 0; l < d; ++l) means(c, l) += static_cast<Real>(head.K(j, l));
  }
  for (Index c = 0; c < count; ++c)
    for (Index l = 0; l < d && size[static_cast<size_t>(c)] > 0; ++l)
      means(c, l) /= static_cast<Real>(size[static_cast<size_t>(c)]);
  // Whether query i reads the keys of a cluster one by one.
  std::vector<std::vector<bool>> read;
  for (Index i = 0; i < head.Q.rows(); ++i) {
    std::vector<Index> order;
    for (Index c = 0; c < count; ++c)
      if (size[static_cast<size_t>(c)] > 0) order.push_back(c);
    std::stable_sort(order.begin(), order.end(),
                     [&](Index a, Index b) { return dot(means, a, head.Q, i) > dot(means, b, head.Q, i); });
    read.emplace_back(static_cast<size_t>(count), false);
    Index keys = 0;
    for (const Index c : order) {
      keys += size[static_cast<size_t>(c)];
      if (keys > params.integer("exact")) break;
      read.back()[static_cast<size_t>(c)] = true;
    }
  }
  const Weights weights = exponential(head.Q.rows(), nk, [&](Index i, Index j) {
    if (j >= n) return Real(0);
    const Index c = groups.nearest[static_cast<size_t>(j)];
    return read[static_cast<size_t>(i)][static_cast<size_t>(c)] ? dot(head.Q, i, head.K, j) : dot(means, c, head.Q, i);
  });
  return normalise_visible(weights, head, mask);
}

const bool registered = add({.method = "mra", .attention = mra, .jumps = always}) &&
                        add({.method = "multipole", .attention = multipole, .jumps = always});

}  // namespace

}  // namespace attnbench::oracle
