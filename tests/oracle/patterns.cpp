// Patterns that are sets of pairs. methods.md F. Row i has position p = i + offset.
#include <algorithm>

#include "tests/oracle/transcription.hpp"

namespace attnbench::oracle {

namespace {

using Pairs = bool (*)(const Params&, Index p, Index j);

// The softmax of what row i sees of its pattern.
template <Pairs pairs>
Answer pattern(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  const Set seen = [&](Index i, Index j) { return sees(mask, i, j) && pairs(params, i + mask.offset, j); };
  return normalise(softmax_weights(head), head, seen, seen);
}

// The block of `size` that a position is in, also of negative ones.
Index block(Index p, Index size) { return p >= 0 ? p / size : -((-p + size - 1) / size); }

bool dilated(const Params& params, Index p, Index j) {
  const Index s = params.integer("stride"), apart = std::abs(p - j);
  return params.text("convention") == "blocks" ? apart % s == 0 : apart == 0 || apart == s;
}

bool strided(const Params& params, Index p, Index j) {
  const Index l = params.integer("stride"), apart = std::abs(p - j);
  const std::string& part = params.text("part");
  return (part != "column" && apart <= l) || (part != "window" && apart % l == 0);
}

bool sparse_fixed(const Params& params, Index p, Index j) {
  const Index l = params.integer("stride"), c = params.integer("c");
  const std::string& part = params.text("part");
  return (part != "summary" && block(p, l) == j / l) || (part != "block" && j % l >= l - c);
}

bool longformer(const Params& params, Index p, Index j) {
  const Index g = params.integer("global");
  return j < g || (p >= 0 && p < g) || std::abs(p - j) <= params.integer("window");
}

bool internal_global(const Params& params, Index p, Index j) {
  const Index g = params.integer("global");
  return j < g || (p >= 0 && p < g) || (params.flag("self") && p == j);
}

// Learnt tokens as keys before all others, which every row sees that sees any key.
Answer external_global(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Matrix<double>&keys = state.at("global_keys"), &values = state.at("global_values");
  const Index g = keys.rows(), nk = head.K.rows();
  HeadData<double> longer{head.Q, Matrix<double>(g + nk, head.K.cols()), Matrix<double>(g + nk, head.V.cols())};
  longer.K << keys, head.K;
  longer.V << values, head.V;
  const Set seen = [&](Index i, Index column) {
    if (column >= g) return sees(mask, i, column - g) && in_band(mask, params.integer("window"), i, column - g);
    bool any = false;
    for (Index j = 0; j < nk; ++j) any |= sees(mask, i, j);
    return any;
  };
  Answer answer = normalise(softmax_weights(longer), longer, seen, seen);
  answer.A = answer.A.rightCols(nk).eval();
  return answer;
}

Answer global(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  if (params.text("kind") == "external") return external_global(params, state, head, mask);
  return pattern<internal_global>(params, state, head, mask);
}

Answer bigbird(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Index b = params.integer("block"), w = params.integer("window"), g = params.integer("global");
  const Set seen = [&](Index i, Index j) {
    const Index p = i + mask.offset, I = block(p, b), J = j / b;
    if (!sees(mask, i, j)) return false;
    if (J < g || (I >= 0 && I < g) || std::abs(I - J) <= w) return true;
    const auto drawn = state.find("random_blocks");
    if (drawn == state.end()) return false;
    const Index row = I - block(mask.offset, b);
    for (Index r = 0; r < drawn->second.cols(); ++r)
      if (drawn->second(row, r) == static_cast<double>(J)) return true;
    return false;
  };
  return normalise(softmax_weights(head), head, seen, seen);
}

// The k largest of the logits that row i sees, the first of equals, and beside them how far the next is below.
struct Largest {
  std::vector<Index> keys;
  Real gap = INFINITY;
};
Largest largest(const HeadData<double>& head, Mask mask, Index i, Index k) {
  std::vector<std::pair<Real, Index>> order;
  for (Index j = 0; j < head.K.rows(); ++j)
    if (sees(mask, i, j)) order.emplace_back(-dot(head.Q, i, head.K, j), j);
  std::sort(order.begin(), order.end());
  Largest found;
  for (Index l = 0; l < std::min(k, static_cast<Index>(order.size())); ++l)
    found.keys.push_back(order[static_cast<size_t>(l)].second);
  if (k < static_cast<Index>(order.size()))
    found.gap = order[static_cast<size_t>(k)].first - order[static_cast<size_t>(k - 1)].first;
  return found;
}

Answer top_k(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  std::vector<Largest> of_rows;
  for (Index i = 0; i < head.Q.rows(); ++i) of_rows.push_back(largest(head, mask, i, params.integer("k")));
  const Set seen = [&](Index i, Index j) {
    const auto& keys = of_rows[static_cast<size_t>(i)].keys;
    return std::find(keys.begin(), keys.end(), j) != keys.end();
  };
  return normalise(softmax_weights(head), head, seen, seen);
}

// A dot product of length d errs by d eps / 2 of the product of the norms at most; two of them decide.
double distance_to_exchange(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask, double eps) {
  double closest = INFINITY;
  const double k_norm = head.K.rowwise().norm().maxCoeff();
  for (Index i = 0; i < head.Q.rows(); ++i) {
    const double error = static_cast<double>(head.Q.cols()) * eps * head.Q.row(i).norm() * k_norm;
    closest = std::min(closest, static_cast<double>(largest(head, mask, i, params.integer("k")).gap) / error);
  }
  return closest;
}

// Head 0, which the conformance suite draws.
Answer per_head(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  return attention(params.all_nested("heads").front(), state, head, mask);
}

const bool registered = add({.method = "dilated", .attention = pattern<dilated>}) &&
                        add({.method = "strided", .attention = pattern<strided>}) &&
                        add({.method = "sparse-fixed", .attention = pattern<sparse_fixed>}) &&
                        add({.method = "longformer", .attention = pattern<longformer>}) &&
                        add({.method = "global", .attention = global}) &&
                        add({.method = "bigbird", .attention = bigbird}) &&
                        add({.method = "top-k", .attention = top_k, .distance_to_jump = distance_to_exchange}) &&
                        add({.method = "per-head", .attention = per_head});

}  // namespace

}  // namespace attnbench::oracle
