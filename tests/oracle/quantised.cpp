// Quantised keys, values and queries. methods.md R.
#include <algorithm>
#include <map>
#include <stdexcept>

#include "tests/oracle/transcription.hpp"

namespace attnbench::oracle {

namespace {

Index unpadded(Mask mask, Index nk) { return mask.keys < 0 ? nk : std::min(mask.keys, nk); }

bool always(const Params&) { return true; }

Real sign(Real x) { return x < 0 ? -1 : 1; }

Real length(const Table& X, Index row) { return std::sqrt(dot(X, row, X, row)); }

constexpr Real half_pi = 1.570796326794896619231321691639751442L;

// ---- QJL

// Adds sqrt(pi/2) |x_j| / m sum_i w_i sign(w_i.x_j) to row j, x the rows of X.
void add_sketches(const Table& X, const Matrix<double>& W, Table& estimates) {
  const Real m = static_cast<Real>(W.rows());
  for (Index j = 0; j < X.rows; ++j)
    for (Index i = 0; i < W.rows(); ++i) {
      const Real of_sign = std::sqrt(half_pi) * length(X, j) / m * sign(dot(X, j, W, i));
      for (Index l = 0; l < X.columns; ++l) estimates(j, l) += of_sign * static_cast<Real>(W(i, l));
    }
}

Weights of_keys(const Table& estimates, const HeadData<double>& head) {
  return exponential(head.Q.rows(), head.K.rows(), [&](Index i, Index j) { return dot(estimates, j, head.Q, i); });
}

Weights qjl_weights(const Params&, const Tensors& state, const HeadData<double>& head) {
  Table estimates(head.K.rows(), head.K.cols());
  add_sketches(table(head.K), state.at("w"), estimates);
  return of_keys(estimates, head);
}

Answer qjl(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  return normalise_visible(qjl_weights(params, state, head), head, mask);
}

// ---- TurboQuant

Real density(Real x) { return std::exp(-x * x / 2) / std::sqrt(4 * half_pi); }
Real below(Real x) { return std::erfc(-x / std::sqrt(Real(2))) / 2; }

// The levels of least squared error for N(0, 1): each the mean of the numbers between the midpoints beside it.
std::vector<Real> levels_of(Index bits) {
  std::vector<Real> levels;
  const Index count = Index{1} << bits;
  for (Index l = 0; l < count; ++l) levels.push_back(6 * (static_cast<Real>(l) + 0.5L) / static_cast<Real>(count) - 3);
  for (int sweep = 0; sweep < 20000; ++sweep) {
    const std::vector<Real> old = levels;
    for (size_t l = 0; l < levels.size(); ++l) {
      const Real low = l == 0 ? -INFINITY : (old[l - 1] + old[l]) / 2;
      const Real high = l + 1 == levels.size() ? INFINITY : (old[l] + old[l + 1]) / 2;
      levels[l] = (density(low) - density(high)) / (below(high) - below(low));
    }
    Real moved = 0;
    for (size_t l = 0; l < levels.size(); ++l) moved = std::max(moved, std::abs(levels[l] - old[l]));
    if (moved < 1e-17L) break;
  }
  return levels;
}

Weights turboquant_weights(const Params& params, const Tensors& state, const HeadData<double>& head) {
  const auto& rotation = state.at("rotation");
  const Index n = head.K.rows(), d = head.K.cols();
  const Real root = std::sqrt(static_cast<Real>(d));
  const bool two_stages = params.flag("residual");
  static std::map<Index, std::vector<Real>> all;
  auto& levels = all[params.integer("bits") - two_stages];
  if (levels.empty()) levels = levels_of(params.integer("bits") - two_stages);
  const Table keys = table(head.K);
  Table estimates(n, d), rest(n, d);
  for (Index j = 0; j < n; ++j) {
    const Real norm = length(keys, j);
    for (Index r = 0; r < d && norm > 0; ++r) {
      const Real x = root * dot(keys, j, rotation, r) / norm;
      Real nearest = levels.front();
      for (const Real level : levels)
        if (std::abs(x - level) <= std::abs(x - nearest)) nearest = level;
      for (Index l = 0; l < d; ++l) estimates(j, l) += norm / root * nearest * static_cast<Real>(rotation(r, l));
    }
    if (params.text("scale") == "eden" && norm > 0) {
      Real along = 0;
      for (Index l = 0; l < d; ++l) along += keys(j, l) * estimates(j, l);
      for (Index l = 0; l < d; ++l) estimates(j, l) *= norm * norm / along;
    }
    for (Index l = 0; l < d; ++l) rest(j, l) = keys(j, l) - estimates(j, l);
  }
  if (two_stages) add_sketches(rest, state.at("w"), estimates);
  return of_keys(estimates, head);
}

Answer turboquant(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  return normalise_visible(turboquant_weights(params, state, head), head, mask);
}

// ---- Rounding to a grid

// The number of the scale that an entry shares with others.
using Shares = std::function<Index(Index row, Index column)>;

// A grid that begins at the least number.
void round_from_least(Matrix<double>& X, Index begin, Index end, Index bits, const Shares& scale_of) {
  std::map<Index, std::pair<Real, Real>> ends;
  for (Index i = begin; i < end; ++i)
    for (Index l = 0; l < X.cols(); ++l) {
      const auto x = static_cast<Real>(X(i, l));
      auto& [least, greatest] = ends.emplace(scale_of(i - begin, l), std::pair(x, x)).first->second;
      least = std::min(least, x);
      greatest = std::max(greatest, x);
    }
  for (Index i = begin; i < end; ++i)
    for (Index l = 0; l < X.cols(); ++l) {
      const auto [least, greatest] = ends[scale_of(i - begin, l)];
      const Real step = (greatest - least) / (std::exp2(static_cast<Real>(bits)) - 1);
      if (step > 0)
        X(i, l) = static_cast<double>(least + step * std::nearbyint((static_cast<Real>(X(i, l)) - least) / step));
    }
}

void round_rows(Matrix<double>& X, Index begin, Index end, Index bits, const Shares& scale_of, bool zero) {
  if (zero) return round_from_least(X, begin, end, bits, scale_of);
  std::map<Index, Real> largest;
  for (Index i = begin; i < end; ++i)
    for (Index l = 0; l < X.cols(); ++l) {
      Real& most = largest[scale_of(i - begin, l)];
      most = std::max(most, std::abs(static_cast<Real>(X(i, l))));
    }
  const Real steps = std::exp2(static_cast<Real>(bits - 1)) - 1;
  for (Index i = begin; i < end; ++i)
    for (Index l = 0; l < X.cols(); ++l) {
      const Real step = largest[scale_of(i - begin, l)] / steps;
      X(i, l) = step > 0 ? static_cast<double>(step * std::nearbyint(static_cast<Real>(X(i, l)) / step)) : 0;
    }
}

// Rows of X times R, or times R^T.
void rotate(Matrix<double>& X, const Matrix<double>& R, bool back) {
  for (Index i = 0; i < X.rows(); ++i) {
    std::vector<Real> row(static_cast<size_t>(X.cols()), 0);
    for (Index l = 0; l < X.cols(); ++l)
      for (Index c = 0; c < X.cols(); ++c)
        row[static_cast<size_t>(l)] += static_cast<Real>(X(i, c)) * static_cast<Real>(back ? R(c, l) : R(l, c));
    for (Index l = 0; l < X.cols(); ++l) X(i, l) = static_cast<double>(row[static_cast<size_t>(l)]);
  }
}

HeadData<double> rounded(const Params& params, const Tensors& state, HeadData<double> head, Mask mask) {
  const bool rotated = params.text("rotate") != "none", zero = params.flag("zero");
  const Index group = params.integer("group") > 0 ? params.integer("group") : 1 << 20;
  const auto turn = [&](Matrix<double>& X, bool back) {
    if (rotated) rotate(X, state.at("grid_rotation"), back);
  };
  const Index n = unpadded(mask, head.K.rows()), nq = head.Q.rows(), block = params.integer("block");
  const auto& granularity = params.text("granularity");
  const Shares of_others = [&](Index row, Index column) {
    if (granularity == "tensor") return Index(0);
    return granularity == "block" ? row / block : row * 4096 + column / group;
  };
  const Shares of_keys = [&](Index row, Index column) {
    return granularity == "channel" ? row / group * 4096 + column : of_others(row, column);
  };
  std::vector<double> mean(static_cast<size_t>(head.K.cols()), 0);
  for (Index l = 0; l < head.K.cols() && n > 0 && params.flag("smooth"); ++l) {
    Real sum = 0;
    for (Index j = 0; j < n; ++j) sum += static_cast<Real>(head.K(j, l));
    mean[static_cast<size_t>(l)] = static_cast<double>(sum / static_cast<Real>(n));
  }
  const auto add_mean = [&](double factor) {
    for (Index j = 0; j < n; ++j)
      for (Index l = 0; l < head.K.cols(); ++l) head.K(j, l) += factor * mean[static_cast<size_t>(l)];
  };
  add_mean(-1);
  turn(head.K, false);
  round_rows(head.K, 0, n, params.integer("bits"), of_keys, zero);
  turn(head.K, true);
  add_mean(1);
  if (params.integer("values") > 0) round_rows(head.V, 0, n, params.integer("values"), of_others, zero);
  if (params.integer("queries") > 0) {
    Index queries = 0;
    for (Index i = 0; i < nq; ++i) queries += mask.keys < 0 || i + mask.offset < mask.keys;
    if (queries == 0) queries = nq;
    turn(head.Q, false);
    round_rows(head.Q, 0, queries, params.integer("queries"), of_others, zero);
    round_rows(head.Q, queries, nq, params.integer("queries"), of_others, zero);
    turn(head.Q, true);
  }
  return head;
}

Answer quantised(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  return attention(params.all_nested("method")[0], state, rounded(params, state, head, mask), mask);
}

Weights quantised_weights(const Params& params, const Tensors& state, const HeadData<double>& head) {
  const auto estimate = kernel(params.all_nested("method")[0], state, rounded(params, state, head, {}));
  if (!estimate) throw std::logic_error(params.spec() + ": its method has no weights of its own");
  Weights weights(head.Q.rows(), head.K.rows());
  for (Index i = 0; i < head.Q.rows(); ++i)
    for (Index j = 0; j < head.K.rows(); ++j) {
      weights.value(i, j) = static_cast<Real>(estimate->weight(i, j));
      weights.magnitude(i, j) = static_cast<Real>(estimate->magnitude(i, j));
      weights.log(i, j) = static_cast<Real>(estimate->log(i, j));
    }
  return weights;
}

const bool registered =
    add({.method = "qjl", .attention = qjl, .weights = qjl_weights, .jumps = always}) &&
    add({.method = "turboquant", .attention = turboquant, .weights = turboquant_weights, .jumps = always}) &&
    add({.method = "quantised", .attention = quantised, .weights = quantised_weights, .jumps = always});

}  // namespace

}  // namespace attnbench::oracle
