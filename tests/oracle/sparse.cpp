// Patterns. methods.md F.
#include <algorithm>

#include "tests/oracle/transcription.hpp"

namespace attnbench::oracle {

namespace {

// methods.md F, and the first tokens.
Answer sink_window(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  const Index window = params.integer("window"), sinks = params.integer("sinks");
  const Set seen = [=](Index i, Index j) { return sees(mask, i, j) && (j < sinks || in_band(mask, window, i, j)); };
  return normalise(softmax_weights(head), head, seen, seen);
}

// methods.md F12: the memory before the row's segment, and the segment.
Answer transformer_xl(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  const Index segment = params.integer("segment"), memory = params.integer("memory");
  const Set seen = [=](Index i, Index j) {
    const Index position = std::max<Index>(0, i + mask.offset), start = position - position % segment;
    return sees(mask, i, j) && j >= start - memory && j < start + segment;
  };
  return normalise(softmax_weights(head), head, seen, seen);
}

// methods.md F13: weights that fade out over the ramp beyond the span.
Answer adaptive_span(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  const Real span = static_cast<Real>(params.integer("span")), ramp = static_cast<Real>(params.integer("ramp"));
  Weights weights = softmax_weights(head);
  for (Index i = 0; i < head.Q.rows(); ++i)
    for (Index j = 0; j < head.K.rows(); ++j) {
      const Real distance = std::abs(static_cast<Real>(i + mask.offset - j));
      const Real share = std::min(Real(1), std::max(Real(0), (ramp + span - distance) / ramp));
      weights.value(i, j) *= share;
      weights.magnitude(i, j) *= share;
    }
  const Index reach = params.integer("span") + params.integer("ramp") - 1;
  const Set seen = [=](Index i, Index j) { return sees(mask, i, j) && in_band(mask, reach, i, j); };
  return normalise(weights, head, seen, seen);
}

// H2O, Algorithm 1: keys come one by one, and for each beyond the budget the one goes that got least attention, of
// those that will not be among the last `recent`.
std::vector<std::vector<Index>> heavy_hitters(const Params& params, const HeadData<double>& head, Mask mask,
                                              Real* closest) {
  const Index recent = params.integer("recent"), budget = params.integer("heavy") + recent;
  std::vector<Real> score(static_cast<size_t>(head.K.rows()), 0);
  std::vector<Index> kept;
  std::vector<std::vector<Index>> of_rows;
  Index came = 0;
  for (Index i = 0; i < head.Q.rows(); ++i) {
    for (; came < head.K.rows() && sees(mask, i, came); ++came) {
      if (static_cast<Index>(kept.size()) == budget) {
        size_t least = 0;  // kept is in the order of coming: the first of equals goes
        Real second = INFINITY;
        const auto score_of = [&](size_t place) { return score[static_cast<size_t>(kept[place])]; };
        for (size_t place = 1; place < kept.size() && kept[place] <= came - recent; ++place) {
          second = std::min(second, std::max(score_of(place), score_of(least)));
          if (score_of(place) < score_of(least)) least = place;
        }
        if (second > score_of(least)) *closest = std::min(*closest, (second - score_of(least)) / second);
        kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(least));
      }
      kept.push_back(came);
    }
    Real largest = -INFINITY, sum = 0;
    for (const Index j : kept) largest = std::max(largest, dot(head.Q, i, head.K, j));
    for (const Index j : kept) sum += std::exp(dot(head.Q, i, head.K, j) - largest);
    for (const Index j : kept) score[static_cast<size_t>(j)] += std::exp(dot(head.Q, i, head.K, j) - largest) / sum;
    of_rows.push_back(kept);
  }
  return of_rows;
}

Answer heavy_hitter(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  Real closest = INFINITY;
  const auto kept = heavy_hitters(params, head, mask, &closest);
  const Set seen = [&](Index i, Index j) {
    const auto& row = kept[static_cast<size_t>(i)];
    return std::find(row.begin(), row.end(), j) != row.end();
  };
  return normalise(softmax_weights(head), head, seen, seen);
}

// methods.md F: the softmax of the window.
Answer local(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  const Index window = params.integer("window");
  const Set seen = [=](Index i, Index j) { return sees(mask, i, j) && in_band(mask, window, i, j); };
  return normalise(softmax_weights(head), head, seen, seen);
}

// methods.md F: (a) mask, then renormalise; (b) normalise the full row, then cut.
Answer truncated(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Index window = params.integer("window");
  const Set visible = [=](Index i, Index j) { return sees(mask, i, j); };
  const Set band = [=](Index i, Index j) { return sees(mask, i, j) && in_band(mask, window, i, j); };
  return normalise(linear_weights(params, state, head), head, params.flag("renormalise") ? band : visible, band);
}

// The scores of heavy-hitter are sums of weights, each with its exponent and its normaliser.
double distance_to_eviction(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask, double eps) {
  Real closest = INFINITY;
  heavy_hitters(params, head, mask, &closest);
  const double L = head.Q.rowwise().norm().maxCoeff() * head.K.rowwise().norm().maxCoeff();
  const auto summed = static_cast<double>(params.integer("heavy") + params.integer("recent"));
  return static_cast<double>(closest) / (2 * (static_cast<double>(head.Q.cols()) * L + summed) * eps);
}

const bool registered =
    add({.method = "local", .attention = local}) && add({.method = "truncated", .attention = truncated}) &&
    add({.method = "sink-window", .attention = sink_window}) &&
    add({.method = "transformer-xl", .attention = transformer_xl}) &&
    add({.method = "adaptive-span", .attention = adaptive_span}) &&
    add({.method = "heavy-hitter", .attention = heavy_hitter, .distance_to_jump = distance_to_eviction});

}  // namespace

}  // namespace attnbench::oracle
