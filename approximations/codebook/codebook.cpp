#include "approximations/codebook/codebook.hpp"

#include <fmt/format.h>

#include <boost/random/uniform_01.hpp>
#include <cmath>
#include <numeric>

#include "approximations/codebook/kmeans.hpp"
#include "harness/linalg/per_row.hpp"

namespace attnbench {

namespace {

Matrix<double> kmeans_codes(const Draw& draw, const In<double>& K) {
  const Params& params = draw.params;
  const Index codes = params.integer("codes");
  auto generator = draw.streams.stream("codebook", "kmeans", codes, draw.shape.d, draw.head, draw.replicate);
  Context context;
  const double decay = params.text("update") == "ema" ? params.real("decay") : 0;
  return kmeans(context, K, codes, {.most = params.integer("sweeps"), .decay = decay}, generator).centres;
}

Matrix<double> random_keys(const Draw& draw, const In<double>& K) {
  auto generator = draw.streams.stream("codebook", "random", draw.shape.d, draw.head, draw.replicate);
  boost::random::uniform_01<double> uniform;
  PerRow<Index> order(K.rows());
  std::iota(order.begin(), order.end(), Index(0));
  Matrix<double> codebook(std::min(draw.params.integer("codes"), K.rows()), K.cols());
  for (Index y = 0; y < codebook.rows(); ++y) {
    const Index drawn = y + static_cast<Index>(uniform(generator) * static_cast<double>(K.rows() - y));
    std::swap(order[y], order[drawn]);
    codebook.row(y) = K.row(order[y]);
  }
  return codebook;
}

// Su 2023, kexue.fm/archives/9862, section 依样葫芦, reads Performer's frequencies as codes.
Matrix<double> random_frequencies(const Draw& draw) {
  auto generator = draw.streams.stream("codebook", "normal", draw.shape.d, draw.head, draw.replicate);
  return standard_normal(generator, draw.params.integer("codes"), draw.shape.d);
}

// How many levels each axis of a box has in a grid of at most `codes` points.
std::vector<Index> grid_levels(const Eigen::RowVectorXd& extent, Index codes) {
  PerRow<Index> levels(extent.size(), 1);
  for (Index points = 1;;) {
    Index widest = -1;
    double spacing = 0;
    for (Index a = 0; a < extent.size(); ++a) {
      const Index own = levels[a];
      if (points / own * (own + 1) > codes || extent[a] / static_cast<double>(own) <= spacing) continue;
      widest = a;
      spacing = extent[a] / static_cast<double>(own);
    }
    if (widest < 0) return levels;
    Index& own = levels[widest];
    points = points / own * (own + 1);
    ++own;
  }
}

Matrix<double> lattice(const In<double>& K, Index codes) {
  const Eigen::RowVectorXd low = K.colwise().minCoeff(), extent = K.colwise().maxCoeff() - low;
  const auto levels = grid_levels(extent, codes);
  Index points = 1;
  for (const Index own : levels) points *= own;
  Matrix<double> codebook(points, K.cols());
  for (Index y = 0; y < points; ++y) {
    Index rest = y;
    for (Index a = K.cols() - 1; a >= 0; --a) {
      const Index own = levels[static_cast<size_t>(a)];
      const double share = (static_cast<double>(rest % own) + 0.5) / static_cast<double>(own);
      codebook(y, a) = low[a] + share * extent[a];
      rest /= own;
    }
  }
  return codebook;
}

}  // namespace

std::vector<Parameter> codebook_parameters() {
  return {
      Parameter::integer("codes", 256, "size of the codebook; at most the calibration keys", 1, 1 << 20).as_budget(),
      Parameter::choice("codebook", "kmeans",
                        "where codes come from: k-means of the calibration keys, keys drawn at random, a grid over "
                        "their box, all of them (codes then says nothing), or standard normal vectors, which look at "
                        "no key",
                        {"kmeans", "random", "lattice", "keys", "normal"}),
      Parameter::integer("sweeps", 10, "sweeps of k-means at most", 0, 10000),
      Parameter::choice("update", "lloyd", "how a sweep moves codes: to the mean of their keys, or by moving averages",
                        {"lloyd", "ema"}),
      Parameter::real("decay", 0.5, "of update=ema: the share of what was before; 0 is lloyd", 0, 1)};
}

Matrix<double> learn_codebook(const Draw& draw) {
  const Params& params = draw.params;
  const std::string& source = params.text("codebook");
  if (draw.state && draw.state->contains("codebook")) {
    const Index given = std::max<Index>(1, draw.state->at("codebook").rows());
    // The calibration head had fewer keys than `codes` if the given codebook has fewer rows.
    return *draw.injected("codebook", source == "keys" ? given : std::min(given, params.integer("codes")),
                          draw.shape.d);
  }
  if (source == "normal") return random_frequencies(draw);
  if (!draw.calibration)
    throw Misuse(params.name() + ": the codebook is learnt from a calibration head, but none was given");
  const In<double>& K = draw.calibration->K;
  if (source == "kmeans") return kmeans_codes(draw, K);
  if (source == "random") return random_keys(draw, K);
  if (source == "lattice") return lattice(K, params.integer("codes"));
  return K;
}

bool codes_are_learnt(const Params& params) { return params.text("codebook") != "normal"; }

Index expected_codes(const Params& params, const Shape& shape) {
  return params.text("codebook") == "keys" ? shape.nk : params.integer("codes");
}

std::optional<Index> rank_bound(const Params& params) {
  if (params.text("codebook") == "keys") return std::nullopt;
  return params.integer("codes");
}

std::vector<std::string> codebook_caveats(const Params& params, const Shape& shape) {
  const double codes = static_cast<double>(params.integer("codes"));
  if (params.text("codebook") == "keys")
    return {"codebook=keys has as many codes as the calibration head has keys: its time grows as their product"};
  if (params.text("codebook") == "lattice" && std::log2(codes) < static_cast<double>(shape.d))
    return {
        fmt::format("a grid of {} codes divides at most {} of {} axes", codes, std::floor(std::log2(codes)), shape.d)};
  return {};
}

}  // namespace attnbench
